"""The state of a session: open effects, counters and digests, no message bodies.

The only content is that of ended children for which the model has not asked yet.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

from msgspec import Struct

from cueline.deciders.progress import Progress
from cueline.deciders.session.limit_state import BudgetAccount, LimitState, Used
from cueline.deciders.session.turn import BreakerWait, Call, Turn
from cueline.deciders.standing_grant import StandingGrant
from cueline.events.agent import AgentSpec, ModelChoice, ToolSpec
from cueline.events.budget import Allowance
from cueline.events.codes import TERMINAL, Cause, Status, is_pause
from cueline.events.inbox import ChildEnded, Lane
from cueline.events.session import Cut, PrefixReason, StopCode, WaitKind
from cueline.events.start import ChildCall, Mode, Schedule

STATE_FOLD: Final = 4
"""The version of this fold; raised when a fact gives another state than before."""
FailCode = Literal["approval_expired", "no_matching_runner", "runner_disconnected"]
"""The failures of a session that first has to end its effects in flight."""
MAX_TAKEOVERS = 3
"""The number of deaths of hosts that ran a call of the session, after which a person is asked."""


LIVE = frozenset(Status) - TERMINAL - {Status.CREATED}
"""The statuses of a started, unfinished session; in others, no event follows and none is due."""


class PendingMessage(Struct, frozen=True):
    """A message that the model has not seen."""

    inbox_version: int
    lane: Lane
    fingerprints: tuple[str, ...]
    turn: int = 0
    """The first turn whose request may include it."""


class PrefixBreak(Struct, frozen=True):
    """The reason why the next request begins differently from the last."""

    before: str
    """Provider and model of the last request."""
    reason: PrefixReason


class PromptDigests(Struct, frozen=True):
    """Digests of the prompt."""

    digest: str = ""
    requested: str = ""
    """The digest of the last request."""
    results: tuple[tuple[str, str], ...] = ()
    """Effect and digest of results that the model has not seen."""
    broken: PrefixBreak | None = None
    """The change of the prompt's beginning, until `PromptPrefixChanged` records it."""


class PendingSummary(Struct, frozen=True):
    """A summary whose `ContextCompacted` is not recorded yet."""

    effect: str
    fingerprint: str
    cut: Cut


class ContextUse(Struct, frozen=True):
    """The part of the model's context window that the conversation takes."""

    tokens: int = 0
    """The tokens of the last call and its reply; 0 if unknown, or after a compaction."""
    floor: int = 0
    """The tokens below which there is no compaction: the last one failed here, or left so many."""
    last: Literal["", "compacted", "failed"] = ""
    """The compaction since the last reply of a turn."""
    summary: PendingSummary | None = None


class TreePlace(Struct, frozen=True):
    """The session's place in its tree."""

    parent: str | None = None
    root: str | None = None
    """The topmost session of the tree; None without a parent."""
    depth: int = 0
    allowances: tuple[Allowance, ...] = ()
    """The limits of its ancestors, nearest first."""
    call: ChildCall | None = None
    """The call of its parent that started it."""


ROOT = TreePlace()
"""For a session started by a person only."""


class Setup(Struct, frozen=True):
    """How the session was started."""

    agent: AgentSpec
    open: bool
    attached: bool
    tools: dict[str, ToolSpec]
    limited: bool = False
    """Whether a limit of cost or tokens applies up to the root, so that the ledger is asked."""
    asked_by: str = ""
    """The person who started the session, if known."""
    standing: tuple[StandingGrant, ...] = ()
    """The grants for the rest of the session."""
    waived: tuple[str, ...] = ()
    """The secrets that people waived."""
    first_turn: int = 0
    """The turn before its first: a fork continues the count."""
    family: TreePlace = ROOT


class OpenChild(Struct, frozen=True):
    """A child whose end the session has not read."""

    stream: str
    effect: str = ""
    """The call that started it; empty: a program did."""
    mode: Mode = "sync"
    deadline_at: datetime | None = None
    """The end of the wait for the child; None: the session does not wait."""
    stopping: bool = False
    """Whether the child was asked to stop."""
    overdue: bool = False
    """Whether the child's deadline has passed."""
    waited: float = 0.0
    """Seconds for which its waits for people moved the deadline."""
    gone: bool = False
    """Whether the child did not end after a stop."""
    leave: bool = False
    """Whether the child is not stopped at its deadline."""
    paused: bool = False
    """Whether the child waits for a person who resumes it."""

    @property
    def given_up(self) -> bool:
        """Whether its call no longer waits for it."""
        return self.gone or self.left

    @property
    def left(self) -> bool:
        """Whether the child continues on its own, since it did not end in time."""
        return self.leave and self.overdue


class RunState(Struct, frozen=True):
    """The run's place in the queue of its blueprint."""

    blueprint: str
    queue_seconds: float
    until: datetime | None = None
    """The end of the wait for a runner; None: the run has one, or no host has looked for one."""
    runner: str = ""
    """The incarnation that claimed the run."""
    admitted: bool = False
    """Whether the run is admitted as one of those that may run at a time."""
    max_running: int = 0
    """The limit for which the run waits to be admitted; 0: it does not wait."""


