"""Children of the mode `async_poll`: the model asks how they ended."""

import json

import pytest

from cueline.deciders.prompt import Prompt
from cueline.deciders.session import due
from cueline.deciders.session.children import newly_stopped
from cueline.deciders.session.state_codec import packed, unpacked
from cueline.events.agent import Policy
from cueline.events.inbox import ChildPaused, PauseAsked, ResumeAsked, StopAsked
from cueline.events.message import ToolCall
from cueline.events.session import (
    CallDelegated,
    MessageReceived,
    ModelReplied,
    ModelRequested,
    SessionCompleted,
    SessionContinued,
    SessionIdle,
    SessionWaiting,
    ToolFailed,
    ToolReturned,
    ToolSkipped,
)
from cueline.tools.catalogue import child_result_tool
from tests.deciders.test_session_children import CHILD, LEAD, calling, delegated, ended
from tests.session_example import asking, forked, later, received, saying

POLLER = LEAD.model_copy(update={"tools": (*LEAD.tools, child_result_tool())})


def polling(turn=2, session="1.1.0"):
    """Return a reply that asks how *session* ended."""
    call = ToolCall(id=f"call-{turn}", name="child_result", arguments={"session": session})
    return ModelReplied(
        effect=f"{turn}.m", attempt=1, content=(), calls=(call,), stop_reason="tool_use", seconds=0
    )


def started_child(**start):
    """Return a session that started a child, and asks its model again."""
    return calling("helper", spec=POLLER, **start).when(delegated(mode="async_poll"), asking(2))


def end(**fields):
    return ended(mode="async_poll", original_parameters={"goal": "see"}, **fields)


def answer(past):
    return next(fact for fact in reversed(past.facts) if isinstance(fact, ToolReturned))


def test_a_call_of_a_child_that_is_asked_for_returns_at_once():
    past = calling("helper", spec=POLLER).when(delegated(mode="async_poll"))

    past.then(CallDelegated, ToolReturned, ModelRequested)
    assert {"session": "1.1.0", "status": "started"} == json.loads(answer(past).output)


def test_a_child_that_has_not_ended_is_running():
    past = started_child()

    past.when(polling()).then(ModelReplied, ToolReturned, ModelRequested)
    assert {"session": "1.1.0", "status": "running"} == json.loads(answer(past).output)
    assert "" == answer(past).child


# 001-019, C51: only the parent of an async_callback child is told without asking.
@pytest.mark.parametrize("open_", [True, False])
def test_the_end_of_a_child_that_is_asked_for_is_no_message_to_the_model(open_):
    past = started_child(open=open_).when(saying(turn=2))
    assert ("child", later(600)) == (past.state.waiting.kind, past.state.waiting.deadline_at)

    past.when(received(2, end(text="Seen.")))

    past.then(MessageReceived, SessionIdle if open_ else SessionCompleted)
    assert () == past.state.mail


# 001-047, 001-057: the same fields as a callback.
def test_the_end_of_a_child_is_the_answer_as_often_as_the_model_asks():
    past = started_child().when(received(2, end(status="failed", error_code="auth", error="no")))

    past.when(polling()).then(ModelReplied, ToolReturned, ModelRequested)
    said = answer(past)
    past.when(asking(3), polling(3))

    assert CHILD == said.child
    assert {
        "status": "failed",
        "result": "",
        "error": "no",
        "error_code": "auth",
        "original_parameters": {"goal": "see"},
        "attempt": 1,
        "side_effects_possible": False,
    } == json.loads(said.output)
    assert said.output == answer(past).output


def test_of_several_children_each_is_asked_for_by_its_own_id():
    past = calling("helper", "helper", spec=POLLER)
    past.when(delegated(mode="async_poll"), delegated(1, mode="async_poll"), asking(2))
    past.when(received(2, end(text="One.")))
    two = ended(1, mode="async_poll", original_parameters={"goal": "see"}, text="Two.")

    past.when(received(3, two), polling(session="1.1.1"))

    assert ("session-default/1.1.1", "Two.") == (
        answer(past).child,
        json.loads(answer(past).output)["result"],
    )


@pytest.mark.parametrize("session", ["1.1.1", "1", ""])
def test_only_a_child_can_be_asked_for(session):
    past = started_child()

    past.when(polling(session=session)).then(ModelReplied, ToolFailed, ModelRequested)

    failed = past.facts[-2]
    assert "unknown_session" == failed.kind
    said = f"{session!r} is no session that this one started in the mode async_poll"
    assert said == failed.message


@pytest.mark.parametrize("mode", ["sync", "async_callback"])
def test_a_child_of_another_mode_cannot_be_asked_for(mode):
    past = calling("helper", spec=POLLER).when(delegated(mode=mode))
    past.when(received(2, ended(mode=mode))).when(asking(2), polling())

    assert isinstance(past.facts[-2], ToolFailed)


def test_a_fork_cannot_ask_for_a_child_of_its_past():
    past = started_child().when(polling(), forked(POLLER, "Go on."), asking(4), polling(4))

    assert "unknown_session" == past.facts[-2].kind


