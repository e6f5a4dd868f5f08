"""Every setting, in every source: what wins, and what is refused.

The tests go over the model's own fields, so that none can be forgotten.
"""

from decimal import Decimal
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest
from annotated_types import Ge, Gt

from cueline.actors.presence import REMOVAL_SECONDS, SILENCE_SECONDS, deaf_seconds
from cueline.actors.runner_slots import SLOTS, Slots
from cueline.agents.agent import Agent
from cueline.config.config_source import from_environment, from_flags, from_table
from cueline.config.effective import effective
from cueline.config.settings import Settings, leaves, table_of
from cueline.errors import ConfigError
from cueline.events.log_url import LogUrl

AGENT, FILE = Path("agent.toml"), Path("cueline.toml")
LEAVES = leaves()
WITH_VARIABLE = {key: leaf for key, leaf in LEAVES.items() if leaf.variable}
EXAMPLES = {
    "allow_base_urls": (["https://a.example"], ["https://b.example/v1"]),
    "base_url": ("https://a.example", "https://b.example/v1"),
    "headers": ({"x-team": "a"}, {"x-team": "b"}),
    "key_variable": ("FIRST_KEY", "SECOND_KEY"),
    "prices": ({"a/b": {"input": 1, "output": 2}}, {"a/b": {"input": 3, "output": 4}}),
    "secrets": (["FIRST"], ["SECOND"]),
    "cluster.stale_seconds": (100.0, 110.0),
    "cluster.removal_seconds": (500.0, 550.0),
    "telemetry.endpoint": ("https://a.example", "https://b.example/v1"),
    "tool_retry": ({"max_retries": 1}, {"max_retries": 2}),
    "fallback": ([{"provider": "a", "model": "b"}], [{"provider": "a", "model": "c"}]),
    "users": ({"ann": {"model": "a"}}, {"ann": {"model": "b"}}),
    "policy.notify_from_usd": ("0.05", "0.07"),
    "policy.rules": tuple([{"name": name, "answer": "ask"}] for name in ("first", "second")),
    "policy.hooks": tuple([{"on": "asked", "command": [each]}] for each in ("first", "second")),
}
"""Two values of each setting whose kind does not say enough."""


each_leaf = pytest.mark.parametrize("key", LEAVES)


def two_of(key):
    """Return two values that a setting can have, as TOML has them."""
    if key in EXAMPLES:
        return EXAMPLES[key]
    kind = LEAVES[key].kind
    if get_origin(kind) is Literal:
        return get_args(kind)[:2]
    kinds = get_args(kind) or (kind,)
    if get_origin(kinds[0]) is Literal:
        words = get_args(kinds[0])[:2]
        return words if get_origin(kind) is not tuple else tuple([word] for word in words)
    if get_origin(kind) is tuple:
        return ["first"], ["second"]
    low = lowest(key) or 0
    return {
        bool: (True, False),
        int: (low + 1, low + 2),
        float: (low + 0.25, low + 0.5),
        Decimal: (low + 1, low + 2),
        str: ("some", "other"),
        LogUrl: ("some.db", "other.db"),
    }[kinds[0]]


def lowest(key):
    bounds = [each for each in LEAVES[key].field.metadata if isinstance(each, Ge | Gt)]
    return next((each.ge if isinstance(each, Ge) else each.gt for each in bounds), None)


def is_free(leaf):
    """Whether it may be any text, so that only a file can say something that is none."""
    words = get_origin(leaf.kind) is tuple and get_args(leaf.kind)[0] is str
    return words or (bool({str, LogUrl} & set(leaf.kinds)) and "pattern" not in str(leaf.field))


def table(key, value):
    for name in reversed(key.split(".")):
        value = {name: value}
    return value


def text(value):
    return ",".join(value) if isinstance(value, list) else str(value)


def flag(key, value):
    return from_flags({key: ("--flag", value)})


def variable(key, value):
    if (name := LEAVES[key].variable) is None:
        return flag(key, value)  # only a file can say it: any layer above will do
    return from_environment({name: text(value)})


def in_agent(key, value):
    return from_table(table(key, value), AGENT)


def in_file(key, value):
    return from_table(table(key, value), FILE)


