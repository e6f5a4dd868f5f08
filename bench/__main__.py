"""Run the benches, print one table, and fail if a bench fails or a floor is missed."""

import argparse
import sys
import traceback
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from bench import machine
from bench.table import Row, markdown, plain

BENCHES = (
    "append",
    "session",
    "plan",
    "children",
    "api",
    "live_text",
    "many_streams",
    "peers",
    "bytes",
    "long_context",
    "replay",
    "resume",
    "memory",
    "waiting",
    "backtest",
    "start_up",
    "ray_start",
    "on_ray",
    "runners",
    "host_kill",
    "node_kill",
    "idle",
    "fleet_simulation",
    "postgres",
)
PAGE = Path(__file__).parent.parent / "docs/performance.md"
OPENING = """# What does it cost?

The figures of `bench/`, taken in one run of `make bench`; `python -m bench --write` writes this page.
Ratios compare what was measured in turn in the same run, so they say more than the rates, which belong to the machine.
A floor is what a change must not fall below; *kept* and *MISSED* say how it stands in this run.
A load average above one a core means that others worked on the machine: then read the ratios only, and measure again.

"""  # noqa: E501 - the page has a sentence a line


def existing() -> list[str]:
    """Return the benches that there are."""
    return [name for name in BENCHES if find_spec(f"bench.{name}")]


def measured(names: list[str]) -> tuple[dict[str, list[Row]], list[str]]:
    """Run the benches, one after the other; return their rows, and which of them failed."""
    rows, failed = {}, []
    for name in names:
        print(f"measuring {name} …", file=sys.stderr)
        try:
            rows[name] = import_module(f"bench.{name}").measure()
        except Exception:  # noqa: BLE001 - whatever one raises, the others' rows are kept
            traceback.print_exc()
            failed.append(name)
    return {name: found for name, found in rows.items() if found}, failed


def sentences(name: str) -> str:
    """Return what a bench says of itself, a sentence a line."""
    text = " ".join((import_module(f"bench.{name}").__doc__ or "").split())
    return text.replace(". ", ".\n")


def page(rows: dict[str, list[Row]]) -> str:
    """Return the page of the documentation."""
    table = markdown(row for found in rows.values() for row in found)
    told = "\n\n".join(f"### {name}\n\n{sentences(name)}" for name in rows)
    return f"{OPENING}{table}\n\n{machine.told()}\n\n## What the rows measure\n\n{told}\n"


def main() -> int:
    """Return 0 if all benches ran and all floors are kept."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(existing())}; all by default")
    parser.add_argument("--write", action="store_true", help=f"all of them, and write {PAGE.name}")
    asked = parser.parse_args()
    if asked.write and asked.names:
        parser.error("--write writes the whole page; name no bench")
    if unknown := set(asked.names) - set(existing()):
        parser.error(f"there is no bench {min(unknown)!r}")
    rows, failed = measured(asked.names or existing())
    everything = [row for found in rows.values() for row in found]
    print(plain(everything))
    if failed:
        print(f"failed, and without rows: {', '.join(failed)}", file=sys.stderr)
    elif asked.write:
        PAGE.write_text(page(rows))
    return int(bool(failed) or not all(row.kept for row in everything))


if __name__ == "__main__":
    sys.exit(main())