# I14
def test_a_child_that_did_not_end_in_time_has_timed_out_until_it_ends():
    past = started_child().when(SessionContinued(by="deadline", at=later(600)))
    past.when(SessionContinued(by="deadline", at=later(660)))

    past.when(polling())
    assert "child_timeout" == past.facts[-2].kind
    past.when(asking(3), received(2, end(text="Late.")), polling(3))
    assert "Late." == json.loads(answer(past).output)["result"]


def test_a_session_that_does_not_end_stops_waiting_for_such_a_child():
    past = started_child().when(saying(turn=2), SessionContinued(by="deadline", at=later(600)))

    past.when(SessionContinued(by="deadline", at=later(660)))

    assert isinstance(past.facts[-1], SessionCompleted)


# 003-003
def test_a_stopped_session_stops_a_child_that_is_asked_for():
    past = started_child()
    before = past.state

    past.when(received(2, StopAsked()))

    assert [CHILD] == newly_stopped(before, past.state)


def test_a_paused_session_answers_when_it_goes_on():
    past = started_child().when(received(2, PauseAsked()), polling())
    past.then(ModelReplied, SessionWaiting)
    assert [] == due(past.state)

    past.when(received(3, ResumeAsked()))

    assert "running" == json.loads(answer(past).output)["status"]


def test_a_rule_can_keep_a_model_from_asking():
    denies = Policy(rules=({"name": "no", "answer": "deny", "tools": ("child_result",)},))
    spec = POLLER.model_copy(update={"policy": denies})
    past = calling("helper", spec=spec).when(delegated(mode="async_poll"), asking(2), polling())

    past.then(ModelReplied, ToolSkipped, ModelRequested)


def paused(reason="error: auth: no key", **fields):
    return ChildPaused(child=CHILD, reason=reason, **fields)


def stopping(turn=2):
    """Return a reply that ends the child."""
    call = ToolCall(
        id=f"call-{turn}", name="child_result", arguments={"session": "1.1.0", "stop": True}
    )
    return polling(turn).model_copy(update={"calls": (call,)})


@pytest.mark.parametrize("mode", ["async_poll", "async_callback"])
def test_a_child_that_pauses_is_told_to_its_parents_model_at_once(mode):
    past = calling("helper", spec=POLLER).when(
        delegated(mode=mode), asking(2), saying(turn=2), received(2, paused())
    )

    past.then(MessageReceived, ModelRequested)
    (mail,) = [fact for fact in past.facts if isinstance(fact, ModelRequested)][-1].messages
    assert 2 == mail


def test_what_a_parents_model_is_told_of_a_pause_is_in_its_prompt_as_data():
    prompt = Prompt()
    for fact in (
        calling("helper", spec=POLLER)
        .when(delegated(mode="async_poll"), asking(2), saying(turn=2), received(2, paused()))
        .facts
    ):
        prompt.add(fact)

    told = json.loads(prompt.transcript[-1])["text"]
    assert told.startswith("The session 1.1.0 is paused until a person resumes it. Wait for it, or")
    assert "end it by `child_result` with `stop`." in told
    assert ">\nerror: auth: no key\n</" in told


def test_a_paused_child_is_paused_for_its_parents_model_until_it_goes_on():
    past = started_child().when(received(2, paused()))
    past.when(polling())
    assert "paused" == json.loads(answer(past).output)["status"]

    past = started_child().when(received(2, paused()), received(3, paused("")))
    past.when(polling())

    assert "running" == json.loads(answer(past).output)["status"]


@pytest.mark.parametrize("mode", ["async_poll", "async_callback"])
def test_a_parents_model_ends_a_child(mode):
    past = calling("helper", spec=POLLER).when(delegated(mode=mode), asking(2))
    before = past.state

    past.when(stopping())

    assert "stopping" == json.loads(answer(past).output)["status"]
    assert [CHILD] == newly_stopped(before, past.state)


def test_a_stop_that_a_rule_denies_ends_no_child():
    rule = {"name": "r", "answer": "deny", "tools": ["child_result"]}
    spec = POLLER.model_copy(update={"policy": Policy.model_validate({"rules": [rule]})})
    past = calling("helper", spec=spec).when(delegated(mode="async_poll"), asking(2))
    before = past.state

    past.when(stopping())

    assert ToolSkipped in map(type, past.facts)
    assert [] == newly_stopped(before, past.state)


def test_a_parents_model_ends_no_other_session():
    past = started_child()
    before = past.state
    call = ToolCall(id="c", name="child_result", arguments={"session": "other", "stop": True})

    past.when(polling().model_copy(update={"calls": (call,)}))

    failed = next(fact for fact in past.facts if isinstance(fact, ToolFailed))
    assert "unknown_session" == failed.kind
    assert [] == newly_stopped(before, past.state)


def test_a_pause_of_a_child_that_is_not_known_changes_nothing():
    past = calling("helper", spec=POLLER)
    past.when(received(2, paused("")))

    past.then(MessageReceived)


def test_a_snapshot_holds_the_ends_of_children():
    past = started_child().when(received(2, end(text="Seen.")))

    state, _ = unpacked(packed(past.state, Prompt()))

    assert past.state == state
