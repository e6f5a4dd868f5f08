"""What the rules said is in the facts: other rules change no past."""

import pytest

from cueline.deciders import policy as module
from cueline.deciders.session import command_of, decide, evolve, session_of
from cueline.events.session import Judgement
from tests.histories.test_histories import RECORDED
from tests.histories.test_recorded_sessions import facts_of

SESSIONS = sorted(RECORDED.glob("session-*.jsonl"))
each_session = pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)


def states(path):
    """Return the state after each fact of a recorded session."""
    state, folded = session_of("session-default/story"), []
    for fact in facts_of(path):
        state = evolve(state, fact)
        folded.append(state)
    return folded


def answers(path):
    """Return what the rules of now say of each call that a recorded session had."""
    before = [session_of("session-default/story"), *states(path)]
    said = [
        each.judged
        for fact, state in zip(facts_of(path), before, strict=False)
        for each in decide(command_of(fact), state)
        if each.type in ("ModelReplied", "CallsAdded") and each.calls
    ]
    return [judged.answer for calls in said for judged in calls.values() if judged.rule]


@pytest.fixture
def denying(monkeypatch):
    """Have the policy mean something else: whatever is judged is denied."""

    def denied(rules, cost, otherwise):
        return Judgement(answer="deny", rule="everything")

    monkeypatch.setattr(module, "_strongest", denied)


@each_session
def test_a_replay_under_other_rules_gives_the_same_states(path, request):
    before = states(path)

    request.getfixturevalue("denying")

    assert before == states(path)


@each_session
def test_deciding_again_under_other_rules_gives_other_answers(path, request):
    before = answers(path)

    request.getfixturevalue("denying")

    assert before
    assert "deny" not in before
    assert {"deny"} == set(answers(path))
