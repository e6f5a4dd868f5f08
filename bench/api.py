"""Measures 200 sessions that a program starts through the Python API and awaits together.

The bench `session` runs the same agent and the same texts directly in a host; here the replies come
from a script. The clock runs from the first `start` to the last `result`. So the time to request
the sessions is included here, but not inside the host.
Both variants are measured in turn, on a warm WAL.
On Ray, the host, its runner and the log's writer are separate processes. The runtime starts this
Ray before the clock runs.
Floor: 0.8 × the turns inside the host, inline. The floor on Ray is 0.15 ×, because two cores share
six processes; starts that waited for one another reduced the ratio to 0.05 ×.
Sessions that are followed with `events` have no floor: the reader wakes twice a turn, and checks,
decodes and folds each fact.
"""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Literal

from bench.conversation import AGENT, look_up
from bench.session import SESSIONS, TURNS_EACH, WARM_TURNS, play
from bench.table import Row, eased, plain
from bench.text import ASKED, SAID, text
from cueline import Agent, Session, open_runtime
from cueline.runtime.loop import run

ROUNDS = 5
REPLY = """
[[reply]]
text = "{said}"
calls = [{{ name = "look_up", arguments = {{ query = "{asked}" }} }}]
usage = {{ input = 1000, output = 200 }}
"""


def talker(folder: Path, turns: int) -> Agent:
    """Return an agent whose scripted model has *turns* turns of the benches' conversation."""
    script = folder / f"talks-{turns}.toml"
    replies = [
        REPLY.format(said=text(turn, SAID), asked=text(turn, ASKED)) for turn in range(1, turns + 1)
    ]
    script.write_text("".join([*replies, f'[[reply]]\ntext = "{text(turns + 1, SAID)}"\n']))
    return Agent(
        name=AGENT.name,
        provider="scripted",
        model=str(script),
        instructions=AGENT.instructions,
        tools=[look_up],
        limits=AGENT.limits,
    )


async def result(session: Session) -> None:
    """Wait for the result of *session*."""
    assert (await session.result()).status == "completed"


async def events(session: Session) -> None:
    """Follow *session* until it has ended."""
    last = ""
    async for _, event in session.events():
        last = event.type
    assert last == "SessionCompleted"


async def ask(
    folder: Path,
    on: Literal["inline", "ray"],
    sessions: int,
    turns: int,
    *,
    warm: int = WARM_TURNS,
    wait: Callable[[Session], Awaitable[None]] = result,
) -> float:
    """Run *sessions* sessions of *turns* turns in a warm log, and return turns a second."""
    agent = talker(folder, turns)
    async with open_runtime(folder / f"{on}.db", on=on) as runtime:
        await (await runtime.start(talker(folder, warm), "Begin.")).result()
        began = time.perf_counter()
        started = await asyncio.gather(*(runtime.start(agent, "Begin.") for _ in range(sessions)))
        await asyncio.gather(*(wait(session) for session in started))
        took = time.perf_counter() - began
    return sessions * turns / took


def measure(count: int = ROUNDS, sessions: int = SESSIONS) -> list[Row]:
    """Return the rows of this bench."""
    rounds = []
    for _ in range(count):
        with tempfile.TemporaryDirectory(dir=".") as name:
            folder = Path(name)
            inside = run(play(folder / "host.db", sessions, TURNS_EACH))
            awaited = run(ask(folder, "inline", sessions, TURNS_EACH))
        with tempfile.TemporaryDirectory(dir=".") as name:
            session_reader = run(ask(Path(name), "inline", sessions, TURNS_EACH, wait=events))
        rounds.append((inside, awaited, session_reader))
    with tempfile.TemporaryDirectory(dir=".") as name:
        on_ray = run(ask(Path(name), "ray", sessions, TURNS_EACH))
    inside, inline, session_reader = (median(taken) for taken in zip(*rounds, strict=True))
    return [
        Row(
            name=f"{sessions} sessions through the Python API",
            value=inline,
            unit="turns/s",
            floor="≥ 0.8 ×",
            ratio=median(outside / within for within, outside, _ in rounds),
            to=f"inside the host ({inside:,.0f}/s)",
        ),
        Row(
            name="likewise, each followed with `events`",
            value=session_reader,
            unit="turns/s",
            ratio=median(outside / within for within, _, outside in rounds),
            to="inside the host",
        ),
        Row(
            name="likewise, on Ray",
            value=on_ray,
            unit="turns/s",
            floor="≥ 0.15 ×",
            ratio=on_ray / inside,
            to="inside the host, inline",
        ),
    ]


def sample() -> list[Row]:
    """Return the rows of one round of half the sessions, with half of each floor."""
    return [eased(row) for row in measure(1, SESSIONS // 2)]


if __name__ == "__main__":
    print(plain(measure()))
