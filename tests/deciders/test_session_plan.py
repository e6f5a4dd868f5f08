"""Sessions that follow a plan: which steps begin, how they end, and how the session does."""

import pytest

from cueline.deciders import prompt
from cueline.deciders.session import Status, due, evolve, wake_at
from cueline.deciders.session.due import AskApproval, AwaitMessage, CloseApproval, RunTool
from cueline.events.agent import Hook, Limits, ModelChoice, Rule
from cueline.events.agent_parts import VALUE_LIMIT, BreakerPolicy, Step
from cueline.events.codes import Cause
from cueline.events.inbox import (
    ChildEnded,
    ModelChangeAsked,
    PauseAsked,
    ResumeAsked,
    StopAsked,
)
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    CallDelegated,
    CallsAdded,
    MessageAwaited,
    MessageReceived,
    ModelRequested,
    OutcomeCameLate,
    PeopleNotified,
    SessionCompleted,
    SessionContinued,
    SessionFailed,
    SessionStarted,
    SessionStopped,
    SessionWaiting,
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
)
from cueline.testing.given import given
from tests.deciders.planned import at_work, awaited, begun, planned, ran, told
from tests.session_example import broken, decided, later, received, returned, running, said, started

ISSUES = {"verdict": "issues_found"}


def added(session):
    """Return the calls that the last command added, by id, with their arguments."""
    found = [fact for fact in session.facts if isinstance(fact, CallsAdded)]
    return {call.id: call.arguments for each in found for call in each.calls.values()}


def ended(session):
    """Return how the steps that the last command ended without a call ended."""
    found = [fact for fact in session.facts if isinstance(fact, CallsAdded)]
    return {each.step: (each.status, each.error_code) for one in found for each in one.ended}


def last(session, kind):
    (found,) = [fact for fact in session.facts if isinstance(fact, kind)]
    return found


def step(name, *needs, **fields):
    return Step(name=name, needs=needs, **fields)


# 003-015, 004-054
def test_steps_that_need_nothing_begin_with_the_session():
    session = at_work(step("look"), step("look2"), step("post", "look", "look2"))

    assert {"look": {}, "look2": {}} == added(session)
    assert ["1.0", "1.1"] == [e.effect for e in due(session.state) if isinstance(e, RunTool)]


def test_a_step_begins_in_the_append_of_the_outcome_that_it_needs():
    session = at_work(step("look"), step("post", "look"))

    session.when(*ran(0, "look")).then(ToolReturned, CallsAdded)

    assert {"post": {}} == added(session)


def test_a_step_waits_for_all_that_it_needs():
    session = at_work(step("look"), step("look2"), step("post", "look", "look2"))

    session.when(*ran(0, "look")).then(ToolReturned)
    session.when(*ran(1, "look2")).then(ToolReturned, CallsAdded)


# NEXT: `needs` replaces call order.
def test_an_undeclared_call_waits_only_for_what_it_needs():
    session = at_work(step("pay"), step("post"))

    session.when(running("1.0", "pay"), running("1.1", "post")).then(ToolStarted)


def test_the_arguments_are_rendered_from_parameters_and_results():
    one = step("look", arguments={"path": "{{ input.path }}"})
    two = step("post", arguments={"text": "n: {{ steps.look.value.n }}", "all": ["{{ input }}"]})

    session = given().when(begun(planned(one, two), path="a"))
    assert {"look": {"path": "a"}} == added(session)

    session.when(*ran(0, "look", {"n": [1]}))
    assert {"post": {"text": "n: [1]", "all": [{"path": "a"}]}} == added(session)


def test_at_most_max_parallel_calls_run_and_the_others_wait():
    session = at_work(step("a"), step("b"), step("c"), max_parallel=2)

    assert {"a": {}, "b": {}} == added(session)
    session.when(*ran(1, "b"))
    assert {"c": {}} == added(session)


