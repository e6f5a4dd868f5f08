"""How a session begins, rests, moves, forks and ends."""

import pytest

from cueline.deciders.prompt import FORKED_AWAY
from cueline.deciders.session import TERMINAL, Status, due, session_of, wake_at
from cueline.deciders.session.due import Cancel, RecoverTool
from cueline.events.inbox import PauseAsked, ResumeAsked, StartAsked, StopAsked
from cueline.events.session import (
    ApprovalResolved,
    MessageReceived,
    MessageRefused,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    OutcomeCameLate,
    SessionCompleted,
    SessionFailed,
    SessionForked,
    SessionIdle,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    ToolFailed,
    ToolInDoubt,
    ToolReturned,
    ToolSkipped,
)
from cueline.testing.given import given
from cueline.testing.session_example import (
    AGENT,
    NOW,
    agent,
    asking,
    broken,
    failing,
    question,
    received,
    returned,
    running,
    said,
    saying,
    started,
    up_to_reply,
)
from cueline.testing.toy_shell import load_prefix

PAUSE, RESUME, STOP = PauseAsked(), ResumeAsked(), StopAsked(reason="enough")
RUNNER = SessionWaiting(kind="runner", why="unreachable", deadline_at=NOW)
TAKEN = SessionTakenOver(epoch=2, at=NOW)


def idle():
    return given().when(started(open=True), asking(), saying())


# C35
def test_there_is_one_vocabulary_of_statuses():
    at_rest, ended = ["created", "idle", "waiting"], ["completed", "failed", "stopped"]

    assert {*at_rest, "running", "stopping", *ended} == set(Status)
    assert set(ended) == TERMINAL


# Pause and resume, in every status.


# 000-068
@pytest.mark.parametrize("why", ["asked", "signal"])
def test_a_pause_lets_what_is_in_flight_finish_and_starts_nothing(why):
    past = given().when(*up_to_reply("look", "put"), running("1.0", "look"))

    past.when(received(2, PauseAsked(why=why))).then(MessageReceived)
    past.when(running("1.1", "put")).then_nothing()
    past.when(returned("1.0")).then(ToolReturned, SessionWaiting(kind="operator", why=why))
    past.when(received(3, RESUME))
    assert ["1.1"] == [effect.effect for effect in due(past.state)]


def test_an_idle_session_can_be_paused_and_is_idle_again_after():
    past = idle().when(received(2, PAUSE)).then(MessageReceived, SessionWaiting)

    past.when(said(3)).then(MessageReceived)
    past.when(received(4, RESUME)).then(MessageReceived, ModelRequested)

    past = idle().when(received(2, PAUSE), received(3, RESUME))
    past.then(MessageReceived, SessionIdle(result="Well."))


def test_a_pause_before_the_model_call_holds_it():
    past = given().when(started(), received(2, PAUSE)).then(MessageReceived, SessionWaiting)

    assert [] == due(past.state)
    past.when(asking()).then_nothing()


# 000-068: a cancelled model call is a lost attempt, and not a failure.
def test_a_model_call_that_a_pause_cancelled_is_made_again():
    past = given().when(started(), asking(), received(2, PAUSE), failing("cancelled"))

    past.then(ModelFailed, SessionWaiting)
    past.when(received(3, RESUME)).then(MessageReceived, ModelRequested)


def test_a_pause_outlasts_a_limit_that_a_message_would_lift():
    spec = agent(max_turns=1)
    past = given().when(*up_to_reply("look", spec=spec), running("1.0", "look"), returned("1.0"))

    past.when(received(2, PAUSE), said(3))

    assert "asked" == past.state.hold


def test_a_resume_without_a_pause_changes_nothing():
    idle().when(received(2, RESUME)).then(MessageReceived)


def test_deadlines_pass_while_an_operator_is_waited_for():
    past = given().when(*up_to_reply("delete"), question("1.0", "1.1.0.1"), received(2, PAUSE))

    assert past.state.waiting.deadline_at == wake_at(past.state)
    expired = ApprovalResolved(approval="1.1.0.1", verdict="expired", by="clock")
    past.when(expired).then(ApprovalResolved, ToolSkipped, SessionWaiting)
    assert wake_at(past.state) is None


# Stop, in every status.


