"""Computes prices of model calls: the actual cost, and the highest possible cost.

Your own price list takes precedence over the dated list of `genai-prices`; each cost names
its list. Amounts are exact decimals, never floats.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec, Price
from cueline.events.message import Cost, Usage, canonical_json
from cueline.providers.registry import provider_named

ANY: Final = "*"
"""The entry for models without a known price: `on_unknown_price = "assume"`."""
UNSEEN_TOKENS: Final = 1024
"""Tokens that a vendor may add to a prompt, to explain tools to the model."""
MARGIN: Final = 10
"""The fraction of a vendor's count that is added to the count."""
APART: Final = frozenset(
    {"enable_search", "inference_geo", "plugins", "search_parameters"}
    | {"serviceTier", "service_tier", "speed", "web_search_options"}
)
"""Parameters that choose a tier, place or speed, or web searches, which have separate prices."""
LISTED: Final = frozenset({"auto", "default", "global", "standard", "standard_only", "unspecified"})
"""The values of these parameters for which the list has the price."""
SEARCHES: Final = re.compile(r"\b(search|deep-research|online|sonar)\b")
"""The parts of the names of models that search the web in each call."""
AN_HOUR: Final = '"ttl": "1h"'
"""The parameter that keeps cached tokens for an hour, at another price."""
_MILLION: Final = Decimal(1_000_000)
_FREE: Final = Decimal(0)


def cost_of(agent: AgentSpec, model: str, usage: Usage) -> Cost | None:
    """Return the cost of *usage* when *model* answered *agent*; None without a known price.

    The answering model may have a dated name; if only one of the two names has a price, that
    price is used.
    """
    cost = _cost_of(agent, model, usage)
    if cost is None or not usage.cache_read:
        return cost
    uncached = {"input": usage.input + usage.cache_read, "cache_read": 0}
    whole = _cost_of(agent, model, usage.model_copy(update=uncached))
    saved = Decimal(0) if whole is None else max(whole.usd - cost.usd, Decimal(0))
    return cost.model_copy(update={"saved": saved})


def _cost_of(agent: AgentSpec, model: str, usage: Usage) -> Cost | None:
    names = dict.fromkeys((model or agent.model, agent.model))
    if (own := _own(agent, *names)) is not None:
        return Cost(usd=_sum(own, usage), prices=f"own list {_digest(own)}")
    if _is_free(agent):
        return Cost(usd=_FREE, prices=agent.provider)
    for name in names if not unlisted(agent) else ():
        if (listed := _listed_cost(agent, name, usage)) is not None:
            return listed
    if agent.on_unknown_price == "assume" and ANY in agent.prices:
        assumed = agent.prices[ANY]
        return Cost(usd=_sum(assumed, usage), prices=f"assumed {_digest(assumed)}")
    return None


