"""`cueline budget`: what a session may use, and more of it."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cueline.cli import opened
from cueline.cli.addressing import client_for
from cueline.cli.failure import Exit
from cueline.cli.message import tell
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, SessionArgument
from cueline.events.log_url import LogUrl

if TYPE_CHECKING:
    from cueline.actors.followed import Followed, Past
    from cueline.client.receipt import Receipt
    from cueline.console.tally import Tally
    from cueline.deciders.budget import BudgetState
    from cueline.deciders.session import SessionState
    from cueline.events.budget import LimitName

_GROUP = """Show what a session may use, and let it have more.

A session at a limit is paused, not failed: raise the limit, and it goes on.
"""
_SHOW = """Show each limit of a session: what is used of it, and who set it.

Tokens and cost count with all sessions that it started. A limit of a session
above it counts for it, too, and is shown with its name.

\b
Example:
  cueline budget show 7f3a
"""
_RAISE = """Let a session have more; it goes on if it was waiting for that.

It is a message, so it counts although nothing runs. A limit can be raised, not
lowered, and a session that has none of a kind cannot be given one.

\b
Examples:
  cueline budget raise 7f3a --max-cost 10
  cueline budget raise 7f3a --time-budget 8h --max-turns 100
"""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help=_GROUP, short_help="Show limits; raise them.", no_args_is_help=True)
    group.command("show", help=_SHOW, short_help="Show what is used of each limit.")(show)
    group.command("raise", help=_RAISE, short_help="Let a session have more.")(raise_)
    app.add_typer(group, name="budget")


def raise_(
    session: SessionArgument,
    *,
    max_cost: Annotated[
        str | None, typer.Option(metavar="USD", help="US dollars, with all it starts.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Tokens, sent and answered, likewise.")
    ] = None,
    max_turns: Annotated[
        int | None, typer.Option(metavar="N", help="Model calls since the last message.")
    ] = None,
    time_budget: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time at work, in seconds or as 15m or 4h.")
    ] = None,
    max_wall: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time since the start, likewise.")
    ] = None,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Raise limits."""
    from cueline.config.layer import from_flags

    wanted = from_flags(
        {
            "limits.max_cost": ("--max-cost", max_cost),
            "limits.max_tokens": ("--max-tokens", max_tokens),
            "limits.max_turns": ("--max-turns", max_turns),
            "limits.max_active_seconds": ("--time-budget", time_budget),
            "limits.max_wall_seconds": ("--max-wall", max_wall),
        }
    )
    if not wanted:
        raise typer.BadParameter("name a limit: --max-cost, --max-tokens, --max-turns …")
    limits = {key.partition(".")[2]: each.value for key, each in wanted.items()}
    tell(log, opened.run(_raise(log, session, limits)), "asked for more", as_json=as_json)


async def _raise(log: LogUrl, name: str, limits: dict[str, Any]) -> "Receipt":
    async with client_for(log, name) as (client, session):
        return await client.raise_limits(session, **limits)


def show(
    session: SessionArgument, *, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False
) -> None:
    """Show limits."""
    raise typer.Exit(opened.run(_show(log, session, as_json=as_json)))


@dataclass(frozen=True, slots=True)
class Row:
    """One limit."""

    limit: str
    used: Decimal
    of: Decimal
    source: str
    whose: str | None = None
    """The session above it that has the limit; None: its own."""
    reserved: Decimal = Decimal(0)
    """For calls that are out; beside what is used."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a session stands with its limits."""

    id: str
    status: str
    rows: tuple[Row, ...]
    active_seconds: float
    waiting_seconds: float
    wall_seconds: float


async def _show(log: LogUrl, name: str, *, as_json: bool) -> Exit:
    from cueline.cli.reading import past_of, session_in

    async with session_in(log, name) as followed:
        past, code = await past_of(followed)
        standing = await _standing(followed, past)
    if as_json:
        typer.echo(json.dumps(asdict(standing), indent=2, default=str))
    else:
        _print(standing)
    return code


