"""Kill sessions for as long as you like, and write the results into docs/reliability.md."""

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from random import Random
from statistics import median

from tests.torture import forked, lanes, scenarios
from tests.torture.chains import ChainGround
from tests.torture.forked import ForkedGround
from tests.torture.ground import Ground, Tally
from tests.torture.judge import judge
from tests.torture.machines import missing
from tests.torture.page import note_machine, write
from tests.torture.scenarios import MachinesGround
from tests.torture.simulated import SHARES, run_schedules

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Lane:
    """A way to drive sessions, and to disturb them."""

    drive: Callable
    turns: tuple[int, int]
    """Of a session: at least, and at most."""
    sessions: int = lanes.SESSIONS
    ground: type[Ground] = Ground
    judge: Callable = judge
    table: str = "## What came of it"
    """The heading in the page, under which its lines go."""

    @property
    def names(self):
        return [f"s{number}" for number in range(1, self.sessions + 1)]


def machines(disturb):
    return Lane(
        drive=partial(scenarios.drive, disturb),
        turns=scenarios.TURNS,
        sessions=scenarios.SESSIONS,
        ground=MachinesGround,
        table="## What came of machines that died",
    )


PROCESSES = {
    "inline": Lane(lanes.inline, lanes.TURNS["inline"]),
    "ray": Lane(lanes.on_ray, lanes.TURNS["ray"]),
    "forked": Lane(
        forked.drive,
        (40, 60),
        ground=ForkedGround,
        judge=forked.judge_forked,
        table="## What came of forked sessions",
    ),
    "chain": Lane(lanes.on_ray, lanes.TURNS["chain"], sessions=4, ground=ChainGround),
}
MACHINES = {name: machines(disturb) for name, disturb in scenarios.SCENARIOS.items()}
LANES = PROCESSES | MACHINES


def torture(name, folder, seed, seconds):
    """Kill sessions in one log after the other for so many *seconds*; at least in one."""
    tally, lane = Tally(), LANES[name]
    deadline = time.monotonic() + seconds
    while not tally.logs or time.monotonic() < deadline:
        tally.logs += 1
        chance = Random(f"{name} {seed} {tally.logs}")
        ground = lane.ground(folder / f"{name}-{tally.logs}", chance, tally, lane.turns)
        try:
            lane.drive(ground, lane.names)
            lane.judge(ground, lane.names, lanes.UNDISTURBED)
        except AssertionError as error:
            tally.fault("lost", f"{ground.log}: not all sessions ended: {error}")
        finally:
            ground.close()
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
    kills = ", ".join(f"{kind} {count}" for kind, count in tally.kills.most_common())
    counts = [tally.sessions, tally.lost, tally.repeated, tally.disagreements]
    if lane in MACHINES:
        done = f"{median(tally.seconds):.0f}, {max(tally.seconds):.0f}" if tally.seconds else "-"
        cells = [tally.logs, *counts, tally.zombies, tally.untold, tally.left]
        cells += [tally.in_doubt, done]
    elif lane == "forked":
        cells = [tally.kills.total(), tally.sessions, tally.lost, tally.repeated, tally.untold]
        cells += [tally.passed, tally.secrets, tally.disagreements, tally.in_doubt]
    else:
        cells = [f"{tally.kills.total()}: {kills}", *counts, tally.in_doubt, tally.cut_short]
    begin = [f"{datetime.now(UTC):%Y-%m-%d}", what, lane, f"{seed}, {seconds:.0f} s"]
    return f"| {' | '.join(map(str, begin + cells))} |"


def simulate(commit, seed, seconds):
    """Run schedules of each kind, write a line for each, and say whether each promise was kept."""
    kept = True
    for kind, share in SHARES.items():
        done = run_schedules(kind, seed, seconds * share / sum(SHARES.values()))
        million = done.seconds / done.count * 1_000_000 / 3600
        what = [f"{datetime.now(UTC):%Y-%m-%d}", commit, kind, seed, f"{done.count:,}"]
        cells = [*what, f"{done.seconds:.0f} s", f"{million:.1f} h", len(done.found)]
        write(f"| {' | '.join(map(str, cells))} |", "## What came of simulated schedules")
        print(*done.found, sep="\n")
        kept = kept and not done.found
    return kept


def cut_power(commit, seed, cuts):
    """Cut the power and fail the disk in a process of its own, and write a line of it."""
    command = [sys.executable, "-m", "tests.torture.power", "--seed", str(seed)]
    done = subprocess.run(
        [*command, "--cuts", str(cuts)], cwd=ROOT, check=False, capture_output=True, text=True
    )
    told = json.loads(done.stdout)
    what = [f"{datetime.now(UTC):%Y-%m-%d}", commit, seed, f"{told['cuts']:,}"]
    cells = [*what, f"{told['runs']:,}", told["wrong"]]
    write(f"| {' | '.join(map(str, cells))} |", "## What came of power cuts and failing disks")
    print(*told["cut"], *told["disk"], sep="\n")
    return not told["wrong"]


def main():
    """Return 0 if nothing was lost or repeated, and no check disagrees."""
    parser = argparse.ArgumentParser(prog="make torture", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="of all lanes together")
    parser.add_argument("--seed", type=int, default=1)
    choices = [*LANES, "machines", "simulated", "power"]
    parser.add_argument("--lanes", nargs="+", choices=choices, default=list(PROCESSES))
    parser.add_argument("--cuts", type=int, default=1000, help="of the power")
    asked = parser.parse_args()
    names = [n for each in asked.lanes for n in (MACHINES if each == "machines" else [each])]
    if (reason := missing()) and not MACHINES.keys().isdisjoint(names):
        parser.error(reason)
    held, share, what = True, asked.seconds / len(names), described()
    if "simulated" in names:
        names.remove("simulated")
        held = simulate(what, asked.seed, share)
    if "power" in names:
        names.remove("power")
        held = cut_power(what, asked.seed, asked.cuts) and held
    # Otherwise its machines would outlive it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder = Path(tempfile.mkdtemp(prefix="cueline-torture-"))
    for name in names:
        began = time.monotonic()
        tally = torture(name, folder, asked.seed, share)
        line = row(what, name, asked.seed, time.monotonic() - began, tally)
        write(line, LANES[name].table)
        print(*tally.found, sep="\n")
        held = held and tally.held
    note_machine()
    if held:
        shutil.rmtree(folder)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
