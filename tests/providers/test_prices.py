"""What a model call costs, and what it costs at most."""

from decimal import Decimal
from importlib.metadata import version

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec, Limits, Price
from cueline.events.message import Cost, Usage
from cueline.providers.prices import UNSEEN_TOKENS, bound, check_prices, check_room, cost_of
from tests.session_example import TOOLS

OWN = Price(input="3", output="15", cache_read="0.30", cache_write="3.75")


def agent(model="claude-opus-4-1", provider="anthropic", **more):
    return AgentSpec(name="a", provider=provider, model=model, **more)


def test_what_came_from_the_cache_is_cheaper_and_counted_once():
    plain = cost_of(agent(), "", Usage(input=1000))
    cached = cost_of(agent(), "", Usage(cache_read=1000))
    both = cost_of(agent(), "", Usage(input=1000, cache_read=1000))

    assert Decimal("0.015") == plain.usd
    assert Decimal("0.0015") == cached.usd
    assert both.usd == plain.usd + cached.usd


def test_what_is_written_to_the_cache_is_priced_as_such():
    written = cost_of(agent(), "", Usage(cache_write=1000))

    assert Decimal("0.01875") == written.usd


def test_a_cost_says_what_the_cache_saved():
    listed = cost_of(agent(), "", Usage(input=1000, cache_read=1000))
    own = cost_of(agent(prices={"anthropic/*": OWN}), "", Usage(cache_read=1_000_000))

    assert Decimal("0.0135") == listed.saved
    assert Decimal("2.7") == own.saved
    assert cost_of(agent(), "", Usage(input=1000, cache_write=1000)).saved == 0


def test_a_cost_names_the_price_list_and_its_version():
    cost = cost_of(agent(), "", Usage(output=10))

    assert f"genai-prices {version('genai-prices')}" == cost.prices


def test_a_model_or_provider_without_a_price_has_no_cost():
    assert cost_of(agent("claude-none-1"), "", Usage(input=1)) is None
    assert cost_of(agent(provider="nobody"), "", Usage(input=1)) is None


def test_a_scripted_model_costs_nothing_and_says_so():
    spec = agent("m", "scripted")

    assert Cost(usd=Decimal(0), prices="scripted") == cost_of(spec, "", Usage(input=9))
    assert Decimal(0) == bound(spec, 1000)[1]


# 000-066: versioned data, and a list of one's own beside it.
def test_a_price_list_of_ones_own_goes_first_and_its_entry_is_named_by_digest():
    spec = agent(prices={"anthropic/claude-opus-4-1": OWN})
    used = Usage(input=1_000_000, output=100_000, cache_read=10_000, cache_write=1000)

    cost = cost_of(spec, "", used)
    other = cost_of(agent(prices={"anthropic/*": Price(input=1, output=1)}), "", used)

    assert Decimal("4.50675") == cost.usd
    assert cost.prices.startswith("own list ")
    assert other.prices.startswith("own list ")
    assert cost.prices != other.prices


def test_an_own_price_holds_for_scripted_models_too():
    spec = agent("any.toml", "scripted", prices={"scripted/*": OWN})

    assert Decimal("0.003") == cost_of(spec, "", Usage(input=1000)).usd


def test_a_price_without_cache_rates_takes_those_of_the_input():
    spec = agent(prices={"anthropic/*": Price(input=2, output=1)})

    cost = cost_of(spec, "", Usage(cache_read=500_000, cache_write=500_000))

    assert Decimal(2) == cost.usd


def test_the_name_that_was_asked_for_has_the_price_where_the_name_that_answered_has_none():
    spec = agent(prices={"anthropic/claude-opus-4-1": OWN})

    assert cost_of(spec, "claude-opus-4-1-20991231", Usage(input=1)).prices.startswith("own list")


# C26
# The bound goes by that name: another price would settle at another than was reserved.
def test_the_price_of_the_name_that_was_asked_for_goes_before_that_of_any():
    dear, cheap = Price(input=10, output=50), Price(input=1, output=5)
    prices = {"anthropic/*": cheap, "anthropic/claude-opus-4-1": dear}

    cost = cost_of(agent(prices=prices), "claude-opus-4-1-20250805", Usage(input=1_000_000))

    assert Decimal(10) == cost.usd


