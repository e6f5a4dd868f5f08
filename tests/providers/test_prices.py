"""What a model call costs."""

from decimal import Decimal
from importlib.metadata import version

from cueline.events.message import Cost, Usage
from cueline.providers.prices import cost_of


def test_what_came_from_the_cache_is_cheaper_and_counted_once():
    plain = cost_of("claude-opus-4-1", Usage(input=1000), "anthropic")
    cached = cost_of("claude-opus-4-1", Usage(cache_read=1000), "anthropic")
    both = cost_of("claude-opus-4-1", Usage(input=1000, cache_read=1000), "anthropic")

    assert Decimal("0.015") == plain.usd
    assert Decimal("0.0015") == cached.usd
    assert both.usd == plain.usd + cached.usd


def test_a_cost_names_the_price_list_and_its_version():
    cost = cost_of("claude-opus-4-1", Usage(output=10), "anthropic")

    assert f"genai-prices {version('genai-prices')}" == cost.prices


def test_a_model_or_provider_without_a_price_has_no_cost():
    assert cost_of("claude-none-1", Usage(input=1), "anthropic") is None
    assert cost_of("claude-opus-4-1", Usage(input=1), "nobody") is None


def test_a_scripted_model_costs_nothing():
    assert Cost(usd=Decimal(0), prices="scripted") == cost_of("m", Usage(input=9), "scripted")