# 004-055
def test_the_session_ends_with_the_value_of_the_last_step_that_completed():
    session = at_work(step("look"), step("post", "look", when="steps.look.value"))

    session.when(*ran(0, "look", value=False, output="false"))

    assert [ToolReturned, CallsAdded, SessionCompleted] == list(map(type, session.facts))
    assert (False, "false") == (session.facts[-1].value, session.facts[-1].result)
    assert Status.COMPLETED is session.state.status


def test_the_output_of_the_plan_is_the_result():
    session = at_work(step("look"), output="steps.look.value.names[0]")

    session.when(*ran(0, "look", {"names": ["ann"]}))

    assert ("ann", "ann") == (last(session, SessionCompleted).value, session.facts[-1].result)


def test_an_output_that_is_no_text_is_told_as_json():
    session = at_work(step("look"), output="steps.look.value").when(*ran(0, "look", {"a": "é"}))

    assert '{"a": "é"}' == last(session, SessionCompleted).result


def test_a_plan_of_skipped_steps_has_no_result():
    session = at_work(step("look", when="input.never"))

    assert ("", None) == (last(session, SessionCompleted).result, session.facts[-1].value)


@pytest.mark.parametrize(
    ("output", "value", "kind"),
    [
        ("abs(steps.look.value)", "x", "invalid_output"),
        ("steps.look.value", ["x" * VALUE_LIMIT], "result_too_large"),
    ],
)
def test_an_output_that_cannot_be_fails_the_session(output, value, kind):
    session = at_work(step("look"), output=output).when(*ran(0, "look", value))

    assert kind == last(session, SessionFailed).kind


# C5
def test_a_critical_step_that_fails_fails_the_session():
    session = at_work(step("pay"), step("post", "pay"))

    session.when(running("1.0", "pay"), broken("1.0", "tool_error"))

    failed = last(session, SessionFailed)
    assert ("step_failed", "step pay: tool_error: gone") == (failed.kind, failed.message)


def test_open_calls_finish_before_the_session_fails_and_nothing_more_begins():
    session = at_work(step("pay"), step("look"), step("post", "look"))
    session.when(running("1.0", "pay"), running("1.1", "look"))

    session.when(broken("1.0", "tool_error")).then(ToolFailed)
    session.when(returned("1.1")).then(ToolReturned, SessionFailed)


def test_calls_that_have_not_begun_are_skipped_after_a_critical_failure():
    session = at_work(step("pay"), step("delete"), step("go", wait="go"))
    session.when(awaited(0, "go"), running("1.1", "pay"))

    session.when(broken("1.1", "tool_error"))

    assert [ToolFailed, ToolSkipped, ToolSkipped, SessionFailed] == list(map(type, session.facts))


def test_a_question_is_closed_after_a_critical_failure():
    session = at_work(step("pay"), step("delete")).when(running("1.0", "pay"))
    session.when(question_of(session, "1.1", "delete"))

    session.when(broken("1.0", "tool_error"))

    (close,) = [each for each in due(session.state) if isinstance(each, CloseApproval)]
    assert "change" == close.superseded_by
    resolved = ApprovalResolved(approval=close.approval, verdict="superseded", by="change")
    session.when(resolved).then(ApprovalResolved, ToolSkipped, SessionFailed)


def question_of(session, effect, name):
    call = session.state.call(effect)
    return ApprovalRequested(
        effect=effect,
        approval=f"1.{effect}.1",
        digest=call.digest,
        deadline_at=later(300),
        question="may_it_run",
    )


# C5
def test_a_step_that_is_not_critical_leaves_the_result_partial():
    session = at_work(step("spare"), step("look"), step("post", "spare"))
    session.when(*ran(1, "look", 1))

    session.when(running("1.0", "spare"), broken("1.0", "tool_error"))

    assert {"post": ("skipped", "need_not_completed")} == ended(session)
    assert last(session, SessionCompleted).partial


