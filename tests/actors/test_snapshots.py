"""Whatever becomes of its snapshots, a session is what its log says."""

import asyncio
from functools import partial

import pytest
from msgspec.structs import replace

from cueline.actors.entity import Entity
from cueline.actors.fold import fold, keep
from cueline.deciders.session import SESSION as RULES
from cueline.deciders.session import session_of
from cueline.errors import CorruptEventError
from cueline.events.codec import Codec
from cueline.events.inbox import ForkPoint
from cueline.events.journal import Journal
from cueline.events.snapshot import NO_SNAPSHOTS, sealed, unsealed
from cueline.events.store import Write
from cueline.events.stream import category_of
from cueline.stores import MemorySnapshots, SqliteSnapshots
from cueline.testing.event_store_example import fact
from cueline.testing.fakes import says
from cueline.tools.arguments import read_value
from tests.crash import story
from tests.crash.undisturbed import Undisturbed

WHOLE = Undisturbed()
VERSIONS = len(asyncio.run(WHOLE.place.facts(story.SESSION)))
TOLD = {"report": print, "read_output": read_value}
every_version = pytest.mark.parametrize("version", range(1, VERSIONS + 1))


class Reads:
    """A store as it was when streams had *until* events; it notes what of sessions is read."""

    def __init__(self, store, until=VERSIONS):
        self._store = store
        self._until = until
        self.versions = []

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def read(self, stream, after=0, until=None):
        async for event in self._store.read(stream, after, min(until or self._until, self._until)):
            if category_of(stream) == "session":
                self.versions.append(event.version)
            yield event


def journal_of(place, kept, store=None):
    return Journal(store or place.store, Codec(), place.clock.now, kept)


async def whole_after(version, kept, place=WHOLE.place):
    """Return the whole story, with the snapshot that is kept if it rests at *version*."""
    then = Reads(place.store, version)
    await keep(journal_of(place, kept, then), story.SESSION)
    return place


async def loaded(place, kept, stream=story.SESSION, store=None):
    """Return the session, as whoever takes it up next has it."""
    store = store or place.store
    entity = Entity(stream, "next", journal_of(place, kept, store), place.clock, **TOLD)
    await entity._fold(stream, None)
    return entity


async def check_same(place, kept, stream=story.SESSION):
    """See that with snapshots a session is what it is without."""
    whole, quick = [await loaded(place, each, stream) for each in (NO_SNAPSHOTS, kept)]
    assert whole.state == quick.state
    assert whole.prompt.messages == quick.prompt.messages
    assert whole.prompt.rest == quick.prompt.rest
    assert whole.version == quick.version
    state = (await fold(journal_of(place, kept), stream, RULES, session_of(stream)))[0]
    assert whole.state == state
    return quick


@every_version
async def test_a_session_goes_on_from_a_snapshot_of_any_version(version):
    kept = MemorySnapshots(every=0)
    place = await whole_after(version, kept)

    quick = await check_same(place, kept)

    assert version == quick._snapshot


@every_version
async def test_only_what_came_after_a_snapshot_is_read(version):
    kept = MemorySnapshots(every=0)
    place = await whole_after(version, kept)
    counting = Reads(place.store)

    await loaded(place, kept, store=counting)

    # Its own event twice: for its hash, and for the chain to go on from.
    assert [version, *range(version, VERSIONS + 1)] == counting.versions


async def test_the_chain_is_verified_from_a_snapshot_on():
    kept = MemorySnapshots(every=0)
    place = await story.cut(WHOLE.place, WHOLE.events)
    await whole_after(VERSIONS - 5, kept, place)
    events = place.store._tables.streams[story.SESSION].events
    events[-2] = events[-2]._replace(actor="somebody else")

    with pytest.raises(CorruptEventError):
        await loaded(place, kept)


def damaged(content):
    return content[:-1] + bytes([content[-1] ^ 1])


def told(content, **otherwise):
    return sealed(replace(unsealed(content), **otherwise))


