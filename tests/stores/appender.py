"""A process that appends: `python -m tests.stores.appender LOG STREAM HOW`."""

import asyncio
import json
import resource
import sys

from cueline.clock import SystemClock
from cueline.errors import StoreError
from cueline.events.store import ANY, Write
from cueline.stores.sqlite import SqliteStore
from cueline.testing.event_store_example import INBOX, fact


def tell(what):
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


async def append(store, stream, appends, together):
    """Append in order, some at a time; each version told was acknowledged before."""
    epoch = await store.acquire(stream, "appender", 0)
    for version in range(0, appends, together):
        asked = [
            store.append(
                [
                    Write(stream, [fact(b"x" * 300)], version + place, epoch),
                    Write(INBOX, [fact(b"y" * 300)], ANY),
                ],
                key=f"{version + place}",
            )
            for place in range(together)
        ]
        for result in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(result, StoreError):
                tell(type(result).__name__)
                return
            tell(result.versions[0])


async def main(path, stream, how):
    store = SqliteStore.open(path, SystemClock())
    if largest := how.get("largest_file"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    await append(store, stream, how["appends"], how.get("together", 1))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))
