"""Measures what isolation adds to a command: `true` by the tool `run_command`.

The same call runs with and without isolation, in turn, in the process of the bench: a worker
process adds the same to both.
Then a session calls it isolated, turn after turn, through a runner on Ray, as in the bench
`runners`.
Floor: 10 ms more at the median, and 30 ms more through a runner on Ray.
"""

import tempfile
import time
from pathlib import Path
from statistics import median

from msgspec.structs import replace

from bench.runners import way
from bench.table import Row
from cueline import Agent
from cueline.events.agent import Limits, Policy
from cueline.events.agent_parts import Isolation
from cueline.isolation.ladder import Kind, rung
from cueline.tools.shell import run_command
from cueline.tools.tool import ToolContext

ROUNDS = 100
KINDS: tuple[Kind, ...] = ("bwrap", "landlock")
CALLS = 60
TRUE = """
[[reply]]
calls = [{ name = "run_command", arguments = { command = "true" } }]
"""


def commander(folder: Path, calls: int) -> Agent:
    """Return an agent that runs so many isolated commands."""
    script = folder / "commands.toml"
    script.write_text(TRUE * calls + '[[reply]]\ntext = "Done."\n')
    place = folder / "workspace"
    place.mkdir()
    return Agent(
        name="bench",
        provider="scripted",
        model=str(script),
        tools=["run_command"],
        workspace=place,
        limits=Limits(max_turns=calls + 1),
        policy=Policy(approval="off"),
    )


def seconds(folder: Path, isolation: Isolation) -> float:
    """Return the time of one command."""
    context = ToolContext(
        session="session-default/1", effect="1.0", attempt=1, key="1", folder=folder
    )
    began = time.perf_counter()
    run_command.run({"command": "true"}, replace(context, isolation=isolation))
    return time.perf_counter() - began


def measure() -> list[Row]:
    """Return the figures; empty where nothing isolates commands."""
    if not rung().kind:
        return []
    kinds = [each for each in KINDS if rung(kind=each).kind]
    times: dict[str, list[float]] = {"none": [], **{each: [] for each in kinds}}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            for kind, each in times.items():
                each.append(1000 * seconds(Path(folder), Isolation.model_validate(kind)))
    bare = median(times["none"])
    there = way("up", commander, CALLS)
    return [
        Row("a command, without isolation", bare, "ms"),
        *(
            Row(f"what {each} adds to it", median(times[each]) - bare, "ms", "≤ 10")
            for each in kinds
        ),
        Row("what isolation and a runner on Ray add to it", there - bare, "ms", "≤ 30"),
    ]
