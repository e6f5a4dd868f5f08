"""Measures the HTTP server: live events, requests, the page of a long session, and doing nothing.

The server is a process of its own. 50 sessions get an event each 50 ms in turn; 200 readers follow
them by server-sent events, and then 1,000.
Floor: 99 of 100 events are received 250 ms after they were appended, by 200 readers.
A request for one session is compared with the same call of the client in Python.
Floor: 2 ms more at the median.
Floor: the page of a session of 20,000 events comes in 0.5 s.
Floor: without requests, the server takes 1 % of a core.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles

import httpx2
import psutil

from bench.conversation import AGENT
from bench.table import Row
from cueline import Agent, open_runtime, tool
from cueline.client.client import open_client
from cueline.events.codes import Cause
from cueline.events.inbox import StartAsked
from cueline.events.journal import FactWrite
from cueline.events.session import SessionStarted, SessionWaiting
from cueline.events.store import ANY, NO_STREAM
from cueline.events.stream import sibling, stream_name
from cueline.runtime.loop import run
from cueline.runtime.open_log import OpenLog, open_log

SESSIONS = 50
READERS = (200, 1000)
EVENTS = 100
PAUSE = 0.05
REQUESTS = 300
TURNS = 4000
IDLE_SECONDS = 10
TOKEN = "a-token-of-the-bench"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@asynccontextmanager
async def server(log: Path) -> AsyncIterator[tuple[str, psutil.Process]]:
    """Serve *log* in a process; yield its URL and the process."""
    words = ("-m", "cueline.cli", "serve", "--json", "--port", "0", "--log", str(log))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *words,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"CUELINE_TOKEN": TOKEN},
    )
    assert process.stdout is not None
    url = json.loads(await process.stdout.readline())["url"].removesuffix("/v1")
    try:
        yield url, psutil.Process(process.pid)
    finally:
        process.terminate()
        await process.wait()


async def waiting(log: OpenLog) -> list[str]:
    """Record sessions that wait, and return their streams."""
    now = datetime.now(UTC)
    streams = [stream_name("session", f"s{n}") for n in range(SESSIONS)]
    for each in streams:
        asked = StartAsked(agent=AGENT, goal="Go", asked_at=now)
        begun = SessionStarted(agent=AGENT, goal="Go", open=False, attached=False, epoch=1)
        writes = [
            FactWrite(stream=sibling(each, "inbox"), steps=[[asked]], expected_version=NO_STREAM),
            FactWrite(stream=each, steps=[[begun]], expected_version=NO_STREAM),
        ]
        await log.journal().append(writes, key=each)
    return streams


async def delays(log: OpenLog, url: str, streams: list[str], readers: int) -> list[float]:
    """Return the times from the append of an event to its receipt by each reader, in ms."""
    taken: list[float] = []
    following, complete = asyncio.Semaphore(0), asyncio.Event()

    async def follow(http: httpx2.AsyncClient, stream: str) -> None:
        name = stream.partition("/")[2]
        async with http.stream("GET", f"/v1/sessions/{name}/events") as answer:
            async for line in answer.aiter_lines():
                if not line.startswith("data: "):
                    continue
                told = json.loads(line[6:])
                if told["type"] == "SessionStarted":
                    following.release()
                    continue
                recorded = datetime.fromisoformat(told["recorded_at"])
                taken.append(1000 * (time.time() - recorded.timestamp()))
                if len(taken) == EVENTS * readers // SESSIONS:
                    complete.set()

    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(base_url=url, headers=HEADERS, limits=limits, timeout=60) as http:
        tasks = [asyncio.create_task(follow(http, streams[n % SESSIONS])) for n in range(readers)]
        for _ in tasks:
            await following.acquire()
        for n in range(EVENTS):
            fact = SessionWaiting(kind="message", cause=Cause(code="asked"))
            stream = streams[n % SESSIONS]
            write = FactWrite(stream=stream, steps=[[fact]], expected_version=ANY)
            await log.journal().append([write], key=f"{readers}.{n}")
            await asyncio.sleep(PAUSE)
        async with asyncio.timeout(30):
            await complete.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return taken


@tool(read_only=True)
async def look(n: int) -> str:
    """Look."""
    return f"seen {n}"


async def long_session(path: Path) -> int:
    """Run a session of many turns, and return its version."""
    call = '{{ text = "step {n}", calls = [{{ name = "look", arguments = {{ n = {n} }} }}] }}'
    script = ", ".join(call.format(n=n) for n in range(TURNS))
    agent = Agent(
        name="long",
        provider="scripted",
        model="long",
        parameters={"script": f'reply = [{script}, {{ text = "Done." }}]'},
        tools=[look],
        limits=AGENT.limits.model_copy(update={"max_turns": 10 * TURNS}),
    )
    async with open_runtime(path, on="inline") as runtime:
        await (await runtime.start(agent, "Go", id="long", open=True)).result()
        return (await runtime.show("long")).version


async def figures(folder: Path) -> list[Row]:
    """Return the rows of this bench."""
    path, rows = folder / "log.db", []
    async with open_log(path) as log:
        streams = await waiting(log)
        async with server(path) as (url, process):
            process.cpu_percent()
            await asyncio.sleep(IDLE_SECONDS)
            rows.append(
                Row("a server without requests", process.cpu_percent(), "% of a core", "≤ 1")
            )
            for readers in READERS:
                taken = await delays(log, url, streams, readers)
                floor = "≤ 250" if readers == READERS[0] else ""
                name = f"an event on its way to each of {readers:,} readers, p99"
                rows.append(Row(name, quantiles(taken, n=100)[98], "ms", floor))
            rows.append(await beside_python(path, url))
    version = await long_session(folder / "long.db")
    async with (
        server(folder / "long.db") as (url, _),
        httpx2.AsyncClient(base_url=url, headers=HEADERS) as http,
    ):
        took = await seconds(http, "/sessions/long")
        rows.append(Row(f"the page of a session of {version:,} events", took, "s", "≤ 0.5"))
    return rows


async def beside_python(path: Path, url: str) -> Row:
    """Return the time of a request, less that of the same call in Python."""
    async with (
        open_client(path) as client,
        httpx2.AsyncClient(base_url=url, headers=HEADERS) as http,
    ):
        bare, served = [], []
        for _ in range(REQUESTS):
            began = time.perf_counter()
            await client.show("s1")
            bare.append(time.perf_counter() - began)
            served.append(await seconds(http, "/v1/sessions/s1"))
    more = 1000 * (median(served) - median(bare))
    return Row("a request over HTTP beside the client's call", more, "ms", "≤ 2")


async def seconds(http: httpx2.AsyncClient, path: str) -> float:
    """Return the time of one request."""
    began = time.perf_counter()
    answer = await http.get(path)
    assert answer.status_code == httpx2.codes.OK, answer.text
    return time.perf_counter() - began


def measure() -> list[Row]:
    """Return the rows of this bench."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        return run(figures(Path(name).resolve()))
