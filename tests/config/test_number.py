"""Every number of an agent file and of the settings is one, however deep in its tables."""

import json
from decimal import Decimal
from math import inf, nan
from typing import get_args, get_origin

import pytest
from pydantic import BaseModel, ValidationError

from cueline.agents.agent import Agent
from cueline.config.settings import Settings
from cueline.events.agent import Limits, Price
from cueline.events.inbox import RaiseAsked


def numbers_of(kind, path=()):
    """Tell where a value of *kind* has numbers; a name or 0 stands for each entry."""
    if kind in (int, float, Decimal):
        yield path
    elif path and kind is Agent:
        return  # one that it starts has the same fields
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            yield from numbers_of(field.annotation, (*path, name))
    elif get_origin(kind) is dict:
        yield from numbers_of(get_args(kind)[1], (*path, "any"))
    elif get_origin(kind) is tuple:
        yield from numbers_of(get_args(kind)[0], (*path, 0))
    else:
        for each in get_args(kind):
            yield from numbers_of(each, path)


def table(path, value):
    for part in reversed(path):
        value = [value] if part == 0 else {part: value}
    return value


PLACES = [(shape, path) for shape in (Agent, Settings) for path in numbers_of(shape)]


each_number = pytest.mark.parametrize(
    ("shape", "path"),
    PLACES,
    ids=[".".join(map(str, (shape.__name__, *path))) for shape, path in PLACES],
)


def refused_for(shape, path, value):
    """Tell why *value* is none that *shape* can have at *path*; nothing where it is one."""
    with pytest.raises(ValidationError) as refused:
        shape.model_validate({**table(path, value), "no such key": 0})
    return [each["type"] for each in refused.value.errors() if each["loc"] == path]


@pytest.mark.parametrize("value", [True, False])
@each_number
def test_a_truth_value_is_no_number(shape, path, value):
    (why,) = refused_for(shape, path, value)

    assert why in ("float_type", "decimal_type")


@pytest.mark.parametrize("value", [nan, inf, -inf])
@each_number
def test_a_number_that_nothing_can_be_counted_with_is_refused(shape, path, value):
    assert len(refused_for(shape, path, value)) == 1


each_time = pytest.mark.parametrize(
    ("shape", "path"),
    [place for place in PLACES if str(place[1][-1]).endswith(("_seconds", "_after"))],
)


# D10: also in a table that no setting has.
@each_time
@pytest.mark.parametrize(("said", "why"), [("15m", []), ("15 parsecs", ["time"])])
def test_a_time_may_say_its_unit(shape, path, said, why):
    assert why == refused_for(shape, path, said)


@each_time
def test_no_time_is_longer_than_a_calendar_holds(shape, path):
    assert refused_for(shape, path, 1e300) == ["less_than_equal"]


def test_numbers_are_looked_for_in_every_table():
    found = {".".join(map(str, path)) for _, path in PLACES}

    assert {
        "limits.max_turns",
        "tool_retry.factor",
        "fallback.0.retry.jitter",
        "tool_settings.any.retry.max_retries",
        "tool_settings.any.breaker.threshold",
        "policy.hooks.0.after_seconds",
        "prices.any.cache_read",
    } <= found


@pytest.mark.parametrize(
    "path",
    [
        ("limits", "max_turns"),
        ("limits", "max_tokens"),
        ("limits", "max_descendants"),
        ("breaker", "min_calls"),
        ("policy", "rules", 0, "items_over"),
    ],
    ids=lambda path: str(path[-1]),
)
@pytest.mark.parametrize("shape", [Agent, Settings])
def test_a_whole_number_is_none_that_would_be_recorded_as_another(shape, path):
    assert refused_for(shape, path, 10**23) == ["less_than_equal"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("retry", "max_retries"), 21),
        (("breaker", "threshold"), 1001),
        (("policy", "rules", 0, "votes"), 10),
    ],
    ids=lambda part: str(part[-1]) if isinstance(part, tuple) else "",
)
@pytest.mark.parametrize("shape", [Agent, Settings])
def test_a_whole_number_has_the_bound_of_its_own_as_well(shape, path, value):
    assert refused_for(shape, path, value) == ["less_than_equal"]


AMOUNTS = [(shape, path) for shape, path in PLACES if {"max_cost", "prices"} & set(path)]


@pytest.mark.parametrize(("shape", "path"), AMOUNTS)
@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("1e9999999", "less_than_equal"),
        ("1000000000000.01", "less_than_equal"),
        ("1e-9999999", "greater_than_equal"),
    ],
)
def test_an_amount_of_money_is_one_that_can_be_summed(shape, path, value, why):
    assert refused_for(shape, path, value) == [why]


def test_no_more_can_be_asked_for_than_can_be_summed():
    with pytest.raises(ValidationError):
        RaiseAsked.model_validate({"max_cost": "1e999999"})


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (Limits, {"max_cost": "1E+999999"}),
        (RaiseAsked, {"max_cost": "1E+999999"}),
        (Price, {"input": "1E+999999", "output": "1E-999999"}),
    ],
)
def test_an_amount_that_was_recorded_before_it_was_refused_is_still_read(shape, said):
    assert (
        said.items() <= shape.model_validate_json(json.dumps(said)).model_dump(mode="json").items()
    )
