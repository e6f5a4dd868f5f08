"""Measures the memory of an active session, of its prompt, and of a session at rest.

An active idle session has no effect in flight: it waits for a near retry, and its timer is set.
While a model call is in flight, its task and the provider's client take more memory. A separate row
has this memory, for a model that only waits. It has no floor, because the memory belongs to the
call.

The bench compares the memory that Python holds, by `tracemalloc`, with many sessions and without
any. Each session has had the same number of turns. The log is on disk.
The fence that a runner keeps for each session is not counted, because it is not in the host.
Floors: 4 KB a session beside its prompt; 1.2 × its text for the prompt; 0 at rest.
"""

import asyncio
import gc
import tempfile
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from sys import getsizeof
from uuid import uuid4

from bench.conversation import AGENT, Talker, hosted
from bench.table import Row, plain
from cueline.actors.inbox import ask_start
from cueline.actors.model_port import DeltaSink, ModelReply, ModelRequest, drop_delta
from cueline.actors.session_host import SessionHost
from cueline.clock import SystemClock
from cueline.errors import ProviderUnavailableError
from cueline.events.agent import AgentSpec
from cueline.events.agent_parts import BreakerPolicy, RetryPolicy
from cueline.events.inbox import StartAsked
from cueline.runtime.loop import run
from cueline.runtime.open_log import OpenLog, open_log
from cueline.stores.waiting import take_turns

SESSIONS = 200
TURNS = 10
WARM_UPS = 2
NEAR = RetryPolicy(base_seconds=1.5, jitter=0)
# All fail at once, and each is to wait for its own retry, not for a breaker.
PATIENT = AGENT.model_copy(update={"retry": NEAR, "breaker": BreakerPolicy(threshold=0)})


class Patience(SystemClock):
    """A clock on which each sleep lasts until `over` is set."""

    def __init__(self) -> None:
        self.over = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        await self.over.wait()
        await super().sleep(seconds)


class Busy(Talker):
    """A model that fails or blocks at the first attempt of its last turn."""

    def __init__(self, turns: int, over: asyncio.Event | None) -> None:
        super().__init__(turns)
        self.turns = turns
        self.over = over
        self.in_flight = 0

    async def reply(self, request: ModelRequest, deltas: DeltaSink = drop_delta) -> ModelReply:
        """See `Model.reply`."""
        if request.turn > self.turns and request.attempt == 1:
            if self.over is None:
                raise ProviderUnavailableError("overloaded", "try again later")
            self.in_flight += 1
            await self.over.wait()
            self.in_flight -= 1
        return await super().reply(request, deltas)


def held() -> int:
    """Return the number of bytes that Python holds."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


async def weigh(log: OpenLog, clock: Patience, busy: Busy) -> tuple[float, float, float, float]:
    """Return bytes a session: active without its prompt, its prompt, its text, at rest."""
    async with hosted(log, busy, clock) as (host, runner):
        tracemalloc.start()
        # What the process keeps once is held after as many sessions have come and gone, twice.
        for round_ in range(WARM_UPS):
            await bring(log, host, f"warm.{round_}", busy)
            await rest(log, host, clock)
            clock.over.clear()
        before = held()
        await bring(log, host, "weighed", busy)
        fences = deep(runner._served) // (WARM_UPS + 1)  # noqa: SLF001 - of the sessions that are weighed; the runner's, not the host's
        active = held() - before - fences
        prompts = [loop._entity.prompt.messages for loop in host._loops.values()]  # noqa: SLF001 - what a prompt weighs is known to its owner alone
        text = sum(len(message) for messages in prompts for message in messages)
        messages = sum(getsizeof(message) for messages in prompts for message in messages)
        prompt = messages + sum(getsizeof(each) for each in prompts)
        del prompts
        await rest(log, host, clock)
        at_rest = held() - before - fences
        tracemalloc.stop()
    return (active - prompt) / SESSIONS, prompt / SESSIONS, text / SESSIONS, at_rest / SESSIONS


async def bring(log: OpenLog, host: SessionHost, name: str, busy: Busy) -> None:
    """Start sessions, and wait until each waits for a near retry or for the model."""
    for number in range(SESSIONS):
        host.activate(await ask(log, f"{name}.{number}", PATIENT))
    while len(host._alarm._moments) + busy.in_flight < SESSIONS:  # noqa: SLF001 - nobody else knows who waits
        await take_turns()
    await ask(log, f"{name}.last", PATIENT)  # the writer holds the last batch until the next


async def rest(log: OpenLog, host: SessionHost, clock: Patience) -> None:
    """Let all sessions end."""
    clock.over.set()
    while await host.active():
        await take_turns()
    await ask(log, uuid4().hex, PATIENT)


async def ask(log: OpenLog, name: str, agent: AgentSpec) -> str:
    """Request a session, and return its stream."""
    asked = StartAsked(agent=agent, goal="Begin.", asked_at=datetime.now(UTC))
    return await ask_start(log.journal(), name, asked)


def deep(value: object) -> int:
    """Return the bytes of *value* and of the values in it."""
    if isinstance(value, dict):
        return getsizeof(value) + sum(map(deep, value.items()))
    if isinstance(value, tuple):
        return getsizeof(value) + sum(map(deep, value))
    if hasattr(value, "calls"):
        return getsizeof(value) + deep(value.calls)
    return getsizeof(value)


async def weighed(*, in_flight: bool) -> tuple[float, float, float, float]:
    """Measure in a new log: sessions wait for a retry or, if *in_flight*, for a model call."""
    clock = Patience()
    busy = Busy(TURNS, clock.over if in_flight else None)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        async with open_log(Path(folder, "log.db")) as log:
            return await weigh(log, clock, busy)


def measure() -> list[Row]:
    """Return the rows of this bench."""
    active, prompt, text, at_rest = run(weighed(in_flight=False))
    calling, *_ = run(weighed(in_flight=True))
    return [
        Row(
            name="memory of an active idle session beside its prompt",
            value=active,
            unit="B",
            floor="≤ 4,096",
        ),
        Row(
            name="memory of a session beside its prompt while its model call is in flight",
            value=calling,
            unit="B",
        ),
        Row(
            name=f"its prompt after {TURNS} turns",
            value=prompt,
            unit="B",
            floor="≤ 1.2 ×",
            ratio=prompt / text,
            to="its text",
        ),
        Row(
            name="memory of a session at rest",
            value=max(0.0, round(at_rest, -1)),
            unit="B",
            floor="≤ 50",
        ),
    ]


if __name__ == "__main__":
    print(plain(measure()))