class SessionHold(Struct, frozen=True):
    """Why the session is paused."""

    cause: Cause


class Wait(Struct, frozen=True):
    """The reason and end of the wait, as recorded."""

    kind: WaitKind
    cause: Cause
    deadline_at: datetime | None = None
    exhausted: bool = False

    @property
    def raisable(self) -> str:
        """The limit to raise before it can continue; empty without one."""
        return self.cause.limit if self.is_pause else ""

    @property
    def is_pause(self) -> bool:
        """See `is_pause`."""
        return is_pause(self.kind, exhausted=self.exhausted)


class Stop(Struct, frozen=True):
    """The request to end the session."""

    by: str
    code: StopCode | FailCode
    """The code of a failure, with which the session ends as failed."""
    reason: str = ""
    """The person's text."""
    approval: str = ""
    """The approval that nobody decided."""


UNMARKED = PromptDigests()


class SessionState(Struct, frozen=True):
    """The folded state of one session."""

    stream: str = ""
    status: Status = Status.CREATED
    setup: Setup | None = None
    turn: Turn = Turn()
    mail: tuple[PendingMessage, ...] = ()
    prompt_digests: PromptDigests = UNMARKED
    limit_state: LimitState = LimitState()
    inbox_read: int = 0
    hold: SessionHold | None = None
    """Whether a person has to resume the session; no effect starts."""
    waiting: Wait | None = None
    stop: Stop | None = None
    takeovers: int = 0
    """The hosts that died since the last finished effect, while they ran a call of the session."""
    account: BudgetAccount = BudgetAccount()
    used: Used = Used()
    partial: bool = False
    """Whether a tool that is not critical failed since the start or the last idle time."""
    context: ContextUse = ContextUse()
    chosen: ModelChoice | None = None
    """The model that a person chose, until the session takes it."""
    degraded: tuple[tuple[str, str, str], ...] = ()
    """Capability, provider and model of each recorded `CapabilityDegraded`."""
    children: tuple[OpenChild, ...] = ()
    ended: tuple[ChildEnded, ...] = ()
    """Messages that close delegated calls, in the next facts."""
    results: Mapping[str, str] = {}
    """By stream, the ends of children of the mode `async_poll`, as texts for the model."""
    progress: Progress | None = None
    """The progress of its plan; None: the session has a model."""
    side_effects: bool = False
    """Whether a tool that is not read-only was started in the session or below it."""
    run: RunState | None = None
    """The run's state; None: the session was not started from a blueprint."""
    schedule: Schedule | None = None
    """When its work starts; None: the work has started."""

    @property
    def queued(self) -> bool:
        """Whether the session is a run that waits for a runner to claim it."""
        return self.run is not None and not self.run.runner and self.schedule is None

    @property
    def unstarted(self) -> bool:
        """Whether the session waits for its time, or to be claimed; no effect starts meanwhile."""
        return self.schedule is not None or (self.run is not None and not self.run.runner)

    @property
    def finished(self) -> bool:
        """Whether the outcome is final (I6)."""
        return self.status in TERMINAL

    @property
    def inbox_seen(self) -> int:
        """The inbox version that was read; the first message is the start request."""
        return max(self.inbox_read, 1)

    @property
    def poisoned(self) -> bool:
        """Whether so many hosts died of the session that a person has to resume it."""
        return self.takeovers >= MAX_TAKEOVERS and self.hold is not None

    @property
    def blocked_by_breaker(self) -> tuple[BreakerWait, ...]:
        """The effects that breakers block."""
        model = self.turn.model
        kept = [call.blocked_by_breaker for call in self.turn.awake if call.blocked_by_breaker]
        return (
            (model.blocked_by_breaker, *kept)
            if model is not None and model.blocked_by_breaker
            else tuple(kept)
        )

    @property
    def limited(self) -> bool:
        """Whether the session asks the ledger before a model call."""
        return self.setup is not None and self.setup.limited

    @property
    def agent(self) -> AgentSpec:
        """The recorded agent."""
        assert self.setup is not None, "a session that was not started has no agent"
        return self.setup.agent

    @property
    def open_calls(self) -> tuple[Call, ...]:
        """The calls of this turn without an outcome."""
        # A list: a generator takes twice as long, and every rule calls this.
        return tuple([call for call in self.turn.calls if call.phase != "closed"])

    @property
    def questions(self) -> list[str]:
        """The open approvals."""
        return [call.approval.id for call in self.turn.awake if call.approval and call.asking]

    def call(self, effect: str) -> Call | None:
        """Return the call of that effect in this turn."""
        place = self.turn.place(effect)
        return None if place is None else self.turn.calls[place]

    def call_of_approval(self, approval: str) -> Call | None:
        """Return the call of an open or granted approval."""
        return next(
            (c for c in self.turn.calls if c.approval is not None and c.approval.id == approval),
            None,
        )

    @property
    def steered(self) -> bool:
        """Whether a steering message waits, which ends the turn's calls."""
        for mail in self.mail:
            if mail.lane == "steer":
                return True
        return False


def session_of(stream: str) -> SessionState:
    """Return the state of a session before its first fact."""
    return SessionState(stream=stream)
