"""Sessions that a cueline wrote fold to the end that they had."""

import pytest

from cueline.deciders.prompt import Prompt
from cueline.deciders.session import TERMINAL, Status, derived_events, due, evolve, session_of
from tests.histories.test_histories import RECORDED, decode, lines_of

ENDS = {"stopped": Status.STOPPED, "steered": Status.IDLE}
SESSIONS = sorted(
    set(RECORDED.glob("session-*.jsonl")) - set(RECORDED.glob("session-forked-*.jsonl"))
)
"""Of a fork and its parent, the beginning or the end is in another file."""

each_session = pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)


def facts_of(path):
    return [decode(line, n) for n, line in enumerate(lines_of(path), start=1)]


def replayed(path):
    state, prompt = session_of("session-default/7f3a"), Prompt()
    for fact in facts_of(path):
        state = evolve(state, fact)
        prompt.add(fact)
    return state, prompt


@each_session
def test_a_recorded_session_still_ends_as_it_did(path):
    state, prompt = replayed(path)

    assert ENDS.get(path.stem.split("-")[1], Status.COMPLETED) == state.status
    assert ([], []) == (due(state), derived_events(state))
    assert state.status not in TERMINAL or prompt.digest


# I10
@each_session
def test_a_recorded_session_still_sends_the_prompts_that_it_sent(path):
    prompt = Prompt()
    for fact in facts_of(path):
        prompt.add(fact)
        if fact.type == "ModelRequested":
            assert fact.digest == prompt.digest
