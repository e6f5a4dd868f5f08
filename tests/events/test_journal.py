"""The log in facts instead of bytes."""

from datetime import UTC, datetime

import pytest
from pydantic import SecretStr

from cueline.errors import (
    CorruptEventError,
    MissingBlobError,
    SecretLeakError,
    UnknownEventTypeError,
    WrongExpectedVersionError,
)
from cueline.events.codec import Codec, Redacted
from cueline.events.inbox import MessageSent, PauseAsked
from cueline.events.journal import FactWrite, Journal, Unreadable
from cueline.events.sanitize import Redactor
from cueline.events.session import (
    SessionForked,
    SessionIdle,
    ToolReturned,
    ToolSkipped,
)
from cueline.events.store import ANY, INLINE_LIMIT, NO_STREAM, Draft, Write
from cueline.stores.memory import MemoryStore

SESSION = "session-default/7f3a"
INBOX = "inbox-default/7f3a"
FORK = "session-default/f0"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LONG = "x" * (INLINE_LIMIT + 1)


class StoppedClock:
    """A clock that stands still."""

    def now(self):
        return NOW


class Tampered(MemoryStore):
    """A log somebody changes behind our back, as it is read."""

    def __init__(self, change):
        super().__init__(StoppedClock())
        self.change = change

    async def read(self, stream, after=NO_STREAM, until=None):
        async for event in super().read(stream, after, until):
            changed = self.change(event)
            if changed is not None:
                yield changed


@pytest.fixture
def store():
    return MemoryStore(StoppedClock())


@pytest.fixture
def journal(store):
    return journal_on(store)


def journal_on(store, *secrets):
    return Journal(store, Codec(Redactor(map(SecretStr, secrets))), lambda: NOW)


def skipped(n):
    return ToolSkipped(effect=f"1.{n}", reason="because")


def write(*steps, stream=SESSION, expected=NO_STREAM, **rest):
    return FactWrite(stream=stream, steps=steps, expected_version=expected, **rest)


async def told(events):
    return [(recorded.version, fact) async for recorded, fact in events]


async def test_facts_are_read_as_they_were_appended(journal):
    facts = [skipped(1), SessionIdle(result="done")]

    appended = await journal.append([write(facts)], key="k")

    assert (2,) == appended.versions
    assert [(1, facts[0]), (2, facts[1])] == await told(journal.read(SESSION))


async def test_an_append_may_be_to_several_streams(journal):
    sent = MessageSent(lane="note", text="hello")
    writes = [write([skipped(1)]), write([sent], stream=INBOX, expected=ANY, actor="user")]

    await journal.append(writes, key="k")

    recorded = [(r.stream, r.actor, fact) async for r, fact in journal.read_all()]
    assert [(SESSION, "agent", skipped(1)), (INBOX, "user", sent)] == recorded


async def test_steps_are_numbered_within_their_append(journal):
    steps = [[skipped(1), skipped(2)], [skipped(3)]]

    await journal.append([write(*steps, causation_id="c")], key="k")

    recorded = [r async for r, _ in journal.read(SESSION)]
    assert [(0, 0), (0, 1), (1, 2)] == [(r.step, r.seq) for r in recorded]
    assert {("c", NOW)} == {(r.causation_id, r.occurred_at) for r in recorded}


async def test_long_values_are_put_before_the_append(journal):
    fact = ToolReturned(effect="1.0", attempt=1, output=LONG)

    await journal.append([write([fact])], key="k")

    assert [(1, fact)] == await told(journal.read(SESSION))
    assert [(1, fact)] == await told(journal.read_all())


async def test_an_event_whose_long_value_is_gone_is_named_by_its_position(journal, store):
    payload = b'{"effect":"1.0","attempt":1,"output":{"$blob":"ab","bytes":20000}}'
    await store.append([Write(SESSION, [Draft("ToolReturned", 1, payload, 0, "agent")], ANY)], "k")

    with pytest.raises(CorruptEventError, match=r"@1 \(position 1\): the long value ab is missing"):
        await told(journal.read(SESSION))
    ((_, found),) = await told(journal.read_all())
    assert isinstance(found, Unreadable)


async def test_an_append_whose_whole_output_was_not_put_is_refused(journal):
    fact = ToolReturned(effect="1.0", attempt=1, output="cut", whole="ab" * 32)

    with pytest.raises(MissingBlobError):
        await journal.append([write([fact])], key="k")


async def test_an_append_may_name_what_was_put(journal):
    whole = await journal.put_blob(b"everything")
    fact = ToolReturned(effect="1.0", attempt=1, output="cut", whole=whole, size=10)

    await journal.append([write([fact])], key="k")

    assert [(1, fact)] == await told(journal.read(SESSION))


