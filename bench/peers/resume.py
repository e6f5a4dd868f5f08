"""Measures the time of a resume by the length of the past: `python -m bench.peers.resume --write`.

A turn is a model's reply and a tool's result, and five events in cueline. The texts are the same.
LangGraph stores the whole state with each step: 500 turns are 250 MB, so it ends there.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import machine
from bench.peer import PYTHON, ROOT

EVENTS_A_TURN = 5
LENGTHS = (1_000, 2_500, 10_000, 30_000, 100_000)
LONGEST = {"dbos": 10_000, "langgraph": 2_500}
PICTURE = ROOT / "docs/pictures/resume.svg"
PAGE = ROOT / "docs/reliability.md"
HEADING = "## How long does a resume take?\n"
COLORS = {"cueline": "#1f6f4a", "cueline, no snapshot": "#6aa584", "DBOS": "#b3541e"}
COLORS["LangGraph"] = "#3a5a9b"
Curve = dict[int, float]


def ours(turns: int) -> list[float]:
    """Return the times of cueline in ms: without a snapshot, and with one."""
    command = [sys.executable, "-m", "bench.peers.resume_cueline", str(turns)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return [float(each) for each in done.stdout.split()]


def peer(name: str, turns: int) -> float:
    """Kill a peer after so many turns, and return the time of its resume in ms."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = str(Path(folder).absolute())
        command = [str(PYTHON), "-m", f"bench.peers.resume_{name}", path, str(turns)]
        subprocess.run([*command, "begin"], cwd=ROOT, check=False)
        done = subprocess.run(
            [*command, "resume"], cwd=ROOT, check=True, capture_output=True, text=True
        )
    return float(done.stdout.split()[0])


def measured() -> dict[str, Curve]:
    """Return the times in ms by program and number of events."""
    curves: dict[str, Curve] = {name: {} for name in COLORS}
    for events in LENGTHS:
        turns = events // EVENTS_A_TURN
        without, with_one = ours(turns)
        curves["cueline"][events], curves["cueline, no snapshot"][events] = with_one, without
        for name, shown in {"dbos": "DBOS", "langgraph": "LangGraph"}.items():
            if events <= LONGEST[name]:
                curves[shown][events] = peer(name, turns)
        print(events, {name: curve.get(events) for name, curve in curves.items()}, flush=True)
    return curves


def table(curves: dict[str, Curve]) -> str:
    """Return the curves as a table."""
    lines = [f"| events | {' | '.join(curves)} |", f"| --- {'| --- ' * len(curves)}|"]
    for events in LENGTHS:
        cells = [f"{c[events]:,.0f} ms" if events in c else "" for c in curves.values()]
        lines.append(f"| {events:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def picture(curves: dict[str, Curve]) -> str:
    """Return the curves as an SVG, with both axes linear."""
    width, height, left, top = 640, 320, 70, 20
    most = max(ms for curve in curves.values() for ms in curve.values())

    def at(events: int, ms: float) -> str:
        x = left + (width - left - 170) * events / LENGTHS[-1]
        return f"{x:.1f},{top + (height - 2 * top - 20) * (1 - ms / most):.1f}"

    def label(x: float | str, y: float | str, words: str, more: str = "") -> str:
        return f'<text x="{x}" y="{y}" {more}>{words}</text>'

    def line(points: str, color: str) -> str:
        return f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>'

    view = f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {view}>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        line(f"{at(0, most)} {at(0, 0)} {at(LENGTHS[-1], 0)}", "#888888"),
    ]
    for share in (0.25, 0.5, 0.75, 1.0):
        y = at(0, most * share).split(",")[1]
        parts.append(label(left - 6, y, f"{most * share:,.0f} ms", 'text-anchor="end"'))
    for events in LENGTHS[2:]:
        x, y = at(events, 0).split(",")
        parts.append(label(x, float(y) + 16, f"{events:,}", 'text-anchor="middle"'))
    x, y = at(LENGTHS[-1] // 2, 0).split(",")
    parts.append(label(x, float(y) + 32, "events before the resume", 'text-anchor="middle"'))
    for row, (name, curve) in enumerate(curves.items()):
        color, points = COLORS[name], " ".join(at(*each) for each in curve.items())
        dots = [each.split(",") for each in points.split()]
        parts.append(line(points, color))
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{color}"/>' for x, y in dots]
        parts.append(label(width - 150, top + 16 + 18 * row, name, f'fill="{color}"'))
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Print the table; with `--write`, write it and the picture into the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.resume", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}")
    asked = parser.parse_args()
    curves = measured()
    print(table(curves))
    if asked.write:
        PICTURE.write_text(picture(curves))
        before, found, after = PAGE.read_text().partition(HEADING)
        head = after.partition("| events |")[0]
        rest = after[after.find("\n## ") :] if "\n## " in after else ""
        section = f"{head}{table(curves)}\n\n{machine.told()}\nThe commit is {machine.commit()}.\n"
        PAGE.write_text(f"{before}{found}{section}{rest}")


if __name__ == "__main__":
    main()
