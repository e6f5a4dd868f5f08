"""Measures model calls over the network, and live text; the model server is a separate process.

A call of cueline is compared with the same call by the bare SDK. A session has 100 turns; each is a
streamed reply of ten pieces and a call of a trivial tool. The median turn counts. The bare client
sends a conversation that grows in the same way.
Floor: a turn takes at most 2 ms longer than the bare call and the turn's two commits by SQLite
alone.
Floor: `session.stream()` yields the first piece at most 5 ms later than the bare SDK. This time is
counted from the record of the call's start.
A watcher in another process follows one session with `stream()`.
Floor: the watcher gets 99 of 100 pieces within 100 ms after the server sent them.
About 1 ms of a call is the time to build the request from the whole transcript. This happens in
each turn, and takes longer as the conversation grows. A cache of the built messages would save this
time.
"""

import multiprocessing
import os
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles

from anthropic import AsyncAnthropic

from bench.api import talker
from bench.bare import bare, played
from bench.conversation import AGENT, look_up
from bench.model_server import model_server
from bench.table import Row, plain
from cueline import Agent, TextDelta, open_runtime
from cueline.client.client import open_client
from cueline.events.session import ModelStarted
from cueline.runtime.loop import run
from cueline.runtime.open_log import open_log

TURNS = 100
WARM = 250
ROUNDS = 3
PIECES = 150
KEY = "BENCH_KEY"
"""The variable with the key, which no server checks."""


def agent(url: str, model: str) -> Agent:
    """Return an agent that uses the model server at *url*."""
    return Agent(
        name="bench",
        provider="anthropic",
        model=model,
        base_url=url,
        key_variable=KEY,
        instructions=AGENT.instructions,
        tools=[look_up],
        limits=AGENT.limits,
        on_unknown_price="ignore",
    )


def milliseconds(seconds: Sequence[float]) -> float:
    """Return the median of *seconds*, in milliseconds."""
    return 1000 * median(seconds)


async def bare_calls(url: str) -> tuple[float, float]:
    """Return the time of a call by the SDK, and the time until its first piece, in ms."""
    client = AsyncAnthropic(base_url=url, api_key="bench", max_retries=0)
    tool = {"name": "look_up", "description": "Look it up.", "input_schema": {"type": "object"}}
    messages: list[dict[str, object]] = [{"role": "user", "content": "Begin."}]
    firsts, wholes = [], []
    for turn in range(TURNS):
        began, first, text = time.perf_counter(), 0.0, ""
        async with await client.messages.create(
            model=f"10x0t{TURNS}",
            max_tokens=1000,
            system=AGENT.instructions,
            messages=messages,
            tools=[tool],
            stream=True,
        ) as stream:
            async for event in stream:
                if event.type == "content_block_delta" and event.delta.type == "text_delta":
                    first = first or time.perf_counter() - began
                    text += event.delta.text
        wholes.append(time.perf_counter() - began)
        firsts.append(first)
        call = {
            "type": "tool_use",
            "id": f"c{turn}",
            "name": "look_up",
            "input": {"query": "000001"},
        }
        result = {"type": "tool_result", "tool_use_id": f"c{turn}", "content": "Found."}
        said = [{"type": "text", "text": text}, call]
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": [result]}]
    await client.close()
    return milliseconds(wholes), milliseconds(firsts)


async def turns(path: Path, url: str) -> tuple[float, float]:
    """Return the time of a turn, and the time from its start to its first piece, in ms."""
    came: dict[str, int] = {}
    async with open_runtime(path, on="inline") as runtime:
        await (await runtime.start(talker(path.parent, WARM), "Begin.", id="warm")).result()
        session = await runtime.start(agent(url, f"10x0t{TURNS}"), "Begin.", id="bench")
        async for each in session.stream():
            if isinstance(each, TextDelta):
                came.setdefault(each.effect, time.time_ns())
        started = {
            event.effect: recorded.recorded_us
            async for recorded, event in runtime.log.journal().read(session.stream_name)
            if isinstance(event, ModelStarted)
        }
    at = list(started.values())
    whole = [(after - before) / 1e6 for before, after in pairwise(at)]
    first = [came[effect] / 1e9 - us / 1e6 for effect, us in started.items() if effect in came]
    return milliseconds(whole), milliseconds(first)


def one_round(url: str) -> tuple[float, float, float]:
    """Return the extra ms of a turn and of its first piece, and the ms of two commits."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        bare_whole, bare_first = run(bare_calls(url))
        whole, first = run(turns(folder / "log.db", url))
        warm, appends = run(played(folder / "log.db"))
        commits = 2000 * bare(folder / "bare.db", warm, appends) / len(appends)
    return whole - bare_whole - commits, first - bare_first, commits


async def host(path: Path, url: str, ready: Connection) -> None:
    """Run one session with a streaming reply until it ends."""
    async with open_runtime(path, on="inline") as runtime:
        session = await runtime.start(agent(url, f"{PIECES}x50"), "Begin.", id="one")
        ready.send(None)
        await session.result()


def hosting(path: Path, url: str, ready: Connection) -> None:
    """Run `host` in a separate process."""
    run(host(path, url, ready))


async def watched(path: Path) -> float:
    """Return the 99th percentile of a piece's time from the server to this process, in ms."""
    taken, text = [], ""
    async with open_client(path) as client:
        async for each in client.session("one").stream():
            if isinstance(each, TextDelta):
                now = time.time_ns()
                # A piece may be held back in part: it may be the beginning of a secret.
                *whole, text = (text + each.text).split(" ")
                taken += [(now - int(sent)) / 1e6 for sent in whole]
    assert len(taken) > PIECES / 2, f"{len(taken)} of {PIECES} pieces came"
    return quantiles(taken, n=100)[98]


def from_another_process(folder: Path, url: str) -> float:
    """Return the result of `watched` for a session that another process drives."""
    path = folder / "one.db"

    async def make() -> None:
        async with open_log(path):
            pass

    run(make())
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=hosting, args=(path, url, there))
    process.start()
    here.recv()
    try:
        return run(watched(path))
    finally:
        process.join()


def measure() -> list[Row]:
    """Return the rows of this bench."""
    os.environ[KEY] = "bench"
    with model_server() as url, tempfile.TemporaryDirectory(dir=".") as name:
        rounds = [one_round(url) for _ in range(ROUNDS)]
        beside, first, commits = (median(taken) for taken in zip(*rounds, strict=True))
        way = from_another_process(Path(name), url)
    return [
        Row(
            name=f"a model call beside the bare SDK and two commits ({commits:.2f} ms)",
            value=beside,
            unit="ms",
            floor="≤ 2",
        ),
        Row("its first piece, after the bare SDK's", first, "ms", "≤ 5"),
        Row("a piece on its way to another process, p99", way, "ms", "≤ 100"),
    ]


if __name__ == "__main__":
    print(plain(measure()))
