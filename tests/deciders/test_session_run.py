"""Runs: queued until a runner claims them, and ended when it is removed."""

from decimal import Decimal

import pytest

from cueline.deciders.session import Status, due, evolve, wake_at
from cueline.events.agent_parts import Step
from cueline.events.codes import Cause
from cueline.events.inbox import PauseAsked, ResumeAsked, RunAdmitted, RunnerGone, StopAsked
from cueline.events.session import (
    CallsAdded,
    MessageReceived,
    ModelFailed,
    ModelRequested,
    OutcomeCameLate,
    RunClaimed,
    SessionContinued,
    SessionFailed,
    SessionStarted,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    ToolFailed,
    ToolInDoubt,
)
from cueline.events.start import DISCONNECTED, NO_RUNNER, Run
from cueline.testing.given import given
from tests.deciders.planned import planned
from tests.session_example import (
    AGENT,
    NOW,
    asking,
    broken,
    failing,
    later,
    received,
    returned,
    running,
    saying,
    started,
)

CRAWL = Run(blueprint="crawler")
QUEUED = Cause(code="queued", blueprint="crawler")
CLAIMED = RunClaimed(runner="r1")


def asked(run=CRAWL, **fields):
    return started(AGENT).model_copy(update={"run": run, **fields})


def queued():
    return given().when(asked(), looked(300))


def claimed(*tools):
    past = given().when(asked(), CLAIMED, asking())
    return past.when(saying(*tools)) if tools else past


def gone(version=2, runner="r1", *, graceful=False):
    return received(version, RunnerGone(runner=runner, reason="exit 137", graceful=graceful))


def looked(seconds):
    """Return that its host found no runner, and for how long it waits for one."""
    return SessionContinued(by="work", at=NOW, queued_until=later(seconds))


def passed(seconds, until=None):
    return SessionContinued(by="deadline", at=later(seconds), queued_until=until)


# 001-038
def test_a_run_waits_in_the_queue_until_a_runner_claims_it():
    wait = SessionWaiting(kind="runner", cause=QUEUED, deadline_at=later(300))

    past = queued().then(looked(300), wait)

    assert (Status.WAITING, [], later(300)) == (
        past.state.status,
        due(past.state),
        wake_at(past.state),
    )


def test_a_claimed_run_goes_on():
    past = queued().when(CLAIMED).then(RunClaimed, ModelRequested)

    assert (Status.RUNNING, None, "r1") == (
        past.state.status,
        past.state.waiting,
        past.state.run.runner,
    )


def test_a_run_is_claimed_once():
    claimed().when(RunClaimed(runner="r2")).then_nothing()


def test_an_ordinary_session_is_not_claimed():
    given().when(started(), CLAIMED).then_nothing()


# 001-039, 001-040
def test_a_run_that_nobody_claims_in_time_fails():
    failed = SessionFailed(kind="no_matching_runner", message=NO_RUNNER)

    queued().when(passed(300)).then(passed(300), failed)

    assert NO_RUNNER == "No matching runner available within timeout"


def test_a_run_waits_as_long_as_its_start_says():
    past = given().when(asked(), looked(60))

    past.when(passed(60)).then(SessionContinued, SessionFailed)


# C32
def test_a_run_of_a_stale_runner_waits_until_that_is_removed():
    past = queued().when(passed(300, until=later(600)))

    past.then(passed(300, later(600)), SessionWaiting)
    assert later(600) == wake_at(past.state)
    past.when(passed(600)).then(SessionContinued, SessionFailed)


def test_a_queued_run_can_be_stopped():
    queued().when(received(2, StopAsked())).then(MessageReceived, SessionStopped)


def test_a_paused_run_is_claimed_and_stays_paused():
    past = queued().when(received(2, PauseAsked())).then(MessageReceived, SessionWaiting)

    past.when(CLAIMED).then(RunClaimed, SessionWaiting)

    assert [] == due(past.state)
    past.when(received(3, ResumeAsked())).then(MessageReceived, ModelRequested)


# 001-015, 001-016, 001-017, 001-045
def test_a_run_fails_when_its_runner_is_removed():
    failed = SessionFailed(kind="runner_disconnected", message=DISCONNECTED)

    claimed("look").when(gone()).then(gone(), failed)

    assert DISCONNECTED == "Runner disconnected during execution"


def test_a_model_call_is_cancelled_before_its_run_fails():
    past = claimed().when(gone()).then(MessageReceived)

    assert Status.STOPPING is past.state.status
    past.when(failing("cancelled")).then(ModelFailed, SessionFailed)


def test_the_removal_of_another_runner_changes_nothing():
    past = claimed("look").when(gone(runner="r2")).then(MessageReceived)

    assert Status.RUNNING is past.state.status