def test_a_stop_ends_what_is_at_rest_at_once():
    stopped = SessionStopped(by="user", reason="enough")

    idle().when(received(2, STOP)).then(MessageReceived, stopped)
    given().when(started(), received(2, STOP)).then(MessageReceived, stopped)
    given().when(started(), received(2, PAUSE), received(3, STOP)).then(MessageReceived, stopped)


def test_a_stop_cancels_what_is_in_flight_and_then_ends():
    past = given().when(*up_to_reply("look"), running("1.0", "look"), received(2, STOP))

    assert Status.STOPPING is past.state.status
    assert Cancel("1.0", 1) in due(past.state)
    past.when(broken("1.0", "cancelled")).then(ToolFailed, SessionStopped)


@pytest.mark.parametrize("kind", ["cancelled", "killed", "lost"])
def test_an_undeclared_call_that_a_stop_killed_is_in_doubt_and_listed(kind):
    past = given().when(*up_to_reply("shout"), running("1.0"), received(2, STOP))

    past.when(broken("1.0", kind)).then(ToolInDoubt, SessionStopped)


def test_a_stop_waits_for_the_model_call_that_it_cancels():
    past = given().when(started(), asking(), received(2, STOP)).then(MessageReceived)

    assert [Cancel("1.m", 1)] == due(past.state)
    past.when(failing("cancelled")).then(ModelFailed, SessionStopped)


def test_a_stop_does_not_wait_for_a_runner_that_cannot_be_reached():
    past = given().when(*up_to_reply("shout"), running("1.0"), RUNNER)

    past.when(received(2, STOP)).then(MessageReceived, ToolInDoubt, SessionStopped)


def test_the_first_stop_counts_and_nothing_is_taken_after_it():
    past = given().when(started(), asking(), received(2, STOP))

    past.when(received(3, StopAsked(reason="really"))).then_rejected("is being stopped")
    past.when(said(4)).then_rejected("is being stopped")
    past.when(saying("shout")).then(ModelReplied, SessionStopped(by="user", reason="enough"))


# The end. I6, D15


def test_a_message_after_the_end_is_refused_and_changes_nothing():
    past = given().when(started(), asking(), saying("look"), received(2, STOP))

    past.when(said(3)).then_rejected("the session has ended: stopped")
    past.when(received(4, RESUME)).then(MessageRefused)
    assert (Status.STOPPED, 4) == (past.state.status, past.state.inbox_read)


def test_a_message_at_the_moment_of_completion_is_refused_or_answered():
    past = given().when(started(), asking(), said(2), saying()).then(ModelReplied, ModelRequested)
    other = given().when(started(), asking(), saying(), said(2))

    past.when(asking(2), saying(turn=2)).then(ModelReplied, SessionCompleted)
    other.then_rejected("the session has ended: completed")


def test_an_outcome_after_the_end_changes_nothing():
    past = given().when(*up_to_reply("shout"), running("1.0"), received(2, PAUSE), RUNNER)
    past.when(received(3, STOP))
    ended = past.state

    past.when(returned("1.0")).then(OutcomeCameLate)

    assert (ended, [], None) == (past.state, due(past.state), wake_at(past.state))


def test_an_outcome_after_a_failure_changes_nothing():
    past = given().when(*up_to_reply("shout"), running("1.0"))
    past.when(SessionFailed(kind="import", error="no tool"))

    past.when(returned("1.0")).then(OutcomeCameLate)

    assert Status.FAILED is past.state.status


# I13
def test_a_resume_does_not_retry_what_a_cut_kept_from_ending():
    past = given(*given().when(started()).facts, asking(), failing("refused"))

    past.when(received(2, RESUME)).then(MessageReceived, SessionFailed)


def test_a_finished_session_is_not_taken_over():
    given().when(started(), asking(), saying(), TAKEN).then_nothing()


def test_a_message_before_any_start_is_refused():
    given().when(said(1)).then_rejected("never started")
    asked = StartAsked(agent=AGENT, asked_at=NOW)
    given().when(started(), received(2, asked)).then_rejected("was started before")


# Takeovers. C6, D38: a crash is no status; who acquires goes on.


def test_a_takeover_makes_the_model_call_again():
    past = given().when(started(), asking(), TAKEN).then(SessionTakenOver, ModelRequested)

    assert (2, ()) == (past.facts[1].attempt, past.facts[1].messages)


def test_a_takeover_recovers_the_calls_that_were_started():
    past = given().when(*up_to_reply("shout"), running("1.0"), TAKEN).then(SessionTakenOver)

    assert [RecoverTool] == [type(effect) for effect in due(past.state)]


