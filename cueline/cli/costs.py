"""`cueline costs`: show the costs of sessions, agents, models and days."""

from decimal import Decimal
from typing import Annotated, Any

import typer

from cueline.cli import open_log
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, SessionFilter
from cueline.client.rows import Costs, GroupBy
from cueline.console.summary import cache_text
from cueline.console.table import bar, print_table
from cueline.console.text import count, money, visible
from cueline.projections.cost import Spent

_BAR = 24


def costs(
    *,
    by: Annotated[GroupBy, typer.Option(help="What to sum up by.")] = "session",
    session: SessionFilter = None,
    since: Annotated[
        str | None, typer.Option(metavar="DAY", help="From this day on, in UTC: 2026-01-31.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="DAY", help="Up to this day.")] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most N rows.")] = 50,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Show the costs by session, agent, model, day or tree of sessions.

    A cost is recorded with each answer, by the price list of that time. If the usage
    is unknown, because the answer was lost or reported none, the highest possible
    cost of the call counts, and is marked `~`.

    \b
    Examples:
      cueline costs
      cueline costs --by model --since 2026-01-01
      cueline costs --by day --session 7f3a --json
    """
    wanted: Any = {"session": session, "since": since, "until": until}
    found = open_log.ask(log, lambda reader: reader.costs(by, limit=limit, **wanted))
    fitting = "that fits " if any(wanted.values()) else ""
    nothing = f"nothing {fitting}was spent in {visible(str(log))}"
    open_log.print_answer(found, lambda costs: _print(costs, nothing), as_json=as_json)
    if found.damage is not None:
        raise found.damage


def _print(costs: Costs, nothing: str) -> None:
    if not costs.rows:
        typer.echo(nothing)
        return
    whole = costs.total
    dearest = max((row.cost for row in costs.rows), default=Decimal(0))
    table = [(*_cells(row), bar(row.cost / dearest, _BAR) if dearest else "") for row in costs.rows]
    print_table(
        (costs.by, "sessions", "answers", "sent", "cached", "output", "cost", ""),
        [*table, (*_cells(whole), "")],
    )
    if costs.more_rows:
        more = count(costs.more_rows, "more row")
        typer.echo(f"{more} of {money(costs.more_cost)}; --limit shows them")
    cache = (whole.saved_cost, whole.cache_breaks, whole.missed_tokens, whole.missed_cost)
    if told := cache_text(*cache):
        typer.echo(f"the cache {told}" if whole.saved_cost else told)
    for usd, why in (
        (whole.estimated_cost, "estimated, at the most that calls of unknown use may cost (~)"),
        (whole.assumed_cost, "at assumed prices (?)"),
    ):
        if usd:
            typer.echo(f"{money(usd)} of it is {why}")
    if whole.unpriced:
        typer.echo(f"{count(whole.unpriced, 'model call')} of an unknown price cost more than that")


def _cells(row: Spent) -> tuple[str, ...]:
    mark = "?" * (row.assumed_cost > 0)
    return (
        row.name,
        *(f"{n:,}" for n in (row.sessions, row.calls)),
        *(f"{n:,}" for n in (row.sent_tokens, row.cached_tokens, row.output_tokens)),
        f"{mark}{money(row.cost, estimated=row.estimated_cost > 0)}",
    )
