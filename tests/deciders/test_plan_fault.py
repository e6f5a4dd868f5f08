"""What is wrong with a plan, before it runs."""

import pytest

from cueline.deciders.plan import problems_of
from cueline.events.agent_parts import Plan, Step


def plan(*steps, output=""):
    first = Step(name="plan", arguments={"goal": "{{ input.goal }}"})
    return Plan(steps=(first, *steps), output=output)


def test_a_plan_that_can_run_has_no_problem():
    steps = (
        Step(
            name="each", for_each="steps.plan.value.files", arguments={"f": "{{ item }} {{index}}"}
        ),
        Step(name="go", wait="approved", when="length(steps.each.value) > `0`", needs=("plan",)),
        Step(name="all", arguments={"x": "{{ [input, steps.go.error_code] }}"}),
    )

    whole = plan(*steps, output="steps.all.value")

    assert [] == problems_of(whole)
    assert [] == problems_of(whole, tools={"plan", "each", "all"}, parameters={"goal"})


# 004-044: a mistake is found before anything is recorded, with its key and the fix.
@pytest.mark.parametrize(
    ("step", "key", "reason"),
    [
        ({"needs": ["plann"]}, "needs", "there is no step 'plann': did you mean 'plan'?"),
        ({"needs": ["it"]}, "needs", "it needs itself"),
        ({"when": "steps.it.status"}, "needs", "it needs itself"),
        ({"when": "steps.plan.["}, "when", "'steps.plan.[': it ends too early"),
        ({"when": "steps.plan = 1"}, "when", "unexpected '=' at character 12"),
        ({"when": "steps.plan.valu"}, "when", "a step has no 'valu': did you mean 'value'?"),
        ({"when": "steps"}, "when", "write `steps.NAME.value`"),
        ({"when": "stps.plan"}, "when", "'stps' is unknown: did you mean 'steps'?"),
        ({"when": "lenth(input)"}, "when", "there is no function 'lenth': did you mean 'length'?"),
        ({"for_each": "item"}, "for_each", "only the arguments of a step with `for_each`"),
        ({"arguments": {"a": "{{ item }}"}}, "arguments", "only the arguments of a step"),
        ({"arguments": {"a": ["{{ input.gaol }}"]}}, "arguments", "did you mean 'goal'?"),
        ({"arguments": {"a": "{{}}"}}, "arguments", "ends too early"),
        ({"arguments": {"a": "{{ x"}}, "arguments", "a `{{` has no `}}`"),
        ({"wait": "ok", "arguments": {"a": 1}}, "wait", "has no arguments"),
        ({"name": "a-b"}, "name", "use letters"),
        ({"name": "plan"}, "name", "two steps have this name"),
        ({"name": "other"}, "tool", "name a tool"),
    ],
)
def test_a_problem_names_its_key_and_the_fix(step, key, reason):
    step = Step.model_validate({"name": "it", **step})
    found = problems_of(plan(step), tools={"plan", "it", "a-b"}, parameters=("goal",))

    assert [f"steps.{step.name}.{key}"] == [each.key for each in found]
    assert reason in found[0].reason


def test_the_output_is_checked_too():
    found = problems_of(plan(output="steps.last.value"))

    assert [("output", "'steps.last.value': there is no step 'last'; known are plan")] == found


def test_a_parameter_of_a_plan_that_takes_none_is_unknown():
    found = problems_of(plan(), parameters=())

    assert "there is no parameter 'goal'; known are none" in found[0].reason


def test_a_plan_needs_a_step():
    assert [("steps", "there is none: add one")] == problems_of(Plan(steps=()))


def test_steps_that_wait_for_each_other_are_named():
    steps = [Step(name=a, when=f"steps.{b}.status") for a, b in ("ab", "bc", "ca")]

    found = problems_of(Plan(steps=tuple(steps)))

    assert [("steps", "they wait for each other: a needs b needs c needs a")] == found


def test_a_step_that_is_read_but_not_there_is_told_once():
    step = Step(name="it", needs=("plann",), arguments={"a": "{{ steps.plann.value }}"})

    (problem,) = problems_of(plan(step))

    assert "arguments" in problem.key