def test_an_ordinary_session_outlives_a_runner():
    past = given().when(started(), asking(), saying("look"), gone()).then(MessageReceived)

    assert Status.RUNNING is past.state.status


# D17
def test_a_run_that_is_being_stopped_fails_when_its_runner_is_removed():
    past = claimed("shout").when(running("1.0"), received(2, StopAsked()), gone(3))

    past.when(broken("1.0", "lost")).then(ToolInDoubt, SessionFailed)


# 001-021, 001-056
def test_a_run_is_queued_again_after_a_graceful_leave():
    past = claimed("shout").when(gone(graceful=True))

    past.then(MessageReceived)
    assert [] == due(past.state)
    past.when(looked(300)).then(SessionContinued, SessionWaiting)
    assert later(300) == wake_at(past.state)
    past.when(RunClaimed(runner="r2")).then(RunClaimed)
    assert ["1.0"] == [each.effect for each in due(past.state)]


# 001-026: what may be repeated is declared; a tool without a declaration is not.
def test_a_call_that_can_be_repeated_is_no_reason_to_fail_after_a_graceful_leave():
    past = claimed("put").when(running("1.0"), gone(graceful=True)).then(MessageReceived)

    past.when(broken("1.0", "lost")).then(ToolFailed)
    assert (True, "requested") == (past.state.queued, past.state.open_calls[0].phase)


# 001-025, 001-026
def test_a_run_with_a_started_undeclared_call_fails_after_a_graceful_leave():
    past = claimed("shout").when(running("1.0"), gone(graceful=True)).then(MessageReceived)

    past.when(broken("1.0", "lost")).then(ToolInDoubt, SessionFailed)


# D15, D16, 001-050
def test_a_late_result_changes_nothing_in_a_failed_run():
    past = claimed("shout").when(running("1.0"), gone(), broken("1.0", "lost"))

    past.when(returned("1.0")).then(OutcomeCameLate)

    assert Status.FAILED is past.state.status


def test_a_run_that_stops_is_not_claimed():
    past = claimed("shout").when(running("1.0"), gone(graceful=True), received(3, StopAsked()))

    past.when(CLAIMED).then_nothing()


def test_a_run_goes_on_after_a_takeover():
    taken = SessionTakenOver(epoch=2, at=NOW)

    past = claimed("look").when(taken, gone()).then(MessageReceived, SessionFailed)

    assert past.state.finished


def test_a_run_is_claimed_without_a_wait():
    given().when(asked()).then(asked()).when(CLAIMED).then(CLAIMED, ModelRequested)


def test_a_claim_of_no_run_changes_no_state():
    state = given().when(started()).state

    assert state is evolve(state, CLAIMED)


@pytest.mark.parametrize("fact", [asked(), asked(Run(blueprint="x", retry_of="session-default/1"))])
def test_the_start_of_a_run_names_its_blueprint(fact):
    assert isinstance(given().when(fact).facts[0], SessionStarted)


def test_a_queued_run_that_is_looked_at_early_waits_on():
    queued().when(passed(10)).then_nothing()


# 001-002
def test_a_run_of_a_plan_begins_when_it_is_claimed():
    past = given().when(asked(agent=planned(Step(name="look")), goal=None))

    past.then(SessionStarted).when(CLAIMED).then(RunClaimed, CallsAdded)


# Blueprints of which only so many runs go on at a time.

BEHIND = SessionContinued(by="work", at=NOW, max_running=2)


def behind():
    return given().when(asked(), BEHIND)


def test_a_run_waits_to_be_admitted_without_a_deadline():
    wait = SessionWaiting(
        kind="runner", cause=Cause(code="queued", blueprint="crawler", of=Decimal(2))
    )

    past = behind().then(BEHIND, wait)

    assert (None, []) == (wake_at(past.state), due(past.state))


def test_an_admitted_run_is_claimed_or_waits_for_a_runner():
    behind().when(received(2, RunAdmitted())).then(MessageReceived, SessionContinued)
    behind().when(received(2, RunAdmitted()), CLAIMED).then(RunClaimed, ModelRequested)

    past = behind().when(received(2, RunAdmitted()), looked(300))

    assert later(300) == wake_at(past.state)


def test_a_run_that_waited_for_a_runner_may_have_to_be_admitted():
    past = queued().when(BEHIND).then(BEHIND, SessionWaiting)

    assert wake_at(past.state) is None


def test_an_ordinary_session_cannot_be_admitted():
    given().when(started(), asking(), received(2, RunAdmitted())).then(MessageReceived)


def test_a_run_is_admitted_for_good():
    past = behind().when(received(2, RunAdmitted()), CLAIMED, gone(3, graceful=True))

    assert past.state.run.admitted
    past.when(BEHIND).then_nothing()
    assert 0 == past.state.run.max_running
