"""Calls that start a child session, and how it ends."""

import json
from datetime import timedelta
from decimal import Decimal

import pytest

from cueline.deciders.child_text import CHARACTERS
from cueline.deciders.session import Status, decide, due, evolve, wake_at
from cueline.deciders.session.children import END_SECONDS, newly_stopped
from cueline.deciders.session.delegation import child_agent, child_request
from cueline.deciders.session.due import StartChild
from cueline.events.agent import Hook, Policy, Rule, Workspace
from cueline.events.inbox import ChildAsked, ChildEnded, StopAsked
from cueline.events.session import (
    CallDelegated,
    MessageReceived,
    ModelRequested,
    SessionCompleted,
    SessionContinued,
    SessionIdle,
    SessionStopped,
    SessionWaiting,
    ToolFailed,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
)
from cueline.events.start import Run
from cueline.testing.given import given
from tests.session_example import (
    AGENT,
    NOW,
    asking,
    failing,
    forked,
    later,
    received,
    returned,
    running,
    saying,
    started,
    tool,
)

LOOKER = AGENT.model_copy(update={"name": "looker"})
HELPERS = tuple(
    tool(name, critical=name != "extra", sensitive=name == "secret").model_copy(
        update={"target": "agent:looker"}
    )
    for name in ("helper", "other", "extra", "secret")
)
LEAD = AGENT.model_copy(update={"tools": (*AGENT.tools, *HELPERS), "agents": {"looker": LOOKER}})
CHILD = "session-default/1.1.0"


def calling(*tools, spec=LEAD, **start):
    """Return a session whose model called *tools*."""
    return given().when(started(spec, **start), asking(), saying(*tools))


def delegated(index=0, mode="sync", seconds=600):
    return CallDelegated(
        effect=f"1.{index}",
        tool="helper",
        agent="looker",
        child=f"session-default/1.1.{index}",
        mode=mode,
        deadline_at=later(seconds),
        rule="not sensitive",
    )


def ended(index=0, status="completed", **fields):
    return ChildEnded(
        child=f"session-default/1.1.{index}", effect=f"1.{index}", status=status, **fields
    )


def starts(past):
    """Return the calls whose children are due to start."""
    return [effect.effect for effect in due(past.state) if isinstance(effect, StartChild)]


def test_a_call_of_an_agent_is_delegated_and_its_session_waits():
    past = calling("helper")
    assert ["1.0"] == starts(past)

    past.when(delegated()).then(CallDelegated, SessionWaiting)

    waiting = past.state.waiting
    assert ("child", "child_running", later(600)) == (
        waiting.kind, waiting.cause.code, waiting.deadline_at
    )  # fmt: skip
    assert [] == due(past.state)


# 003-003, 003-015: the child's end is one message, which closes the call in its own step.
def test_a_childs_end_is_the_result_of_its_call():
    past = calling("helper").when(delegated())

    past.when(received(2, ended(text="Seen.", usd=Decimal("0.1")))).then(
        MessageReceived, ToolReturned, ModelRequested
    )

    assert () == past.state.children
    assert () == past.state.ended


def test_a_child_that_failed_is_a_failed_call_with_its_code():
    past = calling("helper").when(delegated())

    past.when(received(2, ended(status="failed", error_code="auth", error="bad key")))

    failed = next(fact for fact in past.facts if isinstance(fact, ToolFailed))
    assert ("auth", "bad key", None, CHILD) == (
        failed.kind, failed.message, failed.retry_at, failed.child
    )  # fmt: skip


# C5
def test_a_child_that_is_not_critical_may_fail():
    past = calling("extra").when(delegated())
    past.when(received(2, ended(status="failed", error_code="auth", error="bad key")))

    assert past.state.partial
    assert any(isinstance(fact, ModelRequested) for fact in past.facts)


def test_a_value_of_a_declared_form_is_the_result():
    past = calling("helper").when(delegated())
    past.when(received(2, ended(text='```{"ok": 1}```', value={"ok": 1})))

    outcome = next(fact for fact in past.facts if isinstance(fact, ToolReturned))
    assert '{"ok": 1}' == outcome.output