def test_a_step_with_the_condition_always_runs_after_a_failure():
    read = "{{ steps.spare.status }}: {{ steps.spare.error_code }}"
    session = at_work(
        step("spare"), step("post", "spare", condition="always", arguments={"text": read})
    )

    session.when(running("1.0", "spare"), broken("1.0", "tool_error"))

    assert {"post": {"text": "failed: tool_error"}} == added(session)


@pytest.mark.parametrize(
    ("value", "runs"),
    [
        (ISSUES, True),
        ({"issues": ["a bug"]}, True),
        ([{"issues": []}, ISSUES], True),
        ({"issues": [], "verdict": "clean"}, False),
        ({"summary": "an issue, a bug"}, False),
        ("issues_found", False),
    ],
)
# 003-047, D29: a structured verdict, no search for words.
def test_a_step_on_issues_found_runs_by_the_verdict_of_the_step_before(value, runs):
    session = at_work(step("look"), step("fix", "look", condition="on_issues_found"))

    session.when(*ran(0, "look", value, "an issue, a bug"))

    assert runs is ("fix" in added(session))
    assert runs or {"fix": ("skipped", "no_issues_found")} == ended(session)


def test_a_skipped_step_skips_those_that_need_it():
    session = at_work(step("look", when="`false`"), step("a", "look"), step("b", "a"))

    assert {
        "look": ("skipped", "not_wanted"),
        "a": ("skipped", "need_not_completed"),
        "b": ("skipped", "need_not_completed"),
    } == {
        each.step: (each.status, each.error_code)
        for fact in session.facts
        if isinstance(fact, CallsAdded)
        for each in fact.ended
    }


def test_an_expression_without_a_value_fails_its_step():
    session = at_work(step("look", arguments={"n": "{{ abs(input.n) }}"}))

    assert {"look": ("failed", "invalid_expression")} == ended(session)
    assert "step look: invalid_expression" in last(session, SessionFailed).message


# for_each


def each_item(**options):
    looks = step("look", for_each="input.names", arguments={"n": "{{ item }}", "i": "{{ index }}"})
    spec = planned(looks, step("post", arguments={"all": "{{ steps.look.value }}"}), **options)
    return given().when(begun(spec, names=["a", "b", "c"]))


def test_a_step_with_items_has_a_call_for_each_and_their_values_as_its_own():
    session = each_item()
    assert {f"look[{i}]": {"n": n, "i": i} for i, n in enumerate("abc")} == added(session)

    session.when(*ran(2, "look", {"c": 1}), *ran(0, "look"))
    session.when(*ran(1, "look", [2]))

    assert {"post": {"all": ["ok", [2], {"c": 1}]}} == added(session)


def test_more_items_than_may_run_follow_one_by_one():
    session = each_item(max_parallel=2)
    assert ["look[0]", "look[1]"] == list(added(session))

    assert ["look[2]"] == list(added(session.when(*ran(0, "look", 1))))
    session.when(*ran(1, "look", 2), *ran(2, "look", 3))
    assert {"post": {"all": [1, 2, 3]}} == added(session)


def test_no_items_are_an_empty_list():
    session = given().when(
        begun(planned(step("look", for_each="input.names"), step("post", "look")), names=[])
    )

    assert {"look": ("completed", "")} == ended(session)
    assert {"post": {}} == added(session)
    assert [] == session.state.progress.over["look"].value


def test_items_that_are_no_list_fail_the_step():
    session = at_work(step("look", for_each="input.names"))

    assert {"look": ("failed", "invalid_expression")} == ended(session)


def test_an_item_that_fails_fails_a_critical_step_at_once():
    session = each_item()
    session.when(running("1.0", "look"), running("1.1", "look"), broken("1.0", "tool_error"))
    assert [ToolFailed, ToolSkipped] == list(map(type, session.facts))

    session.when(returned("1.1")).then(ToolReturned, SessionFailed)


