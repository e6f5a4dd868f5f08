"""Who gets a slot of the pool, and what is known of a sandbox."""

import pytest

from cueline.deciders.sandbox import SANDBOX, SLOTS, SandboxLife, Slots
from cueline.events.sandbox import (
    SandboxAsked,
    SandboxDone,
    SandboxFailed,
    SandboxSpec,
    SlotAsked,
    SlotFreed,
    SlotGranted,
)
from tests.session_example import NOW

SPEC = SandboxSpec(backend="local")


def asks(session, slots=2):
    return SlotAsked(session=session, spec=SPEC, number=1, slots=slots, at=NOW)


def frees(session, slots=2):
    return SlotFreed(session=session, slots=slots, at=NOW)


def granted(session):
    return SlotGranted(session=session)


def after(*commands):
    state = SLOTS.initial_state
    for command in commands:
        state = SLOTS.replay(SLOTS.decide(command, state), state)
    return state


def test_a_free_slot_is_granted_at_once():
    assert [asks("a"), granted("a")] == SLOTS.decide(asks("a"), Slots())


def test_without_a_free_slot_a_session_waits_for_its_turn():
    """003-004, 003-009."""
    state = after(asks("a"), asks("b"), asks("c"), asks("d"))

    assert ["a", "b"] == [each.session for each in state.held]
    assert [0, 1] == [state.place("c"), state.place("d")]
    assert not state.has("c")
    assert [frees("b"), granted("c")] == SLOTS.decide(frees("b"), state)


def test_who_waits_no_longer_leaves_the_queue():
    state = after(asks("a"), asks("b"), asks("c"), asks("d"), frees("c"), frees("a"))

    assert ["b", "d"] == [each.session for each in state.held]
    assert () == state.queue
    assert 0 == state.place("d")


@pytest.mark.parametrize(
    ("past", "command"), [([asks("a")], asks("a")), ([], frees("a"))], ids=["twice", "never"]
)
def test_what_is_known_changes_nothing(past, command):
    assert [] == SLOTS.decide(command, after(*past))


def test_more_slots_are_for_those_who_wait():
    state = after(asks("a", 1), asks("b", 1), asks("c", 1))

    assert [granted("b"), granted("c")] == SLOTS.decide(asks("b", 3), state)


def test_fewer_slots_take_none_away():
    state = after(asks("a"), asks("b"), asks("c"))

    assert [frees("a", 1)] == SLOTS.decide(frees("a", 1), state)


def test_every_back_end_that_was_asked_for_is_known():
    other = asks("b").model_copy(update={"spec": SandboxSpec(backend="ray")})

    assert ("local", "ray") == after(asks("a"), other, frees("a"), frees("b")).backends


def asked(act):
    return SandboxAsked(act=act, session="session-default/a", spec=SPEC, at=NOW)


def done(act):
    return SandboxDone(act=act, place="p1", at=NOW)


def failed(act, *, gone=False):
    return SandboxFailed(act=act, message="why", gone=gone, at=NOW)


def life(*events):
    return SANDBOX.replay(events)


def test_a_created_sandbox_has_a_place():
    assert SandboxLife() == life()
    assert "" == life(asked("create")).place
    assert "p1" == life(asked("create"), done("create"), asked("start")).place


def test_a_sandbox_that_is_gone_is_never_started_again():
    """003-033."""
    gone = life(asked("create"), done("create"), asked("start"), failed("start", gone=True))

    assert gone.gone
    assert [] == SANDBOX.decide(asked("start"), gone)
    assert [asked("delete")] == SANDBOX.decide(asked("delete"), gone)
    assert life(asked("create"), done("create"), asked("delete"), done("delete")).gone


def test_a_failure_is_not_the_end():
    state = life(asked("create"), failed("create"))

    assert not state.gone
    assert [asked("create")] == SANDBOX.decide(asked("create"), state)
