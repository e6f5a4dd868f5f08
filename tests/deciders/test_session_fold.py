"""What is recorded happened: it is folded, also where it fits nothing that is open."""

import pytest

from cueline.deciders.prompt import Prompt
from cueline.deciders.session import Status, due, rests, wake_at
from cueline.deciders.session.decide import command_of
from cueline.deciders.session.permission import startable
from cueline.deciders.session.wait import wait_of
from cueline.events.codes import Cause
from cueline.events.inbox import PauseAsked, ResumeAsked, StartAsked, StopAsked
from cueline.events.session import (
    ApprovalResolved,
    LimitRaised,
    LimitWarned,
    MessageReceived,
    ModelRequested,
    OutcomeCameLate,
    PeopleNotified,
    SessionCompleted,
    SessionContinued,
    SessionStopped,
    SessionWaiting,
    ToolInDoubt,
    ToolReconciled,
)
from cueline.testing.given import given
from tests.session_example import (
    AGENT,
    NOW,
    asking,
    broken,
    failing,
    later,
    question,
    received,
    returned,
    running,
    saying,
    started,
    up_to_reply,
)


def idle():
    return given().when(started(open=True), asking(), saying())


def test_the_events_after_a_redacted_start_are_folded():
    denied = ApprovalResolved(approval="1.1.0.1", verdict="denied", by="ada")

    past = [asking(), saying("shout"), question("1.0", "1.1.0.1"), denied, failing("auth")]
    ended = given(*past, SessionCompleted(result="Done."))

    assert Status.COMPLETED is ended.state.status


STRAY = [
    SessionWaiting(kind="budget", cause=Cause(code="budget_busy"), deadline_at=NOW),
    SessionWaiting(
        kind="breaker",
        cause=Cause(code="breaker_open", dependency="m", failure="timeout"),
        deadline_at=NOW,
        effects=("1.m",),
        reserved=True,
    ),
    asking(9),
    failing("network"),
    LimitRaised(max_turns=60),
    ToolReconciled(effect="9.0", outcome="happened", by="ada"),
    ToolInDoubt(
        effect="9.0", attempt=1, cause=Cause(code="tool_failed", failure="lost", message="gone")
    ),
    returned("9.0"),
    running("9.0"),
    question("9.0", "1.9.0.1"),
    ApprovalResolved(approval="1.9.0.1", verdict="granted", by="ada"),
    PeopleNotified(effect="9.0", approval="1.9.0.1", hook=0, problem="", at=NOW),
]


# I13
@pytest.mark.parametrize("fact", STRAY, ids=lambda fact: getattr(fact, "kind", fact.type))
def test_a_fact_that_fits_nothing_leaves_nothing_owed(fact):
    past = given().when(started(open=True), asking(), saying()).facts
    facts = [*given().when(started(open=True)).facts, asking(), *past, fact]

    folded = given(*facts)

    assert ([], None) == (due(folded.state), wake_at(folded.state))
    folded.when(received(2, ResumeAsked()))
    assert MessageReceived in map(type, folded.facts)


@pytest.mark.parametrize("fact", STRAY[2:], ids=lambda fact: getattr(fact, "kind", fact.type))
def test_what_fits_nothing_is_not_recorded(fact):
    before = idle()

    told = [type(each) for each in before.when(fact).facts]

    assert told in ([], [PeopleNotified], [OutcomeCameLate])


# I10: the first event of a step holds the whole command.
@pytest.mark.parametrize(
    ("before", "command"),
    [
        ([started(), asking()], failing("overloaded")),
        ([*up_to_reply("look"), running("1.0", "look")], broken("1.0", "network")),
        ([*up_to_reply("peek"), running("1.0", "peek")], broken("1.0", "tool_error")),
        ([started()], received(2, StartAsked(agent=AGENT, asked_at=NOW))),
        ([started()], received(2, PauseAsked())),
    ],
    ids=["model", "tool", "not critical", "refused", "taken"],
)
def test_the_command_of_a_step_is_known_from_its_first_event(before, command):
    past = given().when(*before, command)

    assert command == command_of(past.facts[0])


