"""Sandboxes and slots, on each kind of read model."""

from datetime import timedelta

from cueline.events.sandbox import (
    SandboxAsked,
    SandboxDone,
    SandboxSpec,
    SlotAsked,
    SlotFreed,
    SlotGranted,
)
from cueline.projections.sandbox import count_slots, list_sandboxes, waiting_for_slots
from tests.projections.conftest import NOW

SPEC = SandboxSpec(backend="container")
ONE, TWO, THREE = (f"session-default/{name}" for name in ("one", "two", "three"))


def asks(session, seconds):
    at = NOW + timedelta(seconds=seconds)
    return SlotAsked(session=session, spec=SPEC, number=1, slots=1, at=at)


async def test_a_session_keeps_its_place_in_the_queue_until_it_gets_or_gives_up_its_slot(log):
    await log.append("slots-default/main", asks(ONE, 0), SlotGranted(session=ONE), asks(TWO, 5))
    await log.append("slots-default/main", asks(THREE, 9))
    for act in ("create", "delete"):
        begun = SandboxAsked(act=act, session=ONE, spec=SPEC, at=NOW)
        await log.append("sandbox-default/one.1", begun, SandboxDone(act=act, place="a", at=NOW))
    db = await log.caught_up()
    assert [("two", NOW + timedelta(seconds=5)), ("three", NOW + timedelta(seconds=9))] == [
        (each.session, each.since) for each in waiting_for_slots(db)
    ]
    assert [] == list_sandboxes(db, with_deleted=False)
    assert [("one.1", "deleted")] == [
        (e.id, e.state) for e in list_sandboxes(db, with_deleted=True)
    ]

    freed = [SlotFreed(session=each, slots=2, at=NOW) for each in (ONE, TWO)]
    await log.append("slots-default/main", *freed, SlotGranted(session=THREE), asks(ONE, 20))
    db = await log.caught_up()

    counts = count_slots(db)
    assert (1, 1, 8) == (counts.slots, counts.used, counts.events)
    assert ["one"] == [each.session for each in waiting_for_slots(db)]