def test_items_of_a_step_that_is_not_critical_all_run_and_the_failed_ones_are_null():
    items = step("spare", for_each="input.names", arguments={"n": "{{ abs(item) }}"})
    last_ = step("post", condition="always", arguments={"all": "{{ steps.spare.value }}"})
    session = given().when(begun(planned(items, last_), names=[-1, "x", 3]))

    assert "invalid_call" not in str(session.facts[1])
    session.when(*ran(0, "spare", 1), running("1.2", "spare"), broken("1.2", "tool_error"))

    assert {"post": {"all": [1, None, None]}} == added(session)
    assert session.state.partial


# NEXT: closed calls leave the list that rules walk.
def test_a_closed_call_leaves_the_list_of_calls():
    session = at_work(step("look"), step("post")).when(*ran(0, "look"))

    assert ["1.1"] == [call.effect for call in session.state.turn.calls]
    session.when(returned("1.0")).then(OutcomeCameLate)


def test_a_call_of_which_people_are_notified_stays_until_they_are():
    session = at_work(
        step("look"),
        step("post"),
        rules=[Rule(name="told", answer="notify", tools=("look",))],
        hooks=[Hook(on="notify", command=("tell",))],
    )
    session.when(*ran(0, "look"))

    assert ["1.0"] == [each.effect for each in due(session.state) if hasattr(each, "hook")]
    session.when(PeopleNotified(effect="1.0", approval="", hook=0, code="told", at=later(1)))
    assert [] == [each for each in due(session.state) if hasattr(each, "hook")]
    session.when(*ran(1, "post")).then(ToolReturned, SessionCompleted)


# Approvals between steps, 003-047


def test_a_step_that_is_not_approved_by_itself_gates_the_steps_that_need_it():
    session = at_work(step("look", auto_approve=False), step("post", "look"), step("look2", "look"))

    session.when(*ran(0, "look"))

    judged = last(session, CallsAdded).judged
    assert {"ask"} == {each.answer for each in judged.values()}
    assert "the step look is not approved by itself" == judged["1.1"].rule
    assert {"1.1", "1.2"} == {e.effect for e in due(session.state) if isinstance(e, AskApproval)}


def test_a_rule_that_denies_goes_before_a_gate():
    session = at_work(
        step("look", auto_approve=False),
        step("post", "look"),
        rules=[Rule(name="never", answer="deny", tools=("post",))],
    )
    session.when(*ran(0, "look"))

    assert [ToolReturned, CallsAdded, ToolSkipped, SessionFailed] == list(map(type, session.facts))
    assert "step post: denied: " in session.facts[-1].message


@pytest.mark.parametrize(
    ("verdict", "code"), [("denied", "rejected"), ("expired", "expired")], ids=str
)
# D27, NEXT: denied or expired is a failed step.
def test_a_call_that_is_not_granted_is_a_failed_step(verdict, code):
    session = at_work(step("delete"))
    session.when(question_of(session, "1.0", "delete"))

    session.when(ApprovalResolved(approval="1.1.0.1", verdict=verdict, by="ada"))

    session.then(ApprovalResolved, ToolSkipped, SessionFailed)
    assert f"step delete: {code}: " in session.facts[-1].message


def test_a_granted_call_runs():
    session = at_work(step("delete"))
    session.when(question_of(session, "1.0", "delete"), decided(2, "1.1.0.1", "granted"))

    session.when(*ran(0, "delete")).then(ToolReturned, SessionCompleted)


def test_an_unknown_outcome_is_a_failed_step():
    session = at_work(step("pay"), in_doubt="tell").when(running("1.0", "pay"))

    session.when(ToolInDoubt(effect="1.0", attempt=1, cause=Cause(code="tool_failed")))

    session.then(ToolInDoubt, ToolReconciled, SessionFailed)
    assert "step pay: outcome_unknown" in session.facts[-1].message


