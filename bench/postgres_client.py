"""A client process of the bench `postgres`: `python -m bench.postgres_client append|follow URL`."""

import asyncio
import json
import sys
import time

from bench.append import draft
from cueline.clock import SystemClock
from cueline.events.store import EventStore, Write
from cueline.runtime.loop import run
from cueline.stores.backend import backend_of

CALLERS = 64
FOLLOWED = 1_000


async def append(store: EventStore) -> None:
    """Append with all callers after a line on stdin; print the time of each append in ms."""
    name = f"session-default/{time.time_ns()}"
    streams = [f"{name}.{caller}" for caller in range(CALLERS)]
    epochs = [await store.acquire(stream, "bench", 0) for stream in streams]
    versions = dict.fromkeys(streams, 0)
    taken: list[float] = []

    async def call(stream: str, epoch: int, until: float) -> None:
        while (began := time.time()) < until:
            await store.append([Write(stream, [draft()], versions[stream], epoch)], key=None)
            taken.append(1_000 * (time.time() - began))
            versions[stream] += 1

    print("ready", flush=True)
    while line := sys.stdin.readline():
        begins, until = map(float, line.split())
        await asyncio.sleep(begins - time.time())
        await asyncio.gather(*(call(*each, until) for each in zip(streams, epochs, strict=True)))
        print(json.dumps(taken), flush=True)
        taken.clear()


async def follow(store: EventStore) -> None:
    """Follow the log; print the age of each event when it was read, in ms, by its `occurred_us`."""
    after = await store.last_position()
    print("ready", flush=True)
    taken: list[float] = []
    async for event in store.follow(after):
        taken.append(time.time() * 1_000 - event.occurred_us / 1_000)
        if len(taken) == FOLLOWED:
            break
    print(json.dumps(taken))


async def main(what: str, url: str) -> None:
    """Append to the log at *url*, or follow it, by *what*."""
    store = backend_of(url).open(SystemClock())
    try:
        await {"append": append, "follow": follow}[what](store)
    finally:
        await store.close()


if __name__ == "__main__":
    run(main(*sys.argv[1:]))
