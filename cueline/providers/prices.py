"""What a model call costs."""

from decimal import Decimal
from typing import Final

from cueline.events.message import Cost, Usage

SCRIPTED: Final = "scripted"


def cost_of(model: str, usage: Usage, provider: str) -> Cost | None:
    """Return what *usage* of *model* costs now, or None where no price is known."""
    if provider == SCRIPTED:
        return Cost(usd=Decimal(0), prices=SCRIPTED)
    import genai_prices  # noqa: PLC0415 - its table takes a while, and few commands need it

    # Theirs counts what came from the cache, ours does not.
    counts = genai_prices.Usage(
        input_tokens=usage.input + usage.cache_read + usage.cache_write,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )
    try:
        price = genai_prices.calc_price(counts, model, provider_id=provider)
    except LookupError:
        return None
    return Cost(usd=price.total_price, prices=f"genai-prices {genai_prices.__version__}")