async def test_a_secret_reaches_neither_stream_nor_blob(store):
    journal = journal_on(store, "12345678")

    with pytest.raises(SecretLeakError):
        await journal.append([write([SessionIdle(result=LONG + "12345678")])], key="k")
    with pytest.raises(SecretLeakError):
        await journal.put_blob(b"12345678")

    assert (0, {}) == (await store.last_position(), store._tables.blobs)


async def test_what_the_store_refuses_is_refused(journal):
    with pytest.raises(WrongExpectedVersionError):
        await journal.append([write([skipped(1)], expected=4)], key="k")


@pytest.mark.parametrize(("after", "until"), [(0, 2), (1, None), (2, 3), (3, None), (4, 9), (9, 9)])
async def test_a_part_of_a_stream_is_read_by_versions(journal, after, until):
    await journal.append([write([skipped(n) for n in (1, 2, 3, 4)])], key="k")

    expected = [(n, skipped(n)) for n in range(after + 1, min(until or 4, 4) + 1)]
    assert expected == await told(journal.read(SESSION, after, until))


def changed_payload(event):
    return event._replace(payload=event.payload[:-2] + b'!"}') if event.version == 3 else event


def changed_time(event):
    return event._replace(recorded_us=7) if event.version == 3 else event


def left_out(event):
    return None if event.version == 3 else event


@pytest.mark.parametrize("change", [changed_payload, changed_time, left_out])
@pytest.mark.parametrize("after", [0, 1, 2])
async def test_a_changed_event_is_told_after_everything_before_it_was_read(change, after):
    journal = journal_on(Tampered(change))
    await journal.append([write([skipped(n) for n in (1, 2, 3, 4)])], key="k")
    reading = journal.read(SESSION, after)

    before = [(await anext(reading))[0].version for _ in range(after + 1, 3)]

    assert list(range(after + 1, 3)) == before
    with pytest.raises(CorruptEventError, match=SESSION):
        await anext(reading)


async def test_a_redacted_event_does_not_break_the_chain():
    def emptied(event):
        return event._replace(payload=None, salt=None) if event.version == 1 else event

    journal = journal_on(Tampered(emptied))

    await journal.append([write([skipped(1), skipped(2)])], key="k")

    assert [(1, Redacted("ToolSkipped")), (2, skipped(2))] == await told(journal.read(SESSION))


async def test_a_fork_reads_its_parents_events_first(journal, forked):
    await journal.append([write([skipped(1), skipped(2), skipped(3)])], key="k")
    fork = write([forked], stream=FORK, expected=2, after=(SESSION, 2))

    await journal.append([fork], key="f")
    await journal.append([write([skipped(9)], stream=FORK, expected=3)], key="g")

    expected = [(1, skipped(1)), (2, skipped(2)), (3, forked), (4, skipped(9))]
    assert expected == await told(journal.read(FORK))
    assert expected[2:] == await told(journal.read(FORK, after=2))


@pytest.fixture
def forked():
    agent = {"name": "a", "provider": "scripted", "model": "m"}
    said = {"goal": None, "open": True, "attached": False, "note": None, "epoch": 1}
    return SessionForked(parent=SESSION, version=2, hash="00", agent=agent, **said)


async def test_one_stream_of_a_newer_cueline_sets_no_other_aside(journal, store):
    newer = Draft(type="ToolJuggled", schema=1, payload=b"{}", occurred_us=1, actor="agent")
    await store.append([Write(SESSION, [newer], NO_STREAM)], key="n")
    await journal.append([write([PauseAsked()], stream=INBOX, expected=ANY)], key="k")

    (_, found), last = await told(journal.read_all())

    assert (Unreadable, UnknownEventTypeError) == (type(found), type(found.error))
    assert (1, PauseAsked()) == last
    with pytest.raises(UnknownEventTypeError):
        await told(journal.read(SESSION))


async def test_only_the_categories_asked_for_are_read(journal):
    await journal.append([write([skipped(1)])], key="k")
    await journal.append([write([PauseAsked()], stream=INBOX, expected=ANY)], key="l")

    assert [(1, PauseAsked())] == await told(journal.read_all(categories=["inbox"]))


async def test_a_journal_keeps_nothing_of_events_that_name_their_tree(store):
    writing, reading = journal_on(store), journal_on(store)

    await writing.append([write([skipped(1)], correlation_id="top")], key="k")
    recorded = [each async for each, _ in reading.read(SESSION)]

    assert ["top"] == [each.correlation_id for each in recorded]
    assert {} == writing._correlations == reading._correlations