def test_an_unknown_price_is_assumed_where_the_agent_says_so():
    spec = agent("claude-none-1", on_unknown_price="assume", prices={"*": OWN})

    assert cost_of(spec, "", Usage(output=1000)).prices.startswith("assumed ")
    assert Decimal("0.015") == cost_of(spec, "", Usage(output=1000)).usd
    assert bound(spec, 0)[1] is not None


# C26
def test_an_unknown_price_is_refused_where_money_is_limited():
    with pytest.raises(ConfigError, match=r'add \[prices\."anthropic/claude-none-1"\]'):
        check_prices(agent("claude-none-1"), money_limited=True)

    check_prices(agent("claude-none-1"), money_limited=False)
    check_prices(agent("claude-none-1", on_unknown_price="ignore"), money_limited=True)
    check_prices(
        agent("claude-none-1", prices={"anthropic/claude-none-1": OWN}), money_limited=True
    )


HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def test_what_stays_in_the_cache_for_an_hour_is_priced_as_such():
    used, spec = Usage(input=1000, cache_write=1000), agent("claude-opus-4-6", parameters=HOUR)

    assert Decimal("0.015") == cost_of(spec, "", used).usd
    assert Decimal("0.01125") == cost_of(agent("claude-opus-4-6"), "", used).usd
    assert bound(spec, 1_000_000)[1] > 2 * bound(agent("claude-opus-4-6"), 1_000_000)[1] * 3 / 4


PRICED_APART = [
    ("anthropic", "claude-opus-4-6", {"service_tier": "priority"}),
    ("anthropic", "claude-opus-4-6", {"inference_geo": "us"}),
    ("anthropic", "claude-opus-4-6", {"speed": "fast"}),
    ("gemini", "gemini-2.5-flash", {"serviceTier": "PRIORITY"}),
    ("openai", "gpt-5.1", {"service_tier": "flex"}),
    ("openai", "gpt-5.1", {"web_search_options": {"search_context_size": "low"}}),
    ("openai", "gpt-4o-search-preview", {}),
    ("openai", "o3-deep-research", {}),
    ("openai", "gpt-5.1", {"plugins": [{"id": "web"}]}),
]


@pytest.mark.parametrize(("provider", "model", "parameters"), PRICED_APART)
def test_a_price_that_a_parameter_changes_is_unknown(provider, model, parameters):
    spec = agent(model, provider, parameters=parameters)

    assert (None, None) == (cost_of(spec, "", Usage(input=1)), bound(spec, 0)[1])
    apart = "".join(f"parameters.{name}" for name in parameters) or "searches, which"
    with pytest.raises(ConfigError, match=f"no price is known with {apart}"):
        check_prices(spec, money_limited=True)


@pytest.mark.parametrize(
    "parameters",
    [{"service_tier": "auto"}, {"service_tier": None}, {"plugins": []}, {"speed": "standard"}],
)
def test_a_parameter_that_leaves_the_price_as_it_is_changes_nothing(parameters):
    spec = agent("claude-opus-4-6", parameters=parameters)

    assert cost_of(agent("claude-opus-4-6"), "", Usage(input=1)) == cost_of(
        spec, "", Usage(input=1)
    )


def test_a_price_of_ones_own_holds_whatever_the_parameters():
    spec = agent(parameters={"service_tier": "priority"}, prices={"anthropic/*": OWN})

    assert Decimal("0.003") == cost_of(spec, "", Usage(input=1000)).usd
    check_prices(spec, money_limited=True)


def test_an_unknown_price_is_an_error_without_a_limit_only_if_the_agent_says_so():
    with pytest.raises(ConfigError, match="no price is known"):
        check_prices(agent("claude-none-1", on_unknown_price="error"), money_limited=False)


# D34: what is set is kept or refused.
@pytest.mark.parametrize(
    ("policy", "prices", "why"),
    [
        ("assume", {}, "needs the rates"),
        (None, {"*": OWN}, 'needs on_unknown_price = "assume"'),
        (None, {"claude": OWN}, "provider/model"),
        (None, {"/claude": OWN}, "provider/model"),
    ],
)
def test_an_entry_that_is_for_nothing_is_refused(policy, prices, why):
    with pytest.raises(ConfigError, match=why):
        check_prices(agent(on_unknown_price=policy, prices=prices), money_limited=False)