async def _standing(followed: "Followed", past: "Past") -> Standing:
    from cueline.cli.ending import shown_status
    from cueline.console.clocks import Clocks
    from cueline.console.tally import Tally
    from cueline.events.stream import shown

    clocks, tally = Clocks(), Tally()
    for recorded, fact in past:
        if fact is not None:
            clocks.add(fact, recorded.recorded_at)
            tally = tally.after(fact, recorded.recorded_at)
    now = datetime.now(UTC)
    rows: tuple[Row, ...] = ()
    if followed.state.setup is not None:
        budget = await _budget(followed)
        own = _own(followed.state, clocks.wall(now))
        rows = (*own, *_money(followed.state, tally, budget))
    return Standing(
        id=shown(followed.stream),
        status=shown_status(followed.state),
        rows=rows,
        active_seconds=round(clocks.active_seconds, 3),
        waiting_seconds=round(clocks.waiting(now), 3),
        wall_seconds=round(clocks.wall(now), 3),
    )


async def _budget(followed: "Followed") -> "BudgetState":
    """Fold what the ledger recorded for the session's tree; nothing, where it has no limit."""
    from cueline.actors.fold import fold
    from cueline.cli.reading import journal_of
    from cueline.deciders.budget import BUDGET
    from cueline.deciders.session.budget import budget_of

    journal, budget = journal_of(followed.store), budget_of(followed.state)
    return (await fold(journal, budget, BUDGET, BUDGET.initial_state))[0]


def _own(state: "SessionState", wall_seconds: float) -> Iterator[Row]:
    """Tell the limits that concern nobody else."""
    limits, turn = state.meter.limits, state.turn
    # A turn that is held before its call has not been used.
    held = turn.model is not None and turn.model.phase == "requested"
    used = {
        "max_turns": max(0, turn.since_user - held),
        "max_active_seconds": turn.active_seconds,
        "max_wall_seconds": wall_seconds,
    }
    for name, so_far in used.items():
        if (most := getattr(limits, name)) is not None:
            yield Row(name, _exact(so_far), _exact(most), _source(state, name))


def _money(state: "SessionState", tally: "Tally", budget: "BudgetState") -> Iterator[Row]:
    """Tell the limits of tokens and money: its own, and those of the sessions above it."""
    from cueline.events.stream import shown

    assert state.setup is not None, "a session that has limits was started"
    node = budget.nodes.get(state.stream)
    tokens = Decimal(tally.usage.total)
    own = {"max_tokens": tokens, "max_cost": tally.cost + tally.children_cost}
    names: tuple[LimitName, ...] = ("max_tokens", "max_cost")
    for name in names:
        most = getattr(state.meter.limits, name)
        if most is not None:
            used = node.settled.of(name) if node else own[name]
            held = node.reserved.of(name) if node else Decimal(0)
            yield Row(name, used, _exact(most), _source(state, name), None, held)
    for allowance in state.setup.family.allowances:
        above = budget.nodes.get(allowance.session)
        for name in names:
            if above is not None and name in above.limits:
                used, held = above.settled.of(name), above.reserved.of(name)
                whose = shown(allowance.session)
                yield Row(name, used, above.limits[name], "its own", whose, held)


def _exact(value: float | Decimal) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(str(round(value, 3)))


def _source(state: "SessionState", name: str) -> str:
    """Tell who set a limit; of an agent in code no place is recorded."""
    from cueline.events.agent import Limits

    if getattr(state.meter.limits, name) != getattr(state.agent.limits, name):
        return "raised"
    sources = state.agent.limit_sources
    if (source := sources.get(f"limits.{name}") or sources.get(name)) is not None:
        return source
    usual = getattr(state.agent.limits, name) == getattr(Limits(), name)
    return "default" if usual else "the agent"


def _print(standing: Standing) -> None:
    from cueline.console.budget import NAMES, amount
    from cueline.console.table import print_table
    from cueline.console.text import duration

    typer.echo(f"session {standing.id}: {standing.status}")
    table = [
        (
            NAMES[row.limit] + (f" of {row.whose}" if row.whose else ""),
            amount(row.limit, row.used),
            amount(row.limit, row.reserved) if row.reserved else "",
            amount(row.limit, row.of),
            f"{row.used / row.of:.0%}",
            row.source,
        )
        for row in standing.rows
    ]
    print_table(("limit", "used", "reserved", "of", "share", "set by"), table)
    clocks = (
        ("active", standing.active_seconds),
        ("waiting", standing.waiting_seconds),
        ("wall", standing.wall_seconds),
    )
    typer.echo("clocks: " + ", ".join(f"{name} {duration(seconds)}" for name, seconds in clocks))
