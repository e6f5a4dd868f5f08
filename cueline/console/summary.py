"""Summarises the end of a session in a few lines."""

from collections.abc import Iterator
from decimal import Decimal

from cueline.console.line import Line, Tone
from cueline.console.text import count, duration, money, tokens_in
from cueline.projections.summary import Summary

_TONES: dict[str, Tone] = {"completed": "good", "idle": "good", "failed": "bad", "stopped": "bad"}

_UNCOUNTED = "its tokens and cost are counted with --all"


def summary(id: str, status: str, tally: Summary) -> Iterator[Line]:  # noqa: A002 - the word of the log
    """Return status, turns, calls, tokens, cost, and the problems along the way."""
    usage = tally.usage
    pieces = [
        f"session {id}: {status}{', partial' * tally.partial}",
        count(tally.turns, "turn"),
        count(tally.tool_calls, "tool call"),
        f"{tokens_in(usage)} + {usage.output:,} out tokens",
        cost_of(tally),
    ]
    if tally.began_at and tally.updated_at:
        pieces.append(duration((tally.updated_at - tally.began_at).total_seconds()))
    yield Line(_TONES.get(status, "note"), " · ".join(pieces))
    if told := cache_text(tally.saved, tally.cache_breaks, tally.missed_tokens, tally.missed_cost):
        yield Line("dim", f"  cache: {told}")
    if troubles := _troubles(tally):
        # Not "recovered": the last retry may have failed, too.
        yield Line("dim", f"  along the way: {troubles}")
    if tally.degraded_calls:
        failed = count(tally.degraded_calls, "call")
        yield Line("dim", f"  partial: {failed} of tools that are not critical failed")
    if tally.inherited is not None:
        past = tally.inherited
        yield Line("dim", f"  inherited: {count(past.turns, 'turn')}, {money(past.cost)}")


def summary_without_sums(id: str, status: str, turn: str) -> Line:  # noqa: A002 - the word of the log
    """Return status and turn of a session without a known usage."""
    return Line(_TONES.get(status, "note"), f"session {id}: {status} · turn {turn} · {_UNCOUNTED}")


def cache_text(saved: Decimal, breaks: int, missed: int, cost: Decimal) -> str:
    """Return the amount that the cache saved, and the cost of changed prompts; empty for none."""
    pieces = [f"saved {money(saved)}"] if saved else []
    if breaks:
        usd = f", {money(cost)} more" if cost else ""
        anew = f"{missed:,} cached tokens were sent anew{usd}"
        pieces.append(f"{count(breaks, 'change')} of the prompt's beginning: {anew}")
    return "; ".join(pieces)


def cost_of(tally: Summary) -> str:
    """Return the cost of a session, marked if it is an estimate."""
    pieces = [money(tally.cost, estimated=tally.estimated > 0)]
    if tally.estimated:
        pieces.append(f"{money(tally.estimated)} of it estimated")
    if tally.assumed:
        pieces.append(f"{money(tally.assumed)} of it at assumed prices")
    if tally.unpriced:
        pieces.append(f"and {count(tally.unpriced, 'unpriced model call')}")
    if tally.children:
        whole = money(tally.cost + tally.children_cost)
        children = f"{tally.children} child{'ren' if tally.children > 1 else ''}"
        pieces.append(f"{whole} with {children}")
    said, *more = pieces
    return f"{said} ({', '.join(more)})" if more else said


def _troubles(tally: Summary) -> str:
    found = [
        (tally.takeovers, "takeover"),
        (tally.lost_attempts, "lost attempt"),
        (tally.retries, "retry"),
        (tally.in_doubt, "call in doubt"),
    ]
    words = {"retry": "retries", "call in doubt": "calls in doubt"}
    return ", ".join(
        f"{number} {words.get(noun, noun + 's') if number > 1 else noun}"
        for number, noun in found
        if number
    )
