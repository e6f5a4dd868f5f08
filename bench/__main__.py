"""Runs the benches and prints one table; fails if a bench fails or a figure misses its floor.

`--sample` takes about a minute. It runs small rounds of the benches whose floors are ratios, with
half of each floor or less. It finds code that became several times slower, on any machine and under
load.
"""

import argparse
import sys
import time
import traceback
from collections.abc import Iterable
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
    "verify",
    "resume",
    "memory",
    "waiting",
    "backtest",
    "isolation",
    "tools",
    "sandboxes",
    "start_up",
    "ray_start",
    "on_ray",
    "runners",
    "host_kill",
    "node_kill",
    "idle",
    "gateway",
    "fleet_simulation",
    "audit",
    "postgres",
)
SAMPLED = ("append", "plan", "api")
PAGE = Path(__file__).parent.parent / "docs/performance.md"
OPENING = """# What does it cost?

The figures of `bench/` come from one run at {commit}; `python -m bench --write` writes this page.
A ratio compares two values that were measured in turn in the same run, so it depends less on the machine than a rate.
A floor is a bound that a change must keep; *kept* and *MISSED* show the result of this run.
A load average above one a core means that other programs used the machine: then read only the ratios, and measure again.

"""  # noqa: E501 - the page has a sentence a line


def existing() -> list[str]:
    """Return the names of the existing benches."""
    return [name for name in BENCHES if find_spec(f"bench.{name}")]


def measured(
    names: Iterable[str], measure: str = "measure"
) -> tuple[dict[str, list[Row]], dict[str, str]]:
    """Run the benches one by one; return the rows by bench, and the errors of failed benches."""
    rows, failed = {}, {}
    for name in names:
        began = time.monotonic()
        print(f"measuring {name} …", file=sys.stderr, end="", flush=True)
        try:
            rows[name] = getattr(import_module(f"bench.{name}"), measure)()
        # Whatever one raises, also `sys.exit` where the peers are missing: keep the others' rows.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            failed[name] = str(error) or type(error).__name__
            if not isinstance(error, SystemExit):
                print(file=sys.stderr)
                traceback.print_exc()
        print(f" {time.monotonic() - began:.0f} s", file=sys.stderr)
    return {name: found for name, found in rows.items() if found}, failed


def sentences(name: str) -> str:
    """Return the docstring of a bench's module, with one sentence on each line."""
    text = " ".join((import_module(f"bench.{name}").__doc__ or "").split())
    return text.replace(". ", ".\n")


def page(rows: dict[str, list[Row]], failed: dict[str, str], commit: str) -> str:
    """Return the text of `docs/performance.md`, with only the rows of this run."""
    table = markdown(row for found in rows.values() for row in found)
    told = "\n\n".join(f"### {name}\n\n{sentences(name)}" for name in rows)
    missing = "".join(f"\nNo rows of `{name}`: {why}." for name, why in failed.items())
    opening = OPENING.format(commit=commit)
    return f"{opening}{table}\n\n{machine.told()}{missing}\n\n## What the rows measure\n\n{told}\n"


def main() -> int:
    """Run the benches of the command line; return 0 if all ran and all floors are kept."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(existing())}; all by default")
    parser.add_argument("--write", action="store_true", help=f"all of them, and write {PAGE.name}")
    parser.add_argument("--sample", action="store_true", help=f"of {', '.join(SAMPLED)}, a minute")
    asked = parser.parse_args()
    if asked.write and (asked.names or asked.sample):
        parser.error("--write writes the whole page; name no bench")
    known = SAMPLED if asked.sample else existing()
    if unknown := set(asked.names) - set(known):
        parser.error(f"there is no bench {min(unknown)!r}")
    commit = machine.commit() if asked.write else ""
    if commit.endswith("+"):
        parser.error("--write names the commit that it measured; commit your changes first")
    rows, failed = measured(asked.names or known, "sample" if asked.sample else "measure")
    everything = [row for found in rows.values() for row in found]
    print(plain(everything))
    for name, why in failed.items():
        print(f"no rows of {name}: {why}", file=sys.stderr)
    if asked.write:
        PAGE.write_text(page(rows, failed, commit))
    return int(bool(failed) or not all(row.kept for row in everything))


if __name__ == "__main__":
    sys.exit(main())
