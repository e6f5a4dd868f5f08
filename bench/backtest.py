"""Backtest: a policy is tried on the past, as `cueline policy backtest` tries it.

The log holds one conversation of 250,000 events; each turn asks for a call.
Two rules look at it: one at the tool, one for commands in its text.
What takes the time is reading each row and decoding the facts that say something of a call.
Of several rounds the quickest counts: what else the machine does only adds.
Floor: 20 s for a million events.
"""

import tempfile
import time
from pathlib import Path

from bench.conversation import record
from bench.table import Row
from cueline.client.policies import backtest_policy
from cueline.events.agent import Policy, Rule
from cueline.runtime.loop import run
from cueline.runtime.open_log import open_log

TURNS = 50_000
ROUNDS = 3
POLICY = Policy(
    rules=(
        Rule(name="bench", answer="deny", tools=("look*",)),
        Rule(name="pushes", answer="deny", commands=("git push*",)),
    )
)


async def recorded(path: Path) -> int:
    """Record a past, and return how many events it has."""
    async with open_log(path) as log:
        await record(log, TURNS)
        return await log.store.last_position()


async def tried(path: Path) -> float:
    """Return the seconds that the policy takes over the whole past."""
    began = time.perf_counter()
    async with open_log(path) as log:
        test = await backtest_policy(log, POLICY)
    seconds = time.perf_counter() - began
    answers = [call.answer for call in test.calls]
    assert answers.count("deny") >= TURNS, "each call was judged"
    return seconds


def measure() -> list[Row]:
    """Return the rows of this bench."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder, "log.db")
        events = run(recorded(path))
        seconds = min(run(tried(path)) for _ in range(ROUNDS))
    return [
        Row(
            name="a policy over a million events of the past",
            value=seconds * 1e6 / events,
            unit="s",
            floor="≤ 20",
        )
    ]
