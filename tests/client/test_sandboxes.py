"""The sandboxes of a log, as their facts say."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

import cueline
from cueline.actors.sandbox_life import sandbox_of
from cueline.actors.sandbox_slots import SLOTS_STREAM
from cueline.client.client import Client
from cueline.client.open_reader import open_reader
from cueline.deciders.person import Person
from cueline.errors import CorruptEventError, ForbiddenError
from cueline.events.journal import FactWrite
from cueline.events.sandbox import (
    SandboxAsked,
    SandboxDone,
    SandboxFailed,
    SandboxSpec,
    SlotAsked,
    SlotFreed,
    SlotGranted,
)
from cueline.events.store import ANY
from cueline.runtime.open_log import open_log
from cueline.runtime.place import Place
from cueline.testing.clock import NOON
from tests.damage import change
from tests.gateway.conftest import TOKEN, served

SPEC = SandboxSpec(backend="container")
ONE, TWO = "session-default/one", "session-acme/two"


@pytest.fixture
async def client(tmp_path):
    async with open_log(tmp_path / "log.db") as log:
        yield Client(log, Place(log.url))


async def record(client, stream, *facts):
    write = FactWrite(stream=stream, steps=[facts], expected_version=ANY, actor="system:pool")
    await client.log.journal().append([write], key=uuid4().hex)


def asks(session, seconds=0, slots=1):
    at = NOON + timedelta(seconds=seconds)
    return SlotAsked(session=session, spec=SPEC, number=1, slots=slots, at=at)


def begun(act):
    return SandboxAsked(act=act, session=ONE, spec=SPEC, at=NOON)


def done(act, seconds=0):
    return SandboxDone(act=act, place="c0ffee", at=NOON + timedelta(seconds=seconds))


def failed(act, *, gone=False):
    return SandboxFailed(act=act, message="it is broken", gone=gone, at=NOON)


STARTED = (begun("create"), done("create"))


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ((begun("create"),), ("starting", "", None)),
        (STARTED, ("started", "c0ffee", None)),
        ((*STARTED, begun("stop")), ("stopping", "c0ffee", None)),
        ((*STARTED, begun("stop"), done("stop")), ("stopped", "c0ffee", None)),
        ((begun("create"), failed("create")), ("failed", "", "create failed: it is broken")),
        (
            (begun("create"), failed("create"), begun("create")),
            ("starting", "", "create failed: it is broken"),
        ),
        ((begun("create"), failed("create"), *STARTED), ("started", "c0ffee", None)),
        ((*STARTED, begun("delete")), ("deleting", "c0ffee", None)),
        (
            (*STARTED, begun("start"), failed("start"), begun("stop"), done("stop")),
            ("stopped", "c0ffee", "start failed: it is broken"),
        ),
    ],
)
async def test_a_sandbox_is_as_its_last_fact_says(client, facts, told):
    await record(client, SLOTS_STREAM, asks(ONE), SlotGranted(session=ONE))
    await record(client, sandbox_of(ONE, 1), *facts)

    (row,) = (await client.sandboxes()).sandboxes

    assert ("one.1", "one", "container") == (row.id, row.session, row.backend)
    assert told == (row.state, row.place, row.error)


@pytest.mark.parametrize(
    ("end", "state"), [(done("delete"), "deleted"), (failed("start", gone=True), "gone")]
)
async def test_a_sandbox_that_is_over_is_listed_only_with_all(client, end, state):
    await record(client, SLOTS_STREAM, asks(ONE), SlotGranted(session=ONE))
    await record(client, sandbox_of(ONE, 1), *STARTED, begun(end.act), end)
    await record(client, sandbox_of(ONE, 2), *STARTED)

    left, every = await client.sandboxes(), await client.sandboxes(all=True)

    assert ["one.2"] == [each.id for each in left.sandboxes]
    told = [(each.id, each.state) for each in every.sandboxes]
    assert [("one.1", state), ("one.2", "started")] == told


async def test_the_slots_and_the_queue_are_those_of_the_pool(client):
    first, second = asks(ONE), asks(TWO, 5)
    third = asks("session-default/three", 9)
    await record(client, SLOTS_STREAM, first, SlotGranted(session=ONE), second, third)
    before = await client.sandboxes()
    freed = SlotFreed(session=ONE, slots=2, at=NOON)
    await record(client, SLOTS_STREAM, freed, SlotGranted(session=TWO))
    after = await client.sandboxes()

    assert (1, 1) == (before.max_started, before.used)
    waits = [("acme/two", second.at), ("three", third.at)]
    assert waits == [(each.session, each.since) for each in before.queue]
    assert (2, 1, ["three"]) == (after.max_started, after.used, [e.session for e in after.queue])


async def test_a_server_gives_the_same_list(tmp_path, monkeypatch):
    monkeypatch.setenv("CUELINE_KEYS_FOLDER", str(tmp_path / "keys"))
    async with served(tmp_path / "log.db") as (runtime, http):
        await record(runtime, SLOTS_STREAM, asks(ONE), SlotGranted(session=ONE), asks(TWO))
        await record(runtime, sandbox_of(ONE, 1), *STARTED, begun("delete"), done("delete"))
        async with cueline.connect(str(http.base_url), token=TOKEN) as far:
            left, every = await far.sandboxes(), await far.sandboxes(all=True)

        assert await runtime.sandboxes() == left
        assert await runtime.sandboxes(all=True) == every
        assert "deleted" == every.sandboxes[0].state


async def test_a_log_without_sandboxes_has_no_number_of_slots(client):
    found = await client.sandboxes()

    assert (None, 0, (), ()) == (found.max_started, found.used, found.sandboxes, found.queue)


async def test_a_person_of_one_tenant_is_refused(client):
    log = replace(client.log, person=Person("ada", "acme", frozenset({"read"})))

    with pytest.raises(ForbiddenError):
        await Client(log, Place(log.url)).sandboxes()


async def test_a_damaged_log_is_an_error(tmp_path):
    async with open_log(tmp_path / "log.db") as log:
        await record(Client(log, Place(log.url)), SLOTS_STREAM, asks(ONE))
    change(tmp_path / "log.db", "UPDATE events SET payload = x'7b7d' WHERE version = 1")

    async with open_reader(tmp_path / "log.db") as reader:
        with pytest.raises(CorruptEventError):
            await reader.sandboxes()
