"""What a program sees of a reply while it comes."""

import asyncio
from dataclasses import replace

import cueline
from cueline.client.live_text import live_text
from cueline.client.runtime import open_runtime
from cueline.client.session import VersionedEvent
from cueline.testing.wait import await_until
from tests.scripted import HELLO, scripted

SPEAKS = """
[[reply]]
thinking = "An evening, then."
text = "Good evening, Ada."
chunk_seconds = 1
"""
BREAKS_OFF = """
[[reply]]
turn = 1
attempt = 1
text = "Good evening,"
chunk_seconds = 1
cut = true

[[reply]]
turn = 1
text = "Good morning."
chunk_seconds = 1
"""


async def told(session, clock, **after):
    """Return what `stream` yields while time passes."""
    came = []

    async def watch():
        came.extend([each async for each in session.stream(**after)])

    watching = asyncio.create_task(watch())
    while not watching.done():
        await clock.advance(0.5)
    await watching
    return came


def texts(came, kind="text"):
    return [each.text for each in came if isinstance(each, cueline.TextDelta) and each.kind == kind]


async def test_a_reply_comes_piece_by_piece_and_then_as_it_is_recorded(runtime, clock):
    async with runtime() as here:
        session = await here.start(scripted(SPEAKS), "Hello", id="one")
        came = await told(session, clock)

    assert ["An", " evening,", " then."] == texts(came, "thinking")
    assert ["Good", " evening,", " Ada."] == texts(came)
    last = max(at for at, each in enumerate(came) if isinstance(each, cueline.TextDelta))
    types = [each.event.type for each in came[last + 1 :]]
    assert ["ModelReplied", "SessionCompleted"] == types


async def test_the_events_are_those_of_events(runtime, clock):
    async with runtime() as here:
        session = await here.start(scripted(SPEAKS), "Hello", id="one")
        came = await told(session, clock, after=1)
        events = [each async for each in session.events(after=1)]

    assert events == [each for each in came if isinstance(each, VersionedEvent)]


async def test_a_reply_that_breaks_off_is_another_attempt_with_pieces_of_its_own(runtime, clock):
    async with runtime() as here:
        session = await here.start(scripted(BREAKS_OFF), "Hello", id="one")
        came = await told(session, clock)

    pieces = [each for each in came if isinstance(each, cueline.TextDelta)]
    assert [
        ("1.m", 1, "Good"),
        ("1.m", 1, " evening,"),
        ("1.m", 2, "Good"),
        ("1.m", 2, " morning."),
    ] == [(piece.effect, piece.attempt, piece.text) for piece in pieces]
    failed = next(
        at
        for at, each in enumerate(came)
        if getattr(each, "event", None) and each.event.type == "ModelFailed"
    )
    assert pieces[1] in came[:failed]
    assert pieces[2] in came[failed:]


async def test_who_comes_late_sees_the_events_only(runtime):
    async with runtime() as here:
        session = await here.start(HELLO, "Hello", id="one")
        await session.result()
        came = [each async for each in session.stream()]

    assert [] == texts(came)
    assert "SessionCompleted" == came[-1].event.type


TALKS = """
[[reply]]
text = "Good evening."
[[reply]]
text = "Still here."
"""


class LateStore:
    """A log that was asked for the owner just before this process took the session up."""

    def __init__(self, store):
        self._store = store
        self.asked = 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def head(self, stream):
        self.asked += 1
        return replace(await self._store.head(stream), owner="another")


async def test_a_host_of_this_process_is_never_connected_to(tmp_path, monkeypatch):
    connected = []

    async def receive(address, *_):
        connected.append(address)

    monkeypatch.setattr("cueline.client.live_text.receive", receive)
    async with open_runtime(tmp_path / "log.db") as here:
        session = await here.start(scripted(TALKS), "Hello", id="one", open=True)
        await session.result()
        late = LateStore(here.log.store)
        with live_text(replace(here.log, store=late), session.stream_name, here.place):
            await session.send("And?")
            await session.result()
            await await_until(lambda: late.asked > 1)

    assert [] == connected
