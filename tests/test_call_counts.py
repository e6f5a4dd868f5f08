"""What a turn, a start, a resume and an append take, in calls: load and machine do not change it.

Counted are the calls of Python and of built-in functions that CPython tells a profiler.
"""

import gc
import sys
import tempfile
from uuid import uuid4

import pytest

from bench.conversation import AGENT, Talker, hosted, loaded, record
from cueline.actors.inbox import ask_start
from cueline.client.runtime import Runtime, open_runtime
from cueline.events.inbox import StartAsked, StopAsked
from cueline.events.journal import FactWrite
from cueline.events.store import ANY
from cueline.runtime.loop import run
from cueline.runtime.on_ray import Attached
from cueline.runtime.open_log import open_log
from cueline.runtime.up import record_of
from cueline.stores import sqlite_writer
from tests.scripted import HELLO

SESSIONS = 10
SHORT, LONG = 5, 15
"""Turns of a session; the difference is what a turn takes."""
ADDRESS = "127.0.0.1:1"

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="each version of CPython calls differently"
)


class Calls:
    """Counts the calls of this thread while its block runs."""

    def __init__(self):
        self.count = 0

    def __enter__(self):
        gc.disable()
        sys.setprofile(self._hear)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        gc.enable()

    def _hear(self, _frame, event, _what):
        self.count += event in ("call", "c_call")


async def calls_of_sessions(log, turns):
    async with hosted(log, Talker(turns)) as (host, _):
        asked = StartAsked(agent=AGENT, goal="Begin.", asked_at=log.clock.now())
        streams = [await ask_start(log.journal(), uuid4().hex, asked) for _ in range(SESSIONS)]
        with Calls() as calls:
            await host.activate_all(streams)
            for stream in streams:
                await host.settled(stream)
    return calls.count


async def a_turn(log):
    """One of a session's, among ten sessions."""
    more = await calls_of_sessions(log, LONG) - await calls_of_sessions(log, SHORT)
    return more / SESSIONS / (LONG - SHORT)


async def a_session_inline(log):
    """From its start to its result, a single reply."""
    async with open_runtime(log.url, on="inline") as runtime:
        await (await runtime.start(HELLO, "Hello.")).result()
        with Calls() as calls:
            await (await runtime.start(HELLO, "Hello.")).result()
    return calls.count


async def a_start_on_ray(log):
    """Its part in the process that asks a running `up`."""
    record = record_of(log, ADDRESS)
    record.write(log.url)
    client = Runtime(log, Attached(log, record))
    await client.start(HELLO, "Hello.")
    with Calls() as calls:
        await client.start(HELLO, "Hello.")
    return calls.count


async def a_resume(log):
    """Of 200 events."""
    if not (await log.store.last_position()):
        await record(log, 40)
    with Calls() as calls:
        await loaded(log, uuid4().hex)
    return calls.count


async def an_append(log):
    """Of one fact."""
    write = FactWrite("inbox-default/bench", [[StopAsked()]], ANY)
    with Calls() as calls:
        await log.journal().append([write], uuid4().hex)
    return calls.count


COUNTED = {
    a_turn: 1092,
    a_session_inline: 4004,
    a_start_on_ray: 1203,
    a_resume: 9828,
    an_append: 421,
}
"""A number that grows says that everybody waits longer: find out why before writing it here."""


@pytest.mark.parametrize("what", COUNTED, ids=lambda what: what.__name__)
def test_it_takes_as_many_calls_as_are_recorded(what, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", ADDRESS)
    # How long the disk takes decides where a commit is awaited.
    monkeypatch.setattr(sqlite_writer, "QUICK_COMMIT_SECONDS", 60.0)

    async def counts(folder):
        async with open_log(folder) as log:
            return [await what(log) for _ in range(4)][1:]

    # Not the folder that pytest would give: how deep it is counts, too.
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("CUELINE_KEYS_FOLDER", f"{folder}/no-keys")
        # On a busy machine some rounds wait once more.
        now = round(min(run(counts(f"{folder}/log.db"))))

    assert now == pytest.approx(COUNTED[what], rel=0.02), (
        f"{what.__name__} takes {now} calls; if it has to, write that into COUNTED"
    )