def test_a_long_text_is_capped():
    past = calling("helper").when(delegated())
    past.when(received(2, ended(text="x" * (CHARACTERS + 7))))

    outcome = next(fact for fact in past.facts if isinstance(fact, ToolReturned))
    assert outcome.output.endswith("[… 7 characters are left out here …]")


def test_children_run_beside_each_other_and_beside_read_only_tools_after_undeclared_ones():
    past = calling("helper", "other", "look", "shout")

    assert ["1.0", "1.1"] == starts(past)
    past.when(delegated(0), delegated(1), running("1.2", "look"), returned("1.2"))
    assert 2 == past.state.waiting.cause.times
    past.when(received(2, ended(0)), received(3, ended(1)))
    assert [] == starts(past)
    past.when(running("1.3", "shout")).then(ToolStarted)


def test_a_call_may_be_refused_before_its_child_starts():
    past = calling("helper")

    past.when(ToolSkipped(effect="1.0", reason="the tree is full")).then(
        ToolSkipped, ModelRequested
    )
    assert [] == decide(ToolSkipped(effect="1.0", reason="again"), past.state)


def test_only_the_start_of_a_child_may_be_refused_like_this():
    assert [] == decide(ToolSkipped(effect="1.0", reason="no"), calling("shout").state)


# C25: the source's text.
def test_a_session_at_the_limit_of_depth_starts_no_child():
    limits = LEAD.limits.model_copy(update={"max_depth": 0})
    past = calling("helper", spec=LEAD.model_copy(update={"limits": limits}))

    skipped = next(fact for fact in past.facts if isinstance(fact, ToolSkipped))
    assert "Maximum nesting depth (0) exceeded" == skipped.reason


def test_a_child_can_need_an_approval():
    past = calling("secret")

    assert [] == starts(past)
    assert past.state.turn.calls[0].gated


# I14, D25: a child that does not end in time is stopped, and what it says then is the result.
def test_a_child_that_is_late_is_stopped_and_heard():
    past = calling("helper").when(delegated())
    before = past.state

    past.when(SessionContinued(by="deadline", at=later(600)))
    assert [CHILD] == newly_stopped(before, past.state)
    assert later(600) + timedelta(seconds=END_SECONDS) == wake_at(past.state)
    late = ended(status="stopped", error_code="child_stopped", error="as asked")
    past.when(received(2, late)).then(MessageReceived, ToolFailed, ModelRequested)


def test_a_child_that_does_not_even_stop_is_given_up():
    past = calling("helper").when(delegated())
    past.when(SessionContinued(by="deadline", at=later(600)))

    past.when(SessionContinued(by="deadline", at=later(660)))

    failed = next(fact for fact in past.facts if isinstance(fact, ToolFailed))
    assert "child_timeout" == failed.kind
    assert () == past.state.children
    past.when(received(2, ended(text="too late"))).then(MessageReceived)


def deadline(seconds, waited=0.0):
    return SessionContinued(
        by="deadline", at=later(seconds), waited={CHILD: waited} if waited else {}
    )


# I14: else its parent would wake ever sooner while nobody answers.
def test_a_child_that_waits_for_a_person_near_its_deadline_is_looked_at_once_a_minute():
    past = calling("helper").when(delegated()).when(deadline(600, waited=0.5))
    assert later(660) == wake_at(past.state)

    past.when(deadline(660, waited=60.5))
    assert later(720) == wake_at(past.state)

    before = past.state
    past.when(deadline(720, waited=70))
    assert [CHILD] == newly_stopped(before, past.state)


# I14
def test_a_child_that_was_asked_to_stop_gets_no_time_to_wait_for_a_person():
    past = calling("helper").when(delegated()).when(deadline(600))

    past.when(deadline(660, waited=60))

    failed = next(fact for fact in past.facts if isinstance(fact, ToolFailed))
    assert "child_timeout" == failed.kind


