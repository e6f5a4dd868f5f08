"""Measures the time of a step in a plan of 200 steps: 20 parallel branches of 10 steps each.

The sessions run inline, and everything is durable.
Each step calls a trivial tool in the event loop; the condition of each step reads the previous
step's text.
The tool returns at once, so the bench measures cueline's own work.
Floors: a step takes at most 5 ms; a step of a plan of 1,000 steps takes at most 1.5 × as long.
"""

import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from bench.conversation import AGENT, Talker, hosted
from bench.table import Row, eased, plain
from cueline.actors.inbox import ask_start
from cueline.events.agent import AgentSpec
from cueline.events.agent_parts import Plan, Step
from cueline.events.inbox import StartAsked
from cueline.runtime.loop import run
from cueline.runtime.open_log import open_log

BRANCHES = 20
SHORT, LONG = 10, 50
ROUNDS = 5
MOST_MS = 5.0
MOST_RATIO = 1.5


def planned(length: int) -> AgentSpec:
    """Return an agent with a plan of `BRANCHES` branches of *length* steps."""
    (tool,) = AGENT.tools
    steps, tools = [], []
    for branch in range(BRANCHES):
        for place in range(length):
            name, before = f"b{branch}_{place}", f"b{branch}_{place - 1}"
            arguments = {"query": "{{ input.query }}"}
            steps.append(
                Step(name=name, arguments=arguments, when=f"steps.{before}.text" if place else "")
            )
            tools.append(tool.model_copy(update={"name": name, "own_name": tool.name}))
    plan = Plan(steps=tuple(steps), max_parallel=BRANCHES)
    return AGENT.model_copy(
        update={"provider": "workflow", "model": "", "tools": tuple(tools), "plan": plan}
    )


async def follow(path: Path, length: int) -> float:
    """Run a plan, and return the seconds a step."""
    async with open_log(path) as log, hosted(log, Talker(0)) as (host, _):
        asked = StartAsked(
            agent=planned(length), parameters={"query": "000001"}, asked_at=datetime.now(UTC)
        )
        stream = await ask_start(log.journal(), "bench", asked)
        began = time.perf_counter()
        await host.activate_all([stream])
        await host.settled(stream)
        took = time.perf_counter() - began
        *_, (_, last) = [pair async for pair in log.journal().read(stream)]
        assert last.type == "SessionCompleted", last
        return took / (BRANCHES * length)


def one_round(folder: Path) -> tuple[float, float]:
    """Return the seconds a step of a short and of a long plan."""
    return run(follow(folder / "short.db", SHORT)), run(follow(folder / "long.db", LONG))


def measure(count: int = ROUNDS) -> list[Row]:
    """Return the rows of this bench."""
    rounds = []
    for _ in range(count):
        with tempfile.TemporaryDirectory(dir=".") as folder:
            rounds.append(one_round(Path(folder)))
    short, long = (median(taken) for taken in zip(*rounds, strict=True))
    steps = BRANCHES * SHORT
    return [
        Row(f"a step of {steps} in {BRANCHES} branches", 1000 * short, "ms", f"≤ {MOST_MS}"),
        Row(
            f"a step of {BRANCHES * LONG:,}",
            1000 * long,
            "ms",
            f"≤ {MOST_RATIO} ×",
            median(b / a for a, b in rounds),
            f"one of {steps}",
        ),
    ]


def sample() -> list[Row]:
    """Return the rows of one round, with half of each floor."""
    return [eased(row) for row in measure(1)]


if __name__ == "__main__":
    print(plain(measure()))