def bound(
    agent: AgentSpec, prompt_bytes: int, counted: int | None = None
) -> tuple[int, Decimal | None]:
    """Return the most tokens and US dollars that a call of *agent* takes.

    A token is at least one byte; if the vendor has counted, the count and a margin are used.
    Every token of the prompt may be written to the cache, and every tier may apply. The cost
    is None without a known price.
    """
    shown = [tool for tool in agent.tools if not tool.searched]
    told = [t.model_dump_json(include={"name", "description", "parameters"}) for t in shown]
    if agent.parameters and not _is_free(agent):
        told.append(json.dumps(agent.parameters))  # a schema for the answer is part of the prompt
    # Half a character takes three bytes, as does its replacement in the log.
    instructions = agent.instructions.encode(errors="surrogatepass")
    said = prompt_bytes + len(instructions) + sum(len(t.encode()) for t in told)
    if counted is not None:
        # Anthropic's count is "an estimate", the true number "may differ by a small amount"
        # (platform.claude.com/docs/en/build-with-claude/token-counting).
        said = min(said, counted + counted // MARGIN)
    sent = said + (UNSEEN_TOKENS if not _is_free(agent) else 0)
    answered = agent.limits.max_output_tokens
    rates = _dearest(agent, sent)
    if rates is None:
        return sent + answered, None
    return sent + answered, (sent * rates[0] + answered * rates[1]) / _MILLION


def unlisted(agent: AgentSpec) -> str:
    """Return the parameter that makes the list's prices wrong; empty without one."""
    if SEARCHES.search(agent.model):
        return "searches, which are priced apart"
    given = {name: value for name, value in agent.parameters.items() if name in APART and value}
    apart = (name for name, value in given.items() if str(value).lower() not in LISTED)
    return next((f"parameters.{name}" for name in apart), "")


def _keeps_an_hour(agent: AgentSpec) -> bool:
    return AN_HOUR in json.dumps(agent.parameters)


def context_window(agent: AgentSpec) -> int | None:
    """Return the context window of a model, in tokens; None if the list does not have it."""
    if _is_free(agent):
        return None
    listed = _calculated(_list_of(agent), agent.model)
    return None if listed is None else listed.model.context_window


def check_room(agent: AgentSpec) -> None:
    """Check that one call fits the limits of tokens and cost.

    Raises:
        ConfigError: raise the limit, or make a call smaller.
    """
    tokens, usd = bound(agent, 0)
    most = agent.limits
    fix = "raise it, or lower limits.max_output_tokens"
    if most.max_tokens is not None and tokens > most.max_tokens:
        why = f"{most.max_tokens:,} is less than the {tokens:,} that one call may take; {fix}"
        raise ConfigError("limits.max_tokens", why)
    if most.max_cost is not None and usd is not None and usd > most.max_cost:
        why = (
            f"${most.max_cost} is less than the ${usd.normalize():f} that one call may take; {fix}"
        )
        raise ConfigError("limits.max_cost", why)


def check_prices(agent: AgentSpec, *, money_limited: bool) -> None:
    """Check that a needed price is known, and that each price entry is used.

    Raises:
        ConfigError: correct or add the entry that it names.
    """
    for name in agent.prices:
        if name != ANY and not all(name.partition("/")):
            raise ConfigError(f'prices."{name}"', 'is not "provider/model", nor "*"')
    policy = agent.on_unknown_price or ("error" if money_limited else "ignore")
    if (policy == "assume") != (ANY in agent.prices):
        needs = 'on_unknown_price = "assume" needs the rates to assume: [prices."*"]'
        idle = 'is for models without a price: it needs on_unknown_price = "assume"'
        raise ConfigError('prices."*"', needs if policy == "assume" else idle)
    if policy == "error" and bound(agent, 0)[1] is None:
        name, apart = f"{agent.provider}/{agent.model}", unlisted(agent)
        why = f" with {apart}" if apart else ""
        raise ConfigError(
            f'prices."{name}"',
            f"no price is known{why}, so no limit of money could be kept; add "
            f'[prices."{name}"] with input and output in USD per million tokens, '
            'or set on_unknown_price to "assume" or "ignore"',
        )


def _is_free(agent: AgentSpec) -> bool:
    """Whether the agent's provider costs nothing; false if it is not installed here."""
    try:
        return provider_named(agent.provider).is_free
    except ConfigError:
        return False


def _list_of(agent: AgentSpec) -> str:
    """Return the name of the agent's provider in the list of prices."""
    try:
        return provider_named(agent.provider).prices or agent.provider
    except ConfigError:
        return agent.provider


def _own(agent: AgentSpec, *models: str) -> Price | None:
    """Return the first of the agent's own prices for *models*, else its own assumed price."""
    for name in (*models, ANY) if agent.prices else ():
        if (price := agent.prices.get(f"{agent.provider}/{name}")) is not None:
            return price
    return None


def _sum(price: Price, usage: Usage) -> Decimal:
    cache_read = price.input if price.cache_read is None else price.cache_read
    cache_write = price.input if price.cache_write is None else price.cache_write
    total = (
        usage.input * price.input
        + usage.output * price.output
        + usage.cache_read * cache_read
        + usage.cache_write * cache_write
    )
    return total / _MILLION


def _digest(price: Price) -> str:
    return hashlib.sha256(canonical_json(price)).hexdigest()[:12]


def _listed_cost(agent: AgentSpec, model: str, usage: Usage) -> Cost | None:
    provider = _list_of(agent)
    if _calculated(provider, model) is None:
        return None  # `genai_prices` would search all lists again
    import genai_prices  # noqa: PLC0415 - its table takes a while, and few commands need it

    # `input_tokens` includes tokens from the cache; cueline's number does not.
    counts = genai_prices.Usage(
        input_tokens=usage.sent,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        cache_write_1h_tokens=usage.cache_write if _keeps_an_hour(agent) else 0,
    )
    price = genai_prices.calc_price(counts, model, provider_id=provider)
    return Cost(usd=price.total_price, prices=f"genai-prices {genai_prices.__version__}")


def _dearest(agent: AgentSpec, sent: int) -> tuple[Decimal, Decimal] | None:
    """Return the highest rates for a prompt of up to *sent* tokens, and for the answer."""
    own = _own(agent, agent.model)
    if own is None and _is_free(agent):
        return _FREE, _FREE
    listed = None if own or unlisted(agent) else _listed(_list_of(agent), agent.model)
    if listed is not None:
        units = ["input_mtok", "cache_write_mtok"]
        units += ["cache_write_1h_mtok"] if _keeps_an_hour(agent) else []
        reading = {rate for unit in units for rate in _rates(listed, unit, sent)}
        return max(reading, default=_FREE), max(_rates(listed, "output_mtok", sent), default=_FREE)
    if own is None and agent.on_unknown_price == "assume":
        own = agent.prices.get(ANY)
    if own is None:
        return None
    inputs = (own.input, own.cache_read, own.cache_write)
    return max(rate for rate in inputs if rate is not None), own.output


def _listed(provider: str, model: str) -> Any:
    """Return the price of a model in the dated list; None if the list lacks the model."""
    found = _calculated(provider, model)
    return None if found is None else found.model_price


@lru_cache(maxsize=64)
def _calculated(provider: str, model: str) -> Any:
    """Return the entry of a model in the dated list; None if the list lacks the model."""
    import genai_prices  # noqa: PLC0415 - as above

    try:
        return genai_prices.calc_price(genai_prices.Usage(), model, provider_id=provider)
    except LookupError:
        return None


def _rates(listed: Any, unit: str, tokens: int) -> Iterator[Decimal]:
    """Yield the rates of *unit* that may apply to a prompt of up to *tokens*."""
    price = getattr(listed, unit, None)
    if price is None:
        return
    yield getattr(price, "base", price)
    yield from (tier.price for tier in getattr(price, "tiers", ()) if tier.start <= tokens)