DOUBTS = {
    "a flipped bit": damaged,
    "cut off": lambda content: content[: len(content) // 2],
    "nothing": lambda _: b"",
    "another log": partial(told, log_id="another"),
    "another stream": partial(told, stream="session-default/other"),
    "another hash": partial(told, hash=bytes(32)),
    "a version that is not there": partial(told, version=VERSIONS + 1),
    "another fold of the state": lambda c: told(c, folds=(99, unsealed(c).folds[1])),
    "another fold of the prompt": lambda c: told(c, folds=(unsealed(c).folds[0], 99)),
    "another state": partial(told, state=b"\x90"),
    "no state": partial(told, state=b"\xc1"),
    "another prompt": partial(told, prompt=bytes(32)),
}


@pytest.mark.parametrize("doubt", DOUBTS.values(), ids=DOUBTS)
@pytest.mark.parametrize("version", [3, VERSIONS // 2, VERSIONS])
async def test_a_snapshot_in_doubt_is_deleted_and_changes_nothing(version, doubt):
    kept = MemorySnapshots(every=0)
    place = await whole_after(version, kept)
    (row,) = kept._rows[story.SESSION]
    kept._rows[story.SESSION] = [row._replace(content=doubt(row.content))]

    await check_same(place, kept)

    assert {} == kept._rows


@pytest.mark.parametrize("chunk", [b"\x90", b"", b"\xc1", b"\x91\x01"])
async def test_a_damaged_prompt_is_deleted_and_changes_nothing(chunk):
    kept = MemorySnapshots(every=0)
    place = await whole_after(VERSIONS // 2, kept)
    (row,) = kept._rows[story.SESSION]
    kept._rows[story.SESSION] = [row._replace(chunk=chunk)]

    await check_same(place, kept)

    assert {} == kept._rows


async def test_messages_are_kept_once_however_often_it_rests():
    kept = MemorySnapshots(every=0)
    for version in (5, 9, 20, VERSIONS):
        place = await whole_after(version, kept)

    rows = kept._rows[story.SESSION]
    whole = b"".join((await loaded(place, NO_SNAPSHOTS)).prompt.messages)
    assert [5, 9, 20, VERSIONS] == [row.version for row in rows]
    assert len(whole) <= sum(len(row.chunk) for row in rows) < len(whole) + 100
    await check_same(place, kept)


# 003-066, 003-067, C36
async def test_a_session_is_kept_when_much_came_since_the_last_time():
    kept = MemorySnapshots(every=10)
    for version in (9, 10, 11, 20, 21, 22, 30):
        await whole_after(version, kept)

    assert [11, 22] == [row.version for row in kept._rows[story.SESSION]]


@every_version
async def test_a_fork_uses_what_its_parent_was_at_its_version_or_before(version):
    kept = MemorySnapshots(every=0)
    place = await story.cut(WHOLE.place, WHOLE.events, [*story.SAID, says("And more.")])
    place.snapshots = kept
    for each in (5, 15, VERSIONS):
        await whole_after(each, kept, place)
    point = ForkPoint(stream=story.SESSION, version=version, hash="")
    agent = (await place.state(story.SESSION)).agent
    fork = await place.start("fork", agent, "Go on.", fork_of=point)

    survivor = await story.drive(place, session=fork)

    assert [] == survivor.troubles
    quick = await check_same(place, kept, fork)
    assert quick.version == quick._snapshot > version


@every_version
async def test_a_fork_reads_only_what_its_parent_did_since(version):
    kept = MemorySnapshots(every=0)
    for each in (5, 15, VERSIONS):
        await whole_after(each, kept)
    counting = Reads(WHOLE.place.store)
    journal = journal_of(WHOLE.place, kept, counting)
    entity = Entity("session-default/fork", "next", journal, WHOLE.place.clock, **TOLD)

    await entity.inherit(story.SESSION, version)

    since = max((each for each in (5, 15, VERSIONS) if each <= version), default=0)
    twice = [since] if since else []
    assert [*twice, *range(max(since, 1), version + 1)] == counting.versions
    assert ("session-default/fork", version) == (entity.state.stream, entity.version)


async def test_redacted_events_are_in_no_snapshot_of_the_session_or_its_forks(tmp_path):
    kept = SqliteSnapshots(tmp_path / "log.db.snapshots", every=0)
    place = await story.cut(WHOLE.place, WHOLE.events, [*story.SAID, says("And more.")])
    place.store._snapshots = place.snapshots = kept
    await keep(place.journal, story.SESSION)
    point = ForkPoint(stream=story.SESSION, version=VERSIONS, hash="")
    agent = (await place.state(story.SESSION)).agent
    fork = await place.start("fork", agent, "Go on.", fork_of=point)
    await story.drive(place, session=fork)
    assert await kept.newest(story.SESSION)
    assert await kept.newest(fork)
    assert b"read 1 is done" in (tmp_path / "log.db.snapshots").read_bytes()

    emptying = Write("inbox-default/x", [fact()], 0, empties=[(story.SESSION, 4)])
    await place.store.append([emptying], "k")

    assert (None, None) == (await kept.newest(story.SESSION), await kept.newest(fork))
    assert b"is done" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    await keep(place.journal, fork)
    assert await kept.newest(fork) is None