def test_a_call_that_happened_is_a_completed_step():
    session = at_work(step("pay")).when(running("1.0", "pay"))
    session.when(ToolInDoubt(effect="1.0", attempt=1, cause=Cause(code="tool_failed")))
    asked = ApprovalRequested(
        effect="1.0",
        approval="1.1.0.1",
        digest=session.state.call("1.0").digest,
        deadline_at=later(300),
        question="did_it_happen",
    )
    session.when(asked, decided(2, "1.1.0.1", "granted", resolution="happened", result="paid"))

    assert "paid" == last(session, SessionCompleted).result


# cases/workflows: resolved_with_json.toml
@pytest.mark.parametrize(
    ("result", "returns_text", "value"),
    [
        ('{"n": 1, "found": true}', False, {"n": 1, "found": True}),
        ("false", False, False),
        ("null", False, None),
        ("paid", False, "paid"),
        ("1.10", True, "1.10"),
        ("", True, None),
        ("", False, None),
    ],
)
def test_the_value_of_a_call_that_happened_is_what_the_person_gave(result, returns_text, value):
    spec = planned(step("pay"), step("post", "pay", when="steps.pay.value"))
    pay, post = spec.tools
    tools = (pay.model_copy(update={"returns_text": returns_text}), post)
    session = given().when(begun(spec.model_copy(update={"tools": tools})), running("1.0", "pay"))
    session.when(ToolInDoubt(effect="1.0", attempt=1, cause=Cause(code="tool_failed")))
    digest = session.state.call("1.0").digest
    asked = ApprovalRequested(
        effect="1.0",
        approval="1.1.0.1",
        digest=digest,
        deadline_at=later(300),
        question="did_it_happen",
    )
    session.when(asked, decided(2, "1.1.0.1", "granted", resolution="happened", result=result))

    assert value == session.state.progress.over["pay"].value
    assert ({"post": {}} if value else {}) == added(session)


def test_a_step_that_an_open_breaker_stops_fails():
    spec = planned(step("look"))
    tools = tuple(
        t.model_copy(update={"breaker": BreakerPolicy(on_open="fallback")}) for t in spec.tools
    )
    session = given().when(begun(spec.model_copy(update={"tools": tools})))
    blocked = SessionWaiting(
        kind="breaker",
        cause=Cause(code="breaker_open", dependency="tool look", failure="timeout"),
        deadline_at=later(60),
        effects=("1.0",),
    )

    session.when(blocked)

    assert "step look: circuit_open" in last(session, SessionFailed).message


# Children


def child_steps(**fields):
    spec = planned(step("look"), **fields)
    tools = (spec.tools[0].model_copy(update={"target": "agent:looker"}),)
    return spec.model_copy(update={"tools": tools, "agents": {"looker": spec}})


DELEGATED = CallDelegated(
    effect="1.0",
    tool="look",
    agent="looker",
    child="session-default/1.1.0",
    deadline_at=later(600),
    rule="not sensitive",
)


def test_the_value_of_a_child_is_the_value_of_its_step():
    session = given().when(begun(child_steps()), DELEGATED)
    end = ChildEnded(child=DELEGATED.child, status="completed", effect="1.0", text="[1]", value=[1])

    session.when(received(2, end)).then(MessageReceived, ToolReturned, SessionCompleted)

    assert [1] == session.facts[-1].value


@pytest.mark.parametrize(
    ("more", "value"),
    [({"text": "null"}, "null"), ({"text": "null", "is_null": True}, None), ({"text": ""}, "")],
)
def test_a_child_that_gives_null_is_told_from_one_that_says_so(more, value):
    session = given().when(begun(child_steps()), DELEGATED)
    end = ChildEnded(child=DELEGATED.child, status="completed", effect="1.0", **more)

    session.when(received(2, end)).then(MessageReceived, ToolReturned, SessionCompleted)

    assert value == session.state.progress.over["look"].value


@pytest.mark.parametrize(("size", "ends"), [(60_000, ToolReturned), (VALUE_LIMIT + 1, ToolFailed)])
def test_the_text_of_a_child_is_whole_or_refused(size, ends):
    session = given().when(begun(child_steps()), DELEGATED)
    end = ChildEnded(child=DELEGATED.child, status="completed", effect="1.0", text="x" * size)

    session.when(received(2, end))

    outcome = last(session, ends)
    said = outcome.output if ends is ToolReturned else outcome.kind
    assert said == ("x" * size if ends is ToolReturned else "result_too_large")


