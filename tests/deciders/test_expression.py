"""Expressions over what a plan knows."""

import re

import pytest

from cueline.deciders.expression import evaluated, holds, needs_of, rendered, steps_in
from cueline.events.agent_parts import Step

KNOWN = {
    "input": {"goal": "ship", "n": 0, "none": None},
    "steps": {"plan": {"status": "completed", "value": {"files": ["a", "b"]}}},
    "item": 3,
    "index": 0,
}


# 003-053: an argument has the value itself, of whatever kind; text has JSON.
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("{{ steps.plan.value.files }}", ["a", "b"]),
        ("{{input.goal}}", "ship"),
        ("Do {{ input.goal }}: {{ steps.plan.value.files }}.", 'Do ship: ["a", "b"].'),
        ("{{ input.goal }}{{ item }}", "ship3"),
        ("{{ input.absent }}", None),
        ("{{ {a: {b: input.n}} }}", {"a": {"b": 0}}),
        ("{{ {a: {b: input.n}}}}", {"a": {"b": 0}}),
        ("{{ '{{' }} is text", "{{ is text"),
        ("plain", "plain"),
        (
            {"a": ["{{ item }}", 4, None], "b": {"c": "{{ index }}"}},
            {"a": [3, 4, None], "b": {"c": 0}},
        ),
    ],
)
def test_arguments_get_the_values_of_their_expressions(arguments, expected):
    assert expected == rendered(arguments, KNOWN)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("input.n", True),
        ("input.none", False),
        ("steps.plan.value.files", True),
        ("steps.plan.value.files[?@ == 'z']", False),
        ("steps.plan.status == 'failed'", False),
        ("input.goal == 'ship' && !input.none", True),
        ("!steps.plan.value.files[0]", False),
        ("''", False),
    ],
)
def test_a_condition_is_false_if_its_value_is_false_null_or_empty(expression, expected):
    assert expected is holds(expression, KNOWN)


MIXED = {"rows": [{"n": 1}, {"n": "x"}, {"n": None}, {"n": 2**64}], "t": "abc"}


# The specification of JMESPath: an ordering of anything but numbers is null.
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("rows[?n > `1`].n", [2**64]),
        ("rows[?n <= `9223372036854775808`].n", [1]),
        ("t > `3`", None),
        ("t < 'abd'", None),
        ("`true` >= `1`", None),
        ("rows[3].n > rows[0].n", True),
        ("rows[1].n == 'x'", True),
        (f"{'(`1` < ' * 60}`2`{')' * 60}", None),
    ],
)
def test_numbers_alone_have_an_order(expression, expected):
    assert expected == evaluated(expression, MIXED)


@pytest.mark.parametrize(
    "expression",
    [
        "sort_by(rows, &n)",
        "max_by(rows, &n)",
        "contains(t, `1`)",
        "merge(rows[0], t)",
        "ceil(to_number('inf'))",
        "sum(`[1e308, 1e308]`)",
        "rows[::0]",
        f"{'(' * 5000}t{')' * 5000}",
    ],
)
def test_a_value_of_a_wrong_type_is_a_fault_of_the_expression(expression):
    with pytest.raises(ValueError, match=re.escape(repr(expression))):
        evaluated(expression, MIXED)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("abs('x')", "invalid type for value: x"),
        ("to_number('nan')", "not finite"),
        ("input.n = `1`", "unexpected '=' at character 9"),
        ("input.", "ends too early"),
    ],
)
def test_an_expression_without_a_value_names_itself_and_the_reason(expression, reason):
    with pytest.raises(ValueError, match=re.escape(reason)) as raised:
        evaluated(expression, KNOWN)

    assert str(raised.value).startswith(f"{expression!r}: ")


def test_an_open_brace_without_its_end_is_refused():
    with pytest.raises(ValueError, match="has no"):
        rendered("{{ input.goal", KNOWN)


@pytest.mark.parametrize(
    ("expression", "steps"),
    [
        ("steps.a.value[?steps.b] | steps.c", ("a",)),
        ("length(steps.a.value) > `1` || steps.b.status == 'x'", ("a", "b")),
        ("sort_by(steps.a.value, &steps.q)[0].steps", ("a",)),
        ("{x: steps.a, y: [steps.b.value[*].z, steps.c.value[].k]}", ("a", "b", "c")),
        ("@.steps.d", ("d",)),
        ("(steps.a || steps.b).value", ("a", "b")),
        ("!steps.z.value", ("z",)),
        ("steps", ()),
        ("@", ()),
        ("input.steps.a", ()),
        ("steps.", ()),
    ],
)
def test_the_steps_that_an_expression_reads_are_known(expression, steps):
    assert steps == steps_in(expression)


def test_a_step_needs_what_it_names_and_what_its_expressions_read():
    step = Step(
        name="d",
        needs=("a",),
        when="steps.b.status",
        for_each="steps.c.value",
        arguments={"x": ["{{ steps.a.text }} {{ steps.e.text }}"], "y": 1},
    )

    assert ("a", "b", "c", "e") == needs_of(step)
