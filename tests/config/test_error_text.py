"""A value that is refused is named, in our own words, where it can be no secret."""

from datetime import date
from math import nan
from pathlib import Path

import pytest

from cueline.config.config_source import from_environment, from_flags, from_table
from cueline.errors import ConfigError

PASTED = "sk-ant-api03-abc"


def reason(refuse):
    with pytest.raises(ConfigError) as refused:
        refuse()
    return refused.value.reason


@pytest.mark.parametrize(
    ("key", "typed", "told"),
    [
        ("limits.max_cost", "-1", "-1 is not more than 0"),
        ("limits.max_cost", "abc", "'abc' is no number"),
        ("limits.max_cost", "nan", "'nan' is no number to count with"),
        ("limits.max_cost", "1e999999", "1e999999 is more than 1000000000000"),
        ("limits.max_turns", "2.5", "2.5 is no whole number"),
        ("limits.max_turns", 0, "0 is less than 1"),
        ("retry.jitter", "1.5", "1.5 is more than 1"),
        ("grace_seconds", "2h", "7200 is more than 3600"),
        ("limits.max_active_seconds", "soon", "'soon' is no time; a time is a number of seconds"),
        ("limits.max_active_seconds", True, "true is no number"),
        ("policy.auto_approve", "perhaps", "'perhaps' is no truth value; say true or false"),
        ("policy.on_deny", "ask", "'ask' is none of 'inform', 'pause' or 'cancel'"),
        (
            "policy.on_deny",
            "cancle",
            "'cancle' is none of 'inform', 'pause' or 'cancel'; did you mean 'cancel'?",
        ),
        ("base_url", "ftp://a", "'ftp://a' is not an address: like https://host/path"),
        ("key_variable", "a-b", "'a-b' is not the name of a variable"),
    ],
)
def test_a_value_that_is_refused_is_named_with_what_would_be_right(key, typed, told):
    """004-062, 004-063."""
    assert reason(lambda: from_flags({key: ("--flag", typed)})).startswith(told)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"retry": True}, "key 'retry': true is no table"),
        ({"provider": 5}, "key 'provider': 5 is no text; put quotes around it"),
        ({"provider": True}, "key 'provider': true is no text; put quotes around it"),
        ({"provider": ["a"]}, "key 'provider': a list is no text"),
        ({"provider": {"a": 1}}, "key 'provider': a table is no text"),
        ({"model": date(2026, 1, 2)}, "key 'model': a date or time is no text; put quotes"),
        ({"limits": {"max_cost": True}}, "key 'limits.max_cost': true is no number"),
        ({"policy": {"rules": {"name": "a"}}}, "key 'policy.rules': a table is no list"),
        ({"policy": {"rules": [1]}}, "key 'policy.rules.0': 1 is no table"),
        (
            {"policy": {"rules": [{"name": "a", "answer": "ask", "tools": "b"}]}},
            "key 'policy.rules.0.tools': 'b' is no list; put brackets around it",
        ),
        (
            {"fallback": [{"provider": "a", "model": "b", "parameters": {"c": [nan]}}]},
            "key 'fallback.0.parameters': nan and inf are nothing that JSON can say",
        ),
        (
            {"fallback": [{"provider": "a", "model": "b", "parameters": {"c": date(2026, 1, 2)}}]},
            "key 'fallback.0.parameters.c': a date or time is nothing that JSON can say; put quote",
        ),
        *[
            (
                {"policy": {"rules": [{"name": "a", "answer": "ask", key: True}]}},
                f"key 'policy.rules.0.{key}': true is no number",
            )
            for key in ("votes", "items_over", "bytes_over")
        ],
        (
            {"policy": {"hooks": [{"on": "reminder", "after_seconds": True}]}},
            "key 'policy.hooks.0.after_seconds': true is no number",
        ),
        ({"fallback": [{"provider": "a", "model": ""}]}, "key 'fallback': fallback.0 has an empty"),
        ({"log": 5}, "key 'log': 5 is no path; put quotes around it"),
        ({"provider": ""}, "key 'provider': it is empty"),
        ({"secrets": "KEY"}, "key 'secrets': 'KEY' is no list; put brackets around it"),
        ({"prices": {"a/b": {"input": -1}}}, "key 'prices.a/b.input': -1 is less than 0"),
    ],
)
def test_a_value_of_a_file_is_named_with_its_key(said, told):
    assert reason(lambda: from_table(said, Path("cueline.toml"))).startswith(told)


@pytest.mark.parametrize("pasted", ["sk-ant-api03-abc", "8letters"])
@pytest.mark.parametrize("name", ["MAX_COST", "TIME_BUDGET", "POLICY_ON_DENY", "BASE_URL"])
def test_a_text_that_may_be_a_key_in_the_wrong_place_is_not_repeated(name, pasted):
    """I11: a secret has 8 characters or more."""
    told = reason(lambda: from_environment({f"CUELINE_{name}": pasted}))

    assert (True, False) == (told.startswith("this text is "), pasted in told)


@pytest.mark.parametrize("key", ["base_url", "key_variable"])
def test_what_another_model_is_asked_with_is_checked_like_the_first(key):
    """I11: a key that was put in the wrong place is recorded nowhere."""
    other = {"provider": "anthropic", "model": "m", key: PASTED}

    told = reason(lambda: from_table({"fallback": [other]}, Path("cueline.toml")))

    assert f"fallback.0.{key} is not" in told
    assert PASTED not in told
