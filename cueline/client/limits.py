"""Returns the limits of a session, and the used amounts."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from cueline.actors.fold import fold
from cueline.client.history import History
from cueline.deciders.budget import BUDGET, BudgetState
from cueline.deciders.session import SessionState
from cueline.deciders.session.budget import budget_of
from cueline.errors import CuelineError
from cueline.events.agent import Limits
from cueline.events.budget import LimitName
from cueline.events.stream import shown
from cueline.projections.summary import Summary
from cueline.runtime.open_log import OpenLog


@dataclass(frozen=True, slots=True)
class LimitRow:
    """One limit."""

    limit: str
    used: Decimal
    of: Decimal
    source: str
    """The source of the limit."""
    whose: str | None = None
    """The ancestor with the limit; None: the session's own limit."""
    reserved: Decimal = Decimal(0)
    """The amount reserved for calls in flight, beside the used amount."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a session, and its three clocks."""

    id: str
    status: str
    rows: tuple[LimitRow, ...]
    active_seconds: float
    waiting_seconds: float
    wall_seconds: float
    damage: CuelineError | None = None
    """The reason why the session cannot be read further."""


async def budget_of_session(log: OpenLog, history: History) -> Budget:
    """Return the limits of a session, and the used amounts."""
    tally = Summary()
    for recorded, fact in history.events:
        if fact is not None:
            tally = tally.after(fact, recorded.recorded_at)
    now, state = log.clock.now(), history.state
    rows: tuple[LimitRow, ...] = ()
    if state.setup is not None:
        ledger, _ = await fold(log.journal(), budget_of(state), BUDGET, BUDGET.initial_state)
        rows = (*_own(state, tally.wall(now)), *_money(state, tally, ledger))
    return Budget(
        id=history.id,
        status=history.status,
        rows=rows,
        active_seconds=round(tally.active_seconds, 3),
        waiting_seconds=round(tally.waiting(now), 3),
        wall_seconds=round(tally.wall(now), 3),
        damage=history.damage,
    )


def _own(state: SessionState, wall_seconds: float) -> Iterator[LimitRow]:
    """Yield the limits of turns and times, which apply to the session alone."""
    limits, turn = state.limit_state.limits, state.turn
    # A turn that is held before its call has not been used.
    held = turn.model is not None and turn.model.phase == "requested"
    used = {
        "max_turns": max(0, turn.since_user - held),
        "max_active_seconds": turn.active_seconds,
        "max_wall_seconds": wall_seconds,
    }
    for name, so_far in used.items():
        if (most := getattr(limits, name)) is not None:
            yield LimitRow(name, _exact(so_far), _exact(most), _source(state, name))


def _money(state: SessionState, tally: Summary, budget: BudgetState) -> Iterator[LimitRow]:
    """Yield the token and cost limits: the session's own, then its ancestors'."""
    assert state.setup is not None, "a session that has limits was started"
    node = budget.nodes.get(state.stream)
    tokens = Decimal(tally.usage.total)
    own = {"max_tokens": tokens, "max_cost": tally.cost + tally.children_cost}
    names: tuple[LimitName, ...] = ("max_tokens", "max_cost")
    for name in names:
        most = getattr(state.limit_state.limits, name)
        if most is not None:
            used = node.settled.of(name) if node else own[name]
            held = node.reserved.of(name) if node else Decimal(0)
            yield LimitRow(name, used, _exact(most), _source(state, name), None, held)
    for allowance in state.setup.family.allowances:
        above = budget.nodes.get(allowance.session)
        for name in names:
            if above is not None and name in above.limits:
                used, held = above.settled.of(name), above.reserved.of(name)
                whose = shown(allowance.session)
                yield LimitRow(name, used, above.limits[name], "its own", whose, held)


def _exact(value: float | Decimal) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(str(round(value, 3)))


def _source(state: SessionState, name: str) -> str:
    """Return the source of a limit; an agent made in Python has none."""
    if getattr(state.limit_state.limits, name) != getattr(state.agent.limits, name):
        return "raised"
    sources = state.agent.limit_sources
    if (source := sources.get(f"limits.{name}") or sources.get(name)) is not None:
        return source
    usual = getattr(state.agent.limits, name) == getattr(Limits(), name)
    return "default" if usual else "the agent"
