"""Kill sessions for as long as you like, and write what came of it into docs/reliability.md."""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from random import Random

from tests.torture.ground import Ground, Tally
from tests.torture.judge import judge
from tests.torture.lanes import SESSIONS, TURNS, UNDISTURBED, inline, on_ray

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reliability.md"
LANES = {"inline": inline, "ray": on_ray}
NAMES = [f"s{number}" for number in range(1, SESSIONS + 1)]


def torture(lane, folder, seed, seconds, sessions=NAMES):
    """Kill sessions in one log after the other for so many *seconds*; at least in one."""
    tally = Tally()
    deadline = time.monotonic() + seconds
    number = 0
    while not number or time.monotonic() < deadline:
        number += 1
        chance = Random(f"{lane} {seed} {number}")
        ground = Ground(folder / f"{lane}-{number}", chance, tally, TURNS[lane])
        try:
            LANES[lane](ground, sessions)
        except AssertionError as error:
            tally.fault("lost", f"{ground.log}: not all sessions ended: {error}")
            continue
        judge(ground, sessions, UNDISTURBED)
        if tally.held:
            shutil.rmtree(ground.folder)
    return tally


def described():
    """Return the version and the commit."""
    command = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return f"{version('cueline')} ({commit.strip()})"


def row(what, lane, seed, seconds, tally):
    """Return the line of the page that tells of a lane."""
    cells = [
        f"{datetime.now(UTC):%Y-%m-%d}",
        what,
        lane,
        f"{seed}, {seconds:.0f} s",
        f"{tally.kills.total()}: "
        + ", ".join(f"{kind} {count}" for kind, count in tally.kills.most_common()),
        *map(str, (tally.sessions, tally.lost, tally.repeated, tally.disagreements)),
        *map(str, (tally.in_doubt, tally.cut_short)),
    ]
    return f"| {' | '.join(cells)} |"


def main():
    """Return 0 if nothing was lost or repeated, and no check disagrees."""
    parser = argparse.ArgumentParser(prog="make torture", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="of all lanes together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lanes", nargs="+", choices=LANES, default=list(LANES))
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="cueline-torture-"))
    held, what = True, described()
    for lane in asked.lanes:
        began = time.monotonic()
        tally = torture(lane, folder, asked.seed, asked.seconds / len(asked.lanes))
        line = row(what, lane, asked.seed, time.monotonic() - began, tally)
        print(line, *tally.found, sep="\n")
        with PAGE.open("a") as page:
            page.write(f"{line}\n")
        held = held and tally.held
    if held:
        shutil.rmtree(folder)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