def test_the_bound_leaves_out_the_tools_that_the_model_is_not_shown():
    hidden = TOOLS[0].model_copy(update={"searched": True})

    assert bound(agent(tools=TOOLS[1:]), 0) == bound(agent(tools=(hidden, *TOOLS[1:])), 0)


def test_the_bound_counts_a_token_a_byte_of_prompt_instructions_and_tools():
    bare = agent("m", "scripted", limits=Limits(max_output_tokens=10))
    told = bare.model_copy(update={"instructions": "Be brief.", "tools": TOOLS[:1]})

    assert 110 == bound(bare, 100)[0]
    assert bound(told, 100)[0] > 110 + len("Be brief.") + len("look") * 2


def test_half_a_letter_counts_as_what_is_recorded_in_its_place():
    broken, recorded = (bound(agent(instructions=text), 0) for text in ("\ud800", "\ufffd"))

    assert recorded == broken


def test_the_bound_counts_what_the_parameters_may_add_to_a_prompt():
    # I8, C23: the vendor reads a schema for the answer as part of it.
    schema = {"output_config": {"format": {"schema": {"description": "long " * 1000}}}}

    plain, told = (bound(agent("m", parameters=p), 100)[0] for p in ({}, schema))

    assert told > plain + 5000


def test_the_bound_is_at_the_dearest_rate_that_may_apply():
    small = agent("claude-sonnet-4-5", limits=Limits(max_output_tokens=1000))

    _, below = bound(small, 100_000)
    _, above = bound(small, 300_000)

    assert (101_024 * Decimal("3.75") + 1000 * 15) / 1_000_000 == below
    assert (301_024 * Decimal("7.5") + 1000 * Decimal("22.5")) / 1_000_000 == above


# C23: tokens by the provider's counter where it has one.
def test_the_bound_is_what_the_vendor_counted_and_a_tenth():
    spec = agent("claude-sonnet-4-5", limits=Limits(max_output_tokens=10))

    assert 11_000 + UNSEEN_TOKENS + 10 == bound(spec, 50_000, 10_000)[0]
    assert bound(spec, 300_000, 10_000)[1] < bound(spec, 300_000)[1] / 10


@given(st.integers(0, 500_000), st.integers(1, 1_000_000))
def test_a_count_never_makes_the_bound_larger(sent, counted):
    spec = agent("claude-sonnet-4-5")
    tokens, usd = bound(spec, sent, counted)

    assert tokens <= bound(spec, sent)[0]
    assert usd <= bound(spec, sent)[1]


# C23, I8: reserve the worst case.
# D34: a limit that no call fits would only ever stop the session.
@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"max_tokens": 5000}, "5,000 is less than the 8,192 that one call may take"),
        ({"max_cost": "0.10"}, r"\$0.10 is less than the \$0.12288 that one call may take"),
    ],
)
def test_a_limit_that_not_one_call_fits_is_refused(limits, why):
    spec = agent("any.toml", "scripted", prices={"scripted/*": OWN}, limits=Limits(**limits))

    with pytest.raises(ConfigError, match=why):
        check_room(spec)

    check_room(spec.model_copy(update={"limits": Limits(max_output_tokens=9, **limits)}))


@given(
    st.sampled_from(["claude-sonnet-4-5", "claude-opus-4-1", "claude-3-haiku-20240307", "own"]),
    st.integers(0, 500_000),
    st.integers(0, 500_000),
    st.integers(0, 100_000),
    st.integers(0, 8192),
)
def test_no_usage_within_the_bound_costs_more(model, plain, read, written, output):
    spec = agent(model, prices={"anthropic/own": OWN})
    used = Usage(input=plain, cache_read=read, cache_write=written, output=output)

    tokens, usd = bound(spec, plain + read + written)

    assert cost_of(spec, "", used).usd <= usd
    assert plain + read + written + output <= tokens