def test_a_deadline_leaves_other_children_alone():
    past = calling("helper", "other").when(delegated(0, seconds=10), delegated(1))

    past.when(SessionContinued(by="deadline", at=later(10)))

    assert [True, False] == [child.stopping for child in past.state.children]


# 003-003: a parent's stop stops its children, and it ends after them.
def test_a_stopped_session_stops_its_children_and_ends_after_them():
    past = calling("helper").when(delegated())
    before = past.state

    past.when(received(2, StopAsked())).then(MessageReceived)
    assert [CHILD] == newly_stopped(before, past.state)
    assert [] == newly_stopped(past.state, past.state)
    past.when(received(3, ended(status="stopped", error_code="child_stopped")))
    assert isinstance(past.facts[-1], SessionStopped)


def test_a_stopped_session_does_not_wait_for_a_child_that_does_not_stop():
    past = calling("helper").when(delegated(), received(2, StopAsked()))

    past.when(SessionContinued(by="deadline", at=later(600)))
    past.when(SessionContinued(by="deadline", at=later(660)))

    assert Status.STOPPED is past.state.status


def test_a_stopped_session_does_not_wait_for_the_child_of_a_program():
    other = "session-default/c"
    past = given().when(started(open=True), asking(), received(2, ChildAsked(child=other)))
    before = past.state

    past.when(saying(), received(3, StopAsked()))

    assert Status.STOPPED is past.state.status
    assert [other] == newly_stopped(before, past.state)


def test_a_child_that_begins_while_its_parent_stops_is_stopped_too():
    past = given().when(started(), asking(), received(2, StopAsked()))
    before = past.state

    past.when(received(3, ChildAsked(child="session-default/c")))

    assert ["session-default/c"] == newly_stopped(before, past.state)


def test_a_fork_has_no_child_of_its_past():
    past = [started(LEAD), asking(), saying("helper"), delegated()]

    assert () == given(*past).when(forked(LEAD, "Go on.")).state.children


# The mode `async_callback`.


def test_a_callback_child_leaves_the_call_and_keeps_its_session_from_ending():
    past = calling("helper").when(delegated(mode="async_callback"))

    past.then(CallDelegated, ToolReturned, ModelRequested)
    outcome = past.facts[-2]
    assert {"session": "1.1.0", "status": "started"} == json.loads(outcome.output)
    past.when(asking(2), saying(turn=2))
    assert isinstance(past.facts[-1], SessionWaiting)
    assert "child" == past.state.waiting.kind


# 003-057: it wakes a resting parent.
@pytest.mark.parametrize("open_", [True, False])
def test_the_end_of_a_callback_child_is_a_message_to_the_model(open_):
    past = calling("helper", open=open_).when(delegated(mode="async_callback"))
    past.when(asking(2), saying(turn=2))

    end = ended(mode="async_callback", text="Seen.", original_parameters={"goal": "see"})
    past.when(received(2, end)).then(MessageReceived, ModelRequested)
    past.when(asking(3), saying(turn=3))
    assert isinstance(past.facts[-1], SessionIdle if open_ else SessionCompleted)


def test_the_ends_of_callback_children_are_one_request_if_the_parent_is_busy():
    past = calling("helper", "other")
    past.when(delegated(0, "async_callback"), delegated(1, "async_callback"), asking(2))

    ends = [ended(n, mode="async_callback") for n in (0, 1)]
    past.when(received(2, ends[0]), received(3, ends[1])).then(MessageReceived)
    past.when(saying(turn=2))
    assert (2, 3) == past.facts[-1].messages


def test_a_callback_child_that_does_not_end_is_waited_for_no_longer():
    past = calling("helper").when(delegated(mode="async_callback"), asking(2), saying(turn=2))
    past.when(SessionContinued(by="deadline", at=later(600)))

    past.when(SessionContinued(by="deadline", at=later(660)))

    assert isinstance(past.facts[-1], SessionCompleted)


# 003-003: nobody would hear of them.
def test_the_children_of_a_session_that_fails_are_stopped():
    past = calling("helper").when(delegated(mode="async_callback"), asking(2))
    before = past.state

    past.when(failing("refused", turn=2))

    assert Status.FAILED is past.state.status
    assert [CHILD] == newly_stopped(before, past.state)