def test_a_session_at_rest_has_no_host_to_take_it_over_from():
    idle().when(TAKEN).then_nothing()


def poisoned():
    past = given().when(*up_to_reply("shout"), running("1.0"))
    return past.when(TAKEN, TAKEN, TAKEN)


def test_a_session_that_took_down_three_hosts_waits_for_an_operator():
    past = poisoned().then(SessionTakenOver, SessionWaiting)

    assert ("error: its host died 3 times in it", [], None) == (
        past.state.hold,
        due(past.state),
        wake_at(past.state),
    )
    past.when(said(2)).then(MessageReceived)
    past.when(received(3, RESUME))
    assert [RecoverTool] == [type(effect) for effect in due(past.state)]


def test_a_poisoned_session_has_no_deadline_to_be_woken_by():
    past = given().when(*up_to_reply("burn", "look"), question("1.0", "1.1.0.1"))
    past.when(TAKEN, TAKEN, TAKEN)

    assert past.state.waiting.deadline_at is None


def test_a_finished_effect_clears_the_count_of_takeovers():
    past = given().when(*up_to_reply("look"), running("1.0", "look"), TAKEN, TAKEN)

    past.when(returned("1.0"), TAKEN)

    assert 1 == past.state.takeovers


def test_a_session_that_takes_its_hosts_down_while_it_stops_is_stopped():
    past = given().when(*up_to_reply("shout"), running("1.0"), received(2, STOP))

    past.when(TAKEN, TAKEN, TAKEN).then(SessionTakenOver, ToolInDoubt, SessionStopped)


# Forks: nothing in flight crosses.


def fork(*commands, goal="Try again.", is_open=False):
    past = given()
    facts = []
    for command in commands:
        facts += past.when(command).facts
    shell = load_prefix(facts, "session-default/fork")
    step = shell.take(
        SessionForked(
            parent="session-default/1",
            version=len(facts),
            hash="00",
            agent=AGENT,
            goal=goal,
            open=is_open,
            attached=False,
            note=None,
            epoch=1,
        )
    )
    return shell, step


def test_a_fork_tells_that_open_calls_belong_to_its_parent():
    shell, step = fork(*up_to_reply("shout"), running("1.0"))

    assert [SessionForked, ModelRequested] == [type(fact) for fact in step]
    assert FORKED_AWAY in shell.prompt.messages[-2].decode()
    assert "Try again." in shell.prompt.messages[-1].decode()


def test_a_fork_in_the_middle_of_a_model_call_asks_again():
    _, step = fork(started(), asking(), goal=None)

    assert [SessionForked, ModelRequested] == [type(fact) for fact in step]


def test_a_fork_at_the_start_keeps_the_goal():
    shell = load_prefix([started()], "session-default/fork")
    forked = SessionForked(
        parent="session-default/1",
        version=1,
        hash="00",
        agent=AGENT,
        goal=None,
        open=False,
        attached=False,
        note="A copy.",
        epoch=1,
    )

    shell.take(forked)

    said_to_it = [message.decode() for message in shell.prompt.messages]
    assert ["Tidy up.", "A copy."] == [text.split('"text":"')[1][:-2] for text in said_to_it]


def test_a_fork_of_a_stopped_session_completes_its_half_pairs():
    shell, _ = fork(*up_to_reply("shout", "look"), running("1.0"), returned("1.0"), STOPPING)

    assert ["call-1-0", "call-1-1"] == [
        message.decode().split('"call":"')[1].partition('"')[0]
        for message in shell.prompt.messages[2:4]
    ]


STOPPING = received(2, STOP)


def test_a_fork_of_a_finished_session_without_a_goal_waits_for_a_message():
    shell, step = fork(started(), asking(), saying(), goal=None)

    assert [SessionForked, SessionIdle] == [type(fact) for fact in step]
    assert "session-default/fork" == shell.state.stream


def test_a_fork_has_its_own_inbox_and_limits():
    shell, _ = fork(started(), asking(), said(2), said(3))

    assert (1, 1, "session-default/fork") == (
        shell.state.inbox_read,
        shell.state.turn.since_user,
        shell.state.stream,
    )


def test_a_session_that_was_not_created_owes_nothing():
    assert ([], None) == (due(session_of("session-default/1")), wake_at(given().state))