def needed(key):
    """Return what a setting does not go without."""
    return in_file("policy.on_expiry", "escalate") if key == "policy.escalate_to" else {}


def value_in(held, key):
    value = held.settings
    for name in key.split("."):
        value = getattr(value, name)
    return value


@each_leaf
@pytest.mark.parametrize(
    ("above", "below"),
    [(flag, variable), (variable, in_agent), (in_agent, in_file)],
    ids=["flag over environment", "environment over agent", "agent over file"],
)
def test_the_first_layer_that_says_something_wins(key, above, below):
    """000-061, 000-062, 004-008, 004-078."""
    first, second = two_of(key)

    held = effective(above(key, first), below(key, second), needed(key))

    alone = effective(in_file(key, first), needed(key))
    if key in {"allow_base_urls", "allow_key_variables", "secrets"}:
        assert (*first, *second) == value_in(held, key)
    else:
        assert value_in(alone, key) == value_in(held, key)
    assert held.sources[key].startswith(above(key, first)[key].source)


@each_leaf
def test_a_file_goes_before_the_default(key):
    first, second = two_of(key)
    default = value_in(effective(), key)

    values = [value_in(effective(in_file(key, v), needed(key)), key) for v in (first, second)]

    assert [] != [value for value in values if value != default]
    assert "cueline.toml" == effective(in_file(key, first), needed(key)).sources[key]


@each_leaf
def test_a_file_with_a_bad_value_is_refused_by_key(key):
    """004-062, 004-063: what is wrong fails loudly, and says where."""
    with pytest.raises(ConfigError) as refused:
        in_file(key, [[1]])

    assert "cueline.toml" == refused.value.subject
    assert f"key '{key}" in refused.value.reason


NOT_FREE = [key for key, leaf in WITH_VARIABLE.items() if not is_free(leaf)]


@pytest.mark.parametrize("key", NOT_FREE)
def test_a_variable_with_a_bad_value_is_refused_by_name(key):
    """004-062."""
    with pytest.raises(ConfigError) as refused:
        from_environment({LEAVES[key].variable: "?!"})

    assert LEAVES[key].variable == refused.value.subject


@pytest.mark.parametrize("key", NOT_FREE)
def test_a_flag_with_a_bad_value_is_refused_by_name(key):
    with pytest.raises(ConfigError, match="--flag: "):
        flag(key, "?!")


NUMBERS = [key for key, leaf in LEAVES.items() if {int, float, Decimal} & set(leaf.kinds)]


@pytest.mark.parametrize("key", NUMBERS)
def test_a_number_has_a_least_and_below_it_is_refused(key):
    """D34: what is set is enforced or refused, never taken and left alone."""
    with pytest.raises(ConfigError, match=key):
        in_file(key, lowest(key) - 1)


@pytest.mark.parametrize("key", NUMBERS)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "many"])
def test_a_number_is_one(key, value):
    with pytest.raises(ConfigError, match=key):
        in_file(key, value)


@pytest.mark.parametrize("key", [key for key in LEAVES if key.endswith("seconds")])
def test_a_time_is_in_seconds_or_says_its_unit(key):
    """D10: no number is taken for milliseconds because it is large."""
    said = [in_file(key, each)[key].value for each in (900, "900", "900s", "15m")]

    assert [900.0] * 4 == said
    with pytest.raises(ConfigError, match=key):
        in_file(key, "5000000000")


@pytest.mark.parametrize(
    ("said", "seconds"), [("1m", 60), ("1h", 3600), ("1.5h", 5400), ("2d", 172_800)]
)
def test_a_time_may_be_in_minutes_hours_or_days(said, seconds):
    """D10."""
    assert seconds == in_file("limits.max_wall_seconds", said)["limits.max_wall_seconds"].value


def test_the_tokens_of_a_call_and_of_a_session_have_names_of_their_own():
    """C22."""
    assert "CUELINE_MAX_OUTPUT_TOKENS" == LEAVES["limits.max_output_tokens"].variable


