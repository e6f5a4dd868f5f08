"""The shape that all rules share."""

import dataclasses

from cueline.deciders.decider import Decider, replace
from cueline.deciders.session import session_of
from cueline.deciders.session.state import Status

SUM = Decider(0, lambda wish, total: [wish] if wish else [], lambda total, fact: total + fact)


def test_a_replay_folds_from_the_beginning_or_from_a_state():
    assert 6 == SUM.replay([1, 2, 3])
    assert 16 == SUM.replay([1, 2, 3], 10)


def test_a_copy_is_what_dataclasses_would_make_of_it():
    state = session_of("session-default/1")

    changed = replace(state, status=Status.IDLE, epoch=2)

    assert dataclasses.replace(state, status=Status.IDLE, epoch=2) == changed
    assert (Status.CREATED, 0) == (state.status, state.epoch)
