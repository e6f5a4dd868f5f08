"""A process that appends to a log in PostgreSQL: `python -m tests.stores.postgres_writer URL N`.

It prints the key of each append that was acknowledged.
"""

import asyncio
import itertools
import sys

from cueline.clock import SystemClock
from cueline.events.store import ANY, Write
from cueline.stores.backend import backend_of
from cueline.testing.event_store_example import fact


async def append_for_ever(url, name):
    store = backend_of(url).open(SystemClock())
    streams = [f"inbox-default/{name}", "inbox-default/shared"]

    async def one(key):
        writes = [Write(stream, [fact(key.encode())] * 2, ANY) for stream in streams]
        await store.append(writes, key=key)
        sys.stdout.write(f"{key}\n")
        sys.stdout.flush()

    for number in itertools.count():
        await asyncio.gather(*(one(f"{name}-{number}-{place}") for place in range(8)))


if __name__ == "__main__":
    asyncio.run(append_for_ever(*sys.argv[1:]))