# Rights.


def request(spec=LEAD):
    past = calling("helper", spec=spec).when(delegated())
    return child_request(past.state, delegated(), {"goal": "see"}, NOW)


# 003-055: it names its parent, and the root of the tree.
def test_a_child_begins_with_its_goal_and_place():
    limits = LEAD.limits.model_copy(update={"max_cost": Decimal(5)})
    asked = request(LEAD.model_copy(update={"limits": limits}))

    assert ("looker", "see", "session-default/1", "session-default/1", 1) == (
        asked.agent.name, asked.goal, asked.parent, asked.root, asked.depth
    )  # fmt: skip
    assert [Decimal(5)] == [each.max_cost for each in asked.allowances]
    assert ("1.0", {"goal": "see"}) == (asked.call.effect, asked.call.parameters)


# 003-016, D7
def test_a_child_of_a_blueprint_is_a_run_with_no_more_rights():
    offered = LOOKER.model_copy(update={"agents": {"own": AGENT}})
    strict = LEAD.model_copy(update={"policy": Policy(approval=("all_writes",))})
    past = calling("helper", spec=strict).when(delegated())

    asked = child_request(past.state, delegated(), {"goal": "see"}, NOW, offered)

    assert Run(blueprint="looker") == asked.run
    assert "all_writes" in asked.agent.policy.approval
    assert ["own"] == list(asked.agent.agents)


# 003-016, D7: children never gain rights.
def test_a_child_is_asked_whatever_its_parent_or_itself_is_asked():
    rules = (Rule(name="a", answer="deny", tools=("burn",)),)
    hooks = (Hook(on="asked", command=("tell",)),)
    parent = Policy(
        rules=rules, approval=("all_writes",), deny_from_usd=Decimal(3), hooks=hooks, in_doubt="ask"
    )
    child = Policy(approval="off", auto_approve=True, auto_approve_after=3.0, in_doubt="tell")

    policy = child_agent(
        LEAD.model_copy(update={"policy": parent}), LOOKER.model_copy(update={"policy": child})
    ).policy

    assert (("all_writes", "off"), rules, Decimal(3), hooks) == (
        policy.approval, policy.rules, policy.deny_from_usd, policy.hooks
    )  # fmt: skip
    assert (False, None, "ask") == (
        policy.auto_approve, policy.auto_approve_after, policy.in_doubt
    )  # fmt: skip


def test_what_both_grant_after_a_while_is_granted_after_the_longer():
    parent, child = (Policy(auto_approve_after=n, in_doubt="tell") for n in (3.0, 9.0))
    policy = child_agent(
        LEAD.model_copy(update={"policy": parent}), LOOKER.model_copy(update={"policy": child})
    ).policy

    assert (9.0, "tell") == (policy.auto_approve_after, policy.in_doubt)


def test_a_child_works_in_its_parents_folder_no_deeper_than_its_parent_may():
    place = Workspace(machine="m", path="/w")
    limits = LEAD.limits.model_copy(update={"max_depth": 1})
    parent = LEAD.model_copy(update={"workspace": place, "limits": limits, "key_owner": "ann"})
    further = LOOKER.model_copy(update={"tools": HELPERS})

    child = child_agent(parent, further)

    assert (place, 1, "ann") == (child.workspace, child.limits.max_depth, child.key_owner)
    assert LEAD.agents == child.agents
    assert {} == child_agent(parent, LOOKER).agents


def test_tools_that_write_and_such_children_are_told_of():
    past = calling("look", "shout").when(running("1.0", "look"), returned("1.0"))
    assert not past.state.side_effects
    past.when(running("1.1", "shout"))
    assert past.state.side_effects

    above = calling("helper").when(delegated())
    above.when(received(2, ended(side_effects_possible=True)))
    assert above.state.side_effects


def test_facts_of_calls_that_there_are_not_change_nothing():
    state = calling("look").state

    assert [] == decide(delegated(7), state)
    assert state == evolve(state, delegated(7))