def test_each_table_of_an_agent_file_can_be_set_for_all_agents():
    """004-047, 004-058, 004-059, 004-060: retry, breaker and approval are groups, with defaults."""
    tables = {name for name, field in Agent.model_fields.items() if table_of(field)}

    assert {"limits", "retry", "breaker", "policy"} <= tables
    # What a call demands of its runner, and what it may reach, is the matter of one agent.
    assert {"demands", "http", "isolation"} == tables - Settings.model_fields.keys()
    assert (5, 60.0) == (
        LEAVES["breaker.threshold"].default,
        LEAVES["breaker.timeout_seconds"].default,
    )


def test_a_runner_runs_as_many_calls_at_once_for_a_command_as_for_a_program():
    runner = Settings().runner

    assert SLOTS == Slots(runner.slots, runner.workers)


def test_a_removal_time_leaves_room_for_the_silence_of_a_dead_process():
    settings = in_file("cluster.removal_seconds", "30s")

    assert deaf_seconds(settings["cluster.removal_seconds"].value) > SILENCE_SECONDS
    with pytest.raises(ConfigError, match=r"removal_seconds.*29 is less than 30"):
        in_file("cluster.removal_seconds", 29)
    assert REMOVAL_SECONDS == Settings().cluster.removal_seconds


def test_a_removal_time_shorter_than_two_grace_periods_is_refused():
    table = {"grace_seconds": 20, "cluster": {"removal_seconds": "39s"}}
    source = from_table(table, FILE)

    with pytest.raises(ConfigError, match=r"cueline.toml.*39 s is less than twice `grace_seconds`"):
        effective(source)


# C28
@pytest.mark.parametrize(
    ("stale", "interval", "removal"), [("89s", "30s", "600s"), ("600s", "30s", "600s")]
)
def test_a_runner_is_stale_after_three_heartbeats_and_before_its_removal(stale, interval, removal):
    times = {"stale_seconds": stale, "heartbeat_seconds": interval, "removal_seconds": removal}
    source = from_table({"cluster": times}, FILE)

    with pytest.raises(ConfigError, match=r"cueline.toml.*stale_seconds.*three times"):
        effective(source)


# C42
def test_no_two_settings_share_a_variable():
    names = [leaf.variable for leaf in WITH_VARIABLE.values()]

    assert len(names) == len(set(names))
    assert [] == [name for name in names if not name.startswith("CUELINE_")]


def test_an_unknown_variable_is_refused_with_the_nearest_one():
    with pytest.raises(ConfigError, match=r"CUELINE_MAX_TURN: .*nearest is CUELINE_MAX_TURNS"):
        from_environment({"CUELINE_MAX_TURN": "5"})


def test_an_empty_variable_says_nothing_and_what_is_not_ours_is_left_alone():
    assert {} == from_environment(
        {"CUELINE_MAX_TURNS": "", "MAX_TURNS": "x", "CUELINE_CONFIG": "c"}
    )


def test_the_variable_of_a_preset_is_weaker_than_those_of_its_keys():
    env = from_environment({"CUELINE_RETRY": "exact", "CUELINE_RETRY_BASE_SECONDS": "7"})

    held = effective(env)

    assert (7, 0.0) == (held.settings.retry.base_seconds, held.settings.retry.jitter)
    assert "environment CUELINE_RETRY" == held.sources["retry.jitter"]
    assert "environment CUELINE_RETRY_BASE_SECONDS" == held.sources["retry.base_seconds"]


def test_an_unknown_preset_is_refused_with_those_that_are():
    with pytest.raises(ConfigError, match=r"CUELINE_RETRY: .*presets are standard, exact"):
        from_environment({"CUELINE_RETRY": "never"})


def test_values_of_two_sources_that_do_not_go_together_are_refused_with_both():
    """004-064: the bands of cost are in order, whoever said which."""
    env = from_environment({"CUELINE_POLICY_ASK_FROM_USD": "5", "CUELINE_MAX_TURNS": "4"})
    file = from_table({"policy": {"deny_from_usd": "1.00"}}, FILE)

    with pytest.raises(ConfigError) as refused:
        effective(env, file)

    assert "cueline.toml, environment CUELINE_POLICY_ASK_FROM_USD" == refused.value.subject
    assert "key 'policy.deny_from_usd': it is below ask_from_usd, 5" == refused.value.reason


def test_the_settings_are_frozen():
    assert Settings.model_config["frozen"]
