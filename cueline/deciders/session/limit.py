"""The limits of turns and time; the ledger enforces the limits of tokens and cost.

At 0.8 of a limit people are warned, at 0.9 also the model, and at 1.0 the session
is paused before the next model call. Running calls finish, so a session can exceed
its time limit by one turn.

Turns count from the last user message. Active time is the sum of the durations of
model and tool calls, also of concurrent ones; attempts lost with their host have no
known duration and do not count. Wall time runs from the start. The wait for an
answer counts as neither; each question has a separate deadline.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import replace

from cueline.deciders import prompt
from cueline.deciders.session.budget import account_to_release, end_budget_wait
from cueline.deciders.session.limit_state import LimitState
from cueline.deciders.session.state import SessionHold, SessionState
from cueline.events.agent import Limits
from cueline.events.codes import Cause, Refusal
from cueline.events.inbox import RaiseAsked
from cueline.events.session import LimitRaised, LimitWarned, SessionWaiting
from cueline.events.status import Status

WARN, TELL, STOP = 0.8, 0.9, 1.0

_BUDGETS = frozenset({"max_tokens", "max_cost"})
_NAMES = {"max_turns": "turn", "max_tokens": "token", "max_cost": "cost"}


class Use(Struct, frozen=True):
    """The use of one limit."""

    limit: str
    used: float
    of: float
    since: float
    """The counted period; each period has one warning."""

    @property
    def budget(self) -> str:
        """The name of the limit in texts for the model."""
        return _NAMES.get(self.limit, "time")

    @property
    def reached(self) -> Cause:
        """The cause of the session's pause when the limit is reached."""
        return Cause(code="limit_reached", limit=self.limit, of=Decimal(str(self.of)))

    @property
    def share(self) -> float:
        """The used share of the limit; 1.0: the limit is reached."""
        return self.used / self.of


def limit_reached_or_warned(
    state: SessionState, *, turns: bool
) -> SessionWaiting | LimitWarned | None:
    """Return the pause or warning of a limit before a model call; None if no limit needs one."""
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
        # The limit may be an ancestor's, whose total is unknown here.
        uses.append(Use(name, share, 1.0, float(getattr(limits, name) or 0)))
    return uses


def _wall_seconds(limit_state: LimitState) -> float | None:
    if limit_state.began_at is None or limit_state.seen_at is None:
        return None
    return (limit_state.seen_at - limit_state.began_at).total_seconds()


def advance_wall_clock(state: SessionState, at: datetime | None) -> SessionState:
    """Return *state* with the wall clock at *at*; paused at the end of a limited wall time."""
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
    return replace(state, hold=SessionHold(over.reached))


def next_warning_at(state: SessionState) -> datetime | None:
    """Return the next time at which wall time needs a warning or a pause."""
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
    """Return *state* with a warning, and the text for the model."""
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
    """Return *limit_state* after the model has seen its warnings."""
    return replace(limit_state, notes=()) if limit_state.notes else limit_state


def refusal(limits: Limits, asked: RaiseAsked) -> Refusal | None:
    """Return why *limits* cannot be raised as *asked*; None for a valid request."""
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
    """Return why a session would refuse *asked* after it reads *unread*; None if it would not."""
    then = limits
    for message in unread:
        if isinstance(message, RaiseAsked):
            then = with_raise(then, message)
    refused = refusal(then, asked)
    if refused is None or refusal(limits, asked) == refused:
        return refused
    return refused.model_copy(update={"unread": True})


def with_raise(limits: Limits, asked: RaiseAsked) -> Limits:
    """Return *limits* after the request *asked*; unchanged if the request is refused."""
    if refusal(limits, asked) is not None:
        return limits
    return limits.model_copy(update=asked.model_dump(exclude={"type"}, exclude_none=True))


def raise_asked(state: SessionState, asked: RaiseAsked) -> SessionState:
    """Return *state* with the requested limits; of two requests for a limit the later counts."""
    before = state.limit_state.asked or LimitRaised()
    wanted = asked.model_dump(exclude={"type"}, exclude_none=True)
    return replace(
        state, limit_state=replace(state.limit_state, asked=before.model_copy(update=wanted))
    )


def limit_raised(state: SessionState, event: LimitRaised) -> SessionState:
    """Return *state* with raised limits; a session that a limit paused continues."""
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
    """Whether the session is paused by a limit."""
    return state.hold is not None and state.hold.cause.code == "limit_reached"