def test_a_child_that_has_no_room_fails_its_step():
    session = given().when(begun(child_steps()))

    session.when(ToolSkipped(effect="1.0", reason="no room")).then(ToolSkipped, SessionFailed)

    assert "step look: not_started: no room" == session.facts[-1].message


# Messages


def waits(**fields):
    return at_work(step("go", wait="ready", **fields), step("post", "go"))


def test_a_step_waits_for_its_message_and_takes_its_value():
    session = waits()
    assert [AwaitMessage("1.0")] == due(session.state)

    session.when(awaited(0, "ready")).then(MessageAwaited, SessionWaiting)
    assert ("message", "ready") == (session.facts[1].kind, session.facts[1].cause.name)
    assert later(60) == wake_at(session.state)

    session.when(told(2, "ready", {"n": 1}))
    assert {"n": 1} == last(session, ToolReturned).value
    assert '{"n": 1}' == last(session, ToolReturned).output
    assert {"post": {}} == added(session)


def test_a_message_that_came_before_its_step_counts():
    session = waits().when(told(2, "ready", "yes"))

    session.when(awaited(0, "ready")).then(MessageAwaited, ToolReturned, CallsAdded)
    assert "yes" == session.facts[1].output


def test_a_wait_that_is_skipped_makes_no_room_for_a_call():
    """Found by a simulated schedule: `plan 1 86`."""
    always = step("look", for_each="`[1, 2, 3]`", condition="always")
    session = at_work(
        step("spare"), step("go", "spare", wait="ready"), always, max_parallel=1
    ).when(running("1.0", "spare"))

    session = session.when(broken("1.0", "auth"))

    assert {"go": ("skipped", "need_not_completed")} == ended(session)
    assert ["look[0]"] == list(added(session))


def test_a_wait_takes_no_room_and_begins_before_other_steps():
    session = at_work(step("look"), step("go", wait="ready"), step("b"), max_parallel=1)

    assert ["go", "look"] == list(added(session))


def test_a_message_that_does_not_come_in_time_fails_its_step():
    session = waits().when(awaited(0, "ready"))

    session.when(SessionContinued(by="deadline", at=later(60)))

    assert "step go: message_timeout: " in last(session, SessionFailed).message


# cases/workflows: wait_not_critical.toml
def test_a_wait_that_is_not_critical_leaves_the_result_partial():
    session = at_work(
        step("go", wait="ready", critical=False), step("look", "go", condition="always")
    )
    session.when(awaited(0, "ready"))

    session.when(SessionContinued(by="deadline", at=later(60)))

    assert {"look": {}} == added(session)
    assert session.state.partial


# cases/workflows: two_waits_of_one_name.toml
def test_a_message_closes_the_oldest_wait_of_its_name_and_no_other():
    session = at_work(step("a", wait="go"), step("b", wait="go"), step("c", wait="go"))
    session.when(awaited(0, "go"), awaited(1, "go"))

    session.when(told(2, "go", "one"))
    assert ["1.0"] == [each.effect for each in session.facts if isinstance(each, ToolReturned)]

    session.when(told(3, "go", "two"))
    assert "two" == last(session, ToolReturned).output
    session.when(told(4, "go", "three"), awaited(2, "go"))
    assert "three" == last(session, ToolReturned).output


def test_one_message_that_closed_two_waits_in_an_old_log_still_did():
    session = at_work(step("a", wait="go"), step("b", wait="go"))
    session.when(awaited(0, "go"), awaited(1, "go"), told(2, "go", "one"))

    closed = ToolReturned(effect="1.1", attempt=1, output="one", value="one")

    assert "one" == evolve(session.state, closed).progress.over["b"].value


