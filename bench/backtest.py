"""Measures the time to judge recorded calls by a policy, as `cueline policy backtest` does.

The log has one conversation of 250,000 events; each turn requests a call.
The policy has two rules: one matches the tool, the other matches commands in the call's text.
Most of the time is needed to read each row, and to decode the facts about calls.
The quickest of several rounds counts, because other work of the machine only adds time.
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
    """Record a conversation, and return the number of its events."""
    async with open_log(path) as log:
        await record(log, TURNS)
        return await log.store.last_position()


async def tried(path: Path) -> float:
    """Return the seconds in which the policy judges the whole log."""
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
