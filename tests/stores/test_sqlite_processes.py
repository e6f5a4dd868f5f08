"""What only real processes show."""

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from cueline.clock import SystemClock
from cueline.events.store import ANY, Write
from cueline.stores.sqlite import SqliteStore
from cueline.testing.event_store_example import (
    INBOX,
    all_of,
    check_chain,
    facts,
    positions,
    whole_log,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture
def start(tmp_path, popen):
    """Start a process that appends to one log; it says what was acknowledged."""

    def start(name, **how):
        command = [sys.executable, "-m", "tests.stores.appender", str(tmp_path / "log.db"), name]
        process = popen(
            [*command, json.dumps(how)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert "ready\n" == process.stdout.readline()
        return process

    return start


def go(*processes):
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()


def acknowledged(lines):
    """Return the versions that the process was told of, and the errors."""
    said = [json.loads(line) for line in lines if line.endswith("\n")]
    return [s for s in said if isinstance(s, int)], [s for s in said if isinstance(s, str)]


async def check_whole(store, *streams):
    events = await whole_log(store)
    assert list(range(1, len(events) + 1)) == positions(events)
    for stream in streams:
        check_chain(await all_of(store, stream))
    return events


async def test_two_processes_append_to_one_log_and_neither_starves(start, tmp_path):
    names = ["session-default/a", "session-default/b"]
    processes = [start(name, appends=100_000) for name in names]

    # Neither ends before both have come so far: which is quicker to begin is chance.
    go(*processes)
    for process in processes:
        told = [process.stdout.readline() for _ in range(150)]
        assert (list(range(1, 151)), []) == acknowledged(told)
    for process in processes:
        process.kill()
        process.wait()

    store = SqliteStore.open(tmp_path / "log.db", SystemClock())
    events = await check_whole(store, *names, INBOX)
    streams = [event.stream for event in events if event.stream != INBOX]
    began = max(map(streams.index, names))
    ended = len(streams) - max(streams[::-1].index(name) for name in names)
    together = Counter(streams[began:ended])
    assert all(together[name] >= together.total() // 10 for name in names)
    await store.close()


# 004-043
async def test_what_a_killed_process_was_told_is_there(start, tmp_path):
    name = "session-default/a"
    process = start(name, appends=100_000, together=3)
    go(process)
    told = [process.stdout.readline() for _ in range(60)]

    process.send_signal(signal.SIGKILL)
    versions, _ = acknowledged([*told, *process.stdout.readlines()])

    store = SqliteStore.open(tmp_path / "log.db", SystemClock())
    await check_whole(store, name, INBOX)
    assert max(versions) <= (await store.head(name)).version <= max(versions) + 3
    await store.append([Write(INBOX, facts(1), ANY)], key="after")
    await store.close()


async def test_a_log_that_may_not_grow_goes_on_when_it_may(start, tmp_path):
    name = "session-default/a"
    process = start(name, appends=400, largest_file=300_000)
    go(process)
    versions, errors = acknowledged(process.stdout.readlines())

    store = SqliteStore.open(tmp_path / "log.db", SystemClock())
    await check_whole(store, name, INBOX)
    assert errors
    assert {"UnknownOutcomeError", "LogUnavailableError"} >= set(errors)
    assert max(versions) <= (await store.head(name)).version <= max(versions) + 1
    await store.append([Write(INBOX, facts(1), ANY)], key="after")
    await store.close()