def test_a_wait_goes_on_before_its_deadline():
    session = waits().when(awaited(0, "ready"))

    session.when(SessionContinued(by="deadline", at=later(59)))

    assert SessionFailed not in map(type, session.facts)


def test_a_wait_begins_once_and_for_the_right_message():
    session = waits()

    session.when(awaited(0, "other")).then_nothing()
    session.when(awaited(7, "ready")).then_nothing()
    session.when(awaited(0, "ready"), awaited(0, "ready")).then_nothing()


# NEXT: steer and ordinary messages are refused.
def test_messages_that_no_step_waits_for_are_refused():
    session = waits()

    session.when(said(2, "Hm.", "steer")).then_rejected("plan_takes_no_messages")
    session.when(told(3, "other", 1)).then_rejected("no_such_wait")


def test_a_plan_gets_no_model():
    change = ModelChangeAsked(model=ModelChoice(provider="scripted", model="m"))

    waits().when(received(2, change)).then_rejected("plan_takes_no_messages")


def test_a_session_with_a_model_waits_for_no_message_of_a_name():
    given().when(started(), told(2, "ready", 1)).then_rejected("no_such_wait")


def test_a_procedure_is_not_continued_by_messages():
    spec = planned(step("run")).model_copy(update={"provider": "procedure"})
    session = given().when(begun(spec))

    session.when(said(2)).then_rejected("procedural_agent_no_resume")
    session.when(*ran(0, "run"), said(3)).then_rejected("procedural_agent_no_resume")


# Pause, stop, limits


def test_a_paused_plan_adds_nothing_until_it_is_resumed():
    session = at_work(step("look"), step("post", "look")).when(running("1.0", "look"))
    session.when(received(2, PauseAsked()), returned("1.0")).then(ToolReturned, SessionWaiting)

    session.when(received(3, ResumeAsked()))

    session.then(MessageReceived, CallsAdded, SessionContinued)


def test_a_stopped_plan_adds_nothing():
    session = at_work(step("look"), step("go", wait="go"), step("post", "look"))
    session.when(awaited(0, "go"), running("1.1", "look"), received(2, StopAsked()))

    session.when(broken("1.1", "cancelled")).then(ToolFailed, SessionStopped)


def test_a_plan_at_its_limit_of_time_waits_for_a_person():
    spec = planned(step("look"), step("post", "look"))
    limited = spec.model_copy(update={"limits": Limits(max_active_seconds=5)})
    session = given().when(begun(limited), running("1.0", "look"))

    session.when(returned("1.0", seconds=5))

    assert "limit_reached" == last(session, SessionWaiting).cause.code


def test_a_call_is_retried_as_ever():
    session = at_work(step("look")).when(running("1.0", "look"))

    session.when(broken("1.0", "network"))
    assert last(session, ToolFailed).retry_at is not None
    session.when(SessionContinued(by="deadline", at=later(10)))
    session.when(running("1.0", "look", 2), returned("1.0", attempt=2))
    last(session, SessionCompleted)


def test_the_rules_do_not_fail_for_calls_that_are_gone():
    session = at_work(step("look"))

    assert evolve(session.state, awaited(9, "ready")) is session.state


def test_a_wait_of_several_looks_at_each():
    session = at_work(step("a", wait="a"), step("b", wait="b"))
    session.when(awaited(0, "a"), awaited(1, "b"))

    session.when(told(2, "b", 1)).then(MessageReceived, ToolReturned)


# A model that gets parameters reads them, with its goal or instead of one.
@pytest.mark.parametrize(
    ("goal", "text"),
    [(None, 'The parameters:\n{"n": 1}'), ("Go.", 'Go.\n\nThe parameters:\n{"n": 1}')],
)
def test_a_model_is_told_the_parameters_of_its_session(goal, text):
    begin = started(goal=goal).model_copy(update={"parameters": {"n": 1}})

    assert [prompt.user_message(text)] == prompt.opening_messages(begin)
    given().when(begin).then(SessionStarted, ModelRequested)
