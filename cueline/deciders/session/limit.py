"""What a session has used of its turns and its time, and what follows from it.

Of tokens and money the ledger says what is used, and when nothing more may be;
here they are only warned of.

At 0.8 of a limit people are told, at 0.9 the agent is told too, at 1.0 the
session is held before the next model call. Whatever is in flight is let
finish, so that time may be passed by what one turn takes.

Turns count since the last message of a user. Active time is what model calls
and tool calls took, each counted, also where they ran side by side; attempts
that were lost with their host do not count, for nobody knows how long they
took. Wall time is everything since the start. What a person takes to answer
is neither: it is waiting time, and each question has a deadline of its own.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import replace

from cueline.deciders import prompt
from cueline.deciders.session.budget import account_to_release, end_budget_wait
from cueline.deciders.session.limit_state import LimitState
from cueline.deciders.session.state import LimitHold, SessionState, Status
from cueline.events.agent import Limits
from cueline.events.cause import Cause
from cueline.events.inbox import RaiseAsked
from cueline.events.refusal import Refusal
from cueline.events.session import LimitRaised, LimitWarned, SessionWaiting

WARN, TELL, STOP = 0.8, 0.9, 1.0

_BUDGETS = frozenset({"max_tokens", "max_cost"})
_NAMES = {"max_turns": "turn", "max_tokens": "token", "max_cost": "cost"}


class Use(Struct, frozen=True):
    """What is used of one limit."""

    limit: str
    used: float
    of: float
    since: float
    """What tells this stretch of it from others: it is warned of once."""

    @property
    def budget(self) -> str:
        """What the agent is told of."""
        return _NAMES.get(self.limit, "time")

    @property
    def reached(self) -> Cause:
        """Why the session is held once all of it is used."""
        return Cause(code="limit_reached", limit=self.limit, of=Decimal(str(self.of)))

    @property
    def share(self) -> float:
        """How much of it is used: 1.0 is all."""
        return self.used / self.of


def limit_reached_or_warned(
    state: SessionState, *, turns: bool
) -> SessionWaiting | LimitWarned | None:
    """Return what a limit has to say before the model is asked: that it holds, or warns."""
    uses = [use for use in _uses(state, turns=turns) if use.share >= WARN]
    return (_reached(uses) or _warning(state, uses)) if uses else None


def _reached(uses: Sequence[Use]) -> SessionWaiting | None:
    for use in uses:
        if use.limit not in _BUDGETS and use.used >= use.of:
            return SessionWaiting(kind="operator", cause=use.reached)
    return None


def _warning(state: SessionState, uses: Sequence[Use]) -> LimitWarned | None:
    for use in uses:
        for share in (WARN, TELL):
            if use.share >= share and (use.limit, share, use.since) not in state.limit_state.warned:
                note = f"You are approaching the {use.budget} budget. Wrap up current work."
                return LimitWarned(
                    limit=use.limit,
                    share=share,
                    used=round(use.used, 3),
                    of=use.of,
                    note=note if share == TELL else "",
                )
    return None


def _uses(state: SessionState, *, turns: bool) -> list[Use]:
    limits, turn, uses = state.limit_state.limits, state.turn, []
    if turns:
        began = turn.number - turn.since_user
        uses.append(Use("max_turns", turn.since_user, limits.max_turns, began))
    active = limits.max_active_seconds
    uses.append(Use("max_active_seconds", turn.active_seconds, active, active))
    wall, passed = limits.max_wall_seconds, _wall_seconds(state.limit_state)
    if wall is not None and passed is not None:
        uses.append(Use("max_wall_seconds", passed, wall, wall))
    for name, share in state.limit_state.shares:
        # Perhaps of a session above: what it is a share of is not known here.
        uses.append(Use(name, share, 1.0, float(getattr(limits, name) or 0)))
    return uses


def _wall_seconds(limit_state: LimitState) -> float | None:
    if limit_state.began_at is None or limit_state.seen_at is None:
        return None
    return (limit_state.seen_at - limit_state.began_at).total_seconds()


def advance_wall_clock(state: SessionState, at: datetime | None) -> SessionState:
    """Note how late it is, where the time since the start is limited; hold at its end."""
    limit_state = state.limit_state
    if limit_state.limits.max_wall_seconds is None or at is None or limit_state.began_at is None:
        return state
    if limit_state.seen_at is None or at > limit_state.seen_at:
        limit_state = replace(limit_state, seen_at=at)
    state = replace(state, limit_state=limit_state)
    if state.hold or state.stop or state.finished:
        return state
    over = next((u for u in _uses(state, turns=False) if u.limit == "max_wall_seconds"), None)
    if over is None or over.share < STOP:
        return state
    return replace(state, hold=LimitHold(over.reached))


def next_warning_at(state: SessionState) -> datetime | None:
    """Return the next moment at which the time since the start has something to say."""
    limit_state, wall = state.limit_state, state.limit_state.limits.max_wall_seconds
    if wall is None or limit_state.began_at is None or state.hold or state.stop:
        return None
    if state.status not in (Status.RUNNING, Status.WAITING):
        return None
    rungs = (limit_state.began_at + timedelta(seconds=wall * share) for share in (WARN, TELL, STOP))
    return next(
        (rung for rung in rungs if limit_state.seen_at is None or rung > limit_state.seen_at), None
    )


def limit_warned(state: SessionState, event: LimitWarned) -> SessionState:
    """Remember what was said, and what the agent is to be told."""
    since = next((u.since for u in _uses(state, turns=True) if u.limit == event.limit), event.of)
    others = (rung for rung in state.limit_state.warned if rung[:2] != (event.limit, event.share))
    notes = map(prompt.fingerprint, prompt.warning_messages(event))
    limit_state = replace(
        state.limit_state,
        warned=(*others, (event.limit, event.share, since)),
        notes=(*state.limit_state.notes, *notes),
    )
    return replace(state, limit_state=limit_state)


def with_notes_delivered(limit_state: LimitState) -> LimitState:
    """Return *meter* once the model is told what it was to be told."""
    return replace(limit_state, notes=()) if limit_state.notes else limit_state


def refusal(limits: Limits, asked: RaiseAsked) -> Refusal | None:
    """Return why *limits* cannot be raised like that; None when they can."""
    wanted = asked.model_dump(exclude={"type"}, exclude_none=True)
    if not wanted:
        return Refusal(code="no_limit_named")
    for name, higher in wanted.items():
        present = getattr(limits, name)
        if present is None:
            return Refusal(code="no_such_limit", limit=name)
        if higher <= present:
            return Refusal(code="not_higher", limit=name, of=Decimal(str(present)))
    return None


def raise_refusal(limits: Limits, unread: Iterable[object], asked: RaiseAsked) -> Refusal | None:
    """Return why a session would refuse *asked*, which it reads after what is *unread*."""
    then = limits
    for message in unread:
        if isinstance(message, RaiseAsked):
            then = with_raise(then, message)
    refused = refusal(then, asked)
    if refused is None or refusal(limits, asked) == refused:
        return refused
    return refused.model_copy(update={"unread": True})


def with_raise(limits: Limits, asked: RaiseAsked) -> Limits:
    """Return *limits* as they are when *asked* is read: as before, where it is refused."""
    if refusal(limits, asked) is not None:
        return limits
    return limits.model_copy(update=asked.model_dump(exclude={"type"}, exclude_none=True))


def raise_asked(state: SessionState, asked: RaiseAsked) -> SessionState:
    """Remember what is to be higher; of two wishes for one limit the later counts."""
    before = state.limit_state.asked or LimitRaised()
    wanted = asked.model_dump(exclude={"type"}, exclude_none=True)
    return replace(
        state, limit_state=replace(state.limit_state, asked=before.model_copy(update=wanted))
    )


def limit_raised(state: SessionState, event: LimitRaised) -> SessionState:
    """Have higher limits, and go on if it was for them that the session was held."""
    higher = event.model_dump(exclude={"type"}, exclude_none=True)
    asked = state.limit_state.asked
    if asked is not None:
        asked = asked.model_copy(update=dict.fromkeys(higher))
        asked = None if asked == LimitRaised() else asked
    limits = state.limit_state.limits.model_copy(update=higher)
    shares = tuple([each for each in state.limit_state.shares if each[0] not in higher])
    limit_state = replace(state.limit_state, limits=limits, shares=shares, asked=asked)
    if held_at_limit(state):
        state = replace(state, hold=None, account=account_to_release(state))
    return advance_wall_clock(
        end_budget_wait(replace(state, limit_state=limit_state)), limit_state.seen_at
    )


def held_at_limit(state: SessionState) -> bool:
    """Whether it is for a limit that the session is held."""
    return state.hold is not None and state.hold.cause.code == "limit_reached"
