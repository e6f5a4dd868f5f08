"""Nothing in flight crosses a fork."""

from decimal import Decimal

from cueline.deciders.prompt import FORKED_AWAY
from cueline.deciders.session import wake_at
from cueline.deciders.session.budget import path_of
from cueline.events.budget import Allowance
from cueline.events.inbox import StopAsked
from cueline.events.session import (
    ModelRequested,
    SessionForked,
    SessionIdle,
)
from cueline.testing.given import given
from tests.deciders.simulation import load_prefix
from tests.session_example import (
    AGENT,
    agent,
    asking,
    failing,
    forked,
    later,
    received,
    returned,
    running,
    said,
    saying,
    started,
    up_to_reply,
)


def fork(*commands, goal="Try again."):
    past = given()
    facts = []
    for command in commands:
        facts += past.when(command).facts
    shell = load_prefix(facts, "session-default/fork")
    step = shell.take(forked(AGENT, goal, version=len(facts)))
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

    shell.take(forked(note="A copy."))

    said_to_it = [message.decode() for message in shell.prompt.messages]
    assert ["Tidy up.", "A copy."] == [text.split('"text":"')[1][:-2] for text in said_to_it]


def test_a_fork_of_a_stopped_session_completes_its_half_pairs():
    shell, _ = fork(*up_to_reply("shout", "look"), running("1.0"), returned("1.0"), STOPPING)

    assert ["call-1-0", "call-1-1"] == [
        message.decode().split('"call":"')[1].partition('"')[0]
        for message in shell.prompt.messages[2:4]
    ]


STOPPING = received(2, StopAsked())


def test_a_fork_of_a_finished_session_without_a_goal_waits_for_a_message():
    shell, step = fork(started(), asking(), saying(), goal=None)

    assert [SessionForked, SessionIdle] == [type(fact) for fact in step]
    assert "session-default/fork" == shell.state.stream


def test_a_fork_does_not_inherit_the_time_of_the_open_turn():
    spent = failing("overloaded").model_copy(update={"seconds": 7.0})

    shell, _ = fork(started(), asking(), spent, goal=None)

    assert 0.0 == shell.state.turn.active_seconds


def test_a_fork_has_its_own_inbox_and_turns():
    shell, _ = fork(started(), asking(), said(2), said(3))

    assert (1, 1, "session-default/fork") == (
        shell.state.inbox_read,
        shell.state.turn.since_user,
        shell.state.stream,
    )


# I8: what is spent by then is its parent's, the limits are its own.
def test_a_fork_is_held_to_its_limits():
    past = given().when(started(), asking(), saying())

    past.when(forked(agent(max_cost=Decimal(1), max_wall_seconds=30), "Go on."))

    own = Allowance(session="session-default/1", max_cost=Decimal(1))
    assert ((own,), later(24)) == (path_of(past.state), wake_at(past.state))


def test_a_fork_sends_what_its_parent_sent_first():
    past = given().when(started(), asking(), saying())
    sent = past.state.prompt_digests.requested

    past.when(forked(goal="Go on."))

    assert sent == past.facts[1].prefix_digest


# Its first request goes to the agent's own model, which was told nothing of it.
def test_a_fork_of_a_session_on_a_fallback_has_no_earlier_prompt():
    stand_in = agent(max_retries=0, fallbacks=1)
    past = given().when(started(stand_in), asking(), failing("auth"), asking(attempt=2))

    past.when(saying(attempt=2), forked(stand_in, "Go on."))

    changed, asked = past.facts[1:3]
    assert ("fallback_returned", "scripted fallback-1") == (changed.reason, changed.before)
    assert "" == asked.prefix_digest


def test_a_fork_with_another_agent_has_no_earlier_prompt():
    past = given().when(started(open=True), asking(), saying())

    past.when(forked(AGENT.model_copy(update={"instructions": "Be brief."}), "Go on."))

    assert "forked_with_another_agent" == past.facts[1].reason
    assert "" == past.facts[2].prefix_digest