def test_an_answer_to_an_attempt_that_is_not_in_flight_came_late():
    given().when(started(), asking(), saying(attempt=9)).then(OutcomeCameLate)


def test_a_second_pause_changes_nothing():
    past = given().when(*up_to_reply("look"), received(2, PauseAsked()))

    past.when(received(3, PauseAsked(why="signal"))).then(MessageReceived)
    assert "asked" == past.state.hold.cause.code


def test_a_call_waits_for_its_runner_whatever_else_goes_on():
    unreachable = SessionWaiting(
        kind="runner", cause=Cause(code="runner_unreachable"), deadline_at=later(30)
    )
    past = given().when(*up_to_reply("shout"), unreachable)

    past.when(SessionContinued(by="deadline", at=later(10)))

    assert later(30) == wake_at(past.state)


def test_only_a_person_ends_a_pause():
    exhausted = SessionWaiting(kind="budget", cause=Cause(code="budget_exhausted"), exhausted=True)
    waits = [given(*given().when(started()).facts, wait).state.waiting
             for wait in (STRAY[0], exhausted)]  # fmt: skip

    assert [False, True] == [wait.is_pause for wait in waits]


def test_a_request_without_a_result_that_is_missing_is_folded():
    prompt = Prompt()
    for fact in [*up_to_reply("look"), *given().when(*up_to_reply("look")).facts]:
        prompt.add(fact)
    before = len(prompt.messages)

    prompt.add(ModelRequested(effect="2.m", attempt=1, digest="", prefix_digest=""))

    assert before == len(prompt.messages)


# What only ever follows from something else is nobody's to say.
def test_a_consequence_alone_is_not_recorded():
    warned = LimitWarned(limit="max_turns", share=0.8, used=8, of=10)

    given().when(*up_to_reply("look"), warned).then_nothing()


def test_what_only_a_person_can_mend_is_waited_for():
    error = SessionWaiting(
        kind="operator", cause=Cause(code="unexpected_error", message="KeyError: 'script'")
    )

    past = given().when(*up_to_reply("look"), error).then(error)

    assert (error.cause, []) == (past.state.hold.cause, due(past.state))


def test_an_edit_of_an_unknown_call_leaves_the_prompt_unchanged():
    prompt = Prompt()
    for fact in [*up_to_reply("delete"), ApprovalResolved(
        approval="1.9.0.1", verdict="granted", by="ada", edit={"path": "b"}
    )]:  # fmt: skip
        prompt.add(fact)

    assert {"1.0": {}} == {effect: call.arguments for effect, call in prompt.calls.items()}


def test_a_question_that_ran_out_while_the_session_stops_does_not_hold_it():
    past = given().when(*up_to_reply("delete"), question("1.0", "1.1.0.1"))
    past.when(received(2, StopAsked())).then(MessageReceived)

    expired = ApprovalResolved(approval="1.1.0.1", verdict="expired", by="clock")
    past.when(expired).then(ApprovalResolved, SessionStopped)


def test_a_call_of_an_earlier_turn_never_starts():
    past = given().when(*up_to_reply("look"), running("1.0", "look"))
    earlier = past.state.call("1.0")
    past.when(returned("1.0"), asking(2), saying("look", turn=2))

    assert not startable(past.state, earlier)


def test_a_session_that_has_ended_waits_for_nothing():
    assert wait_of(given().when(started(), asking(), saying()).state) is None


def test_nothing_more_comes_of_a_session_that_has_ended_or_is_idle():
    ended = given().when(started(), asking(), saying()).state
    idle = given().when(started(open=True), asking(), saying()).state

    assert [True, True] == [rests(state, NOW) for state in (ended, idle)]


def test_a_session_rests_while_a_person_has_to_say_something():
    working = given().when(*up_to_reply("shout"), running("1.0"))
    paused = given().when(*up_to_reply("shout"), running("1.0"), received(2, PauseAsked()))
    paused.when(returned("1.0"))
    asked = given().when(*up_to_reply("delete"), question("1.0", "1.1.0.1"))

    assert [False, True] == [rests(past.state, NOW) for past in (working, paused)]
    assert [True, False] == [rests(asked.state, moment) for moment in (later(299), later(300))]
