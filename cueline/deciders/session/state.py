"""The state of a session: open effects, counters and digests, no message bodies.

The only content is the ends of children that the model has not requested yet.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

from msgspec import Struct

from cueline.deciders.plan_progress import Progress
from cueline.deciders.session.limit_state import BudgetAccount, LimitState, Used
from cueline.deciders.session.turn import BreakerWait, Call, Turn
from cueline.deciders.standing_grant import StandingGrant
from cueline.events.agent import AgentSpec, ModelChoice, ToolSpec
from cueline.events.budget import Allowance
from cueline.events.codes import Cause
from cueline.events.inbox import ChildEnded, Lane
from cueline.events.session import Cut, PrefixReason, StopCode, WaitKind
from cueline.events.start import ChildCall, Mode, Schedule
from cueline.events.status import TERMINAL, Status, is_pause

STATE_FOLD: Final = 6
"""The version of this fold; raised when a fact gives another state than in the earlier version."""
FailCode = Literal["approval_expired", "no_matching_runner", "runner_disconnected"]
"""The codes of failures that end a session only after its effects in flight have ended."""
MAX_TAKEOVERS = 3
"""The number of host deaths, while a call ran, after which a person has to resume the session."""


LIVE = frozenset(Status) - TERMINAL - {Status.CREATED}
"""The statuses of a started, unfinished session; other statuses have no due effects."""


class PendingMessage(Struct, frozen=True):
    """A message that the model has not seen."""

    inbox_version: int
    lane: Lane
    fingerprints: tuple[str, ...]
    turn: int = 0
    """The first turn whose request may include the message."""


class PrefixBreak(Struct, frozen=True):
    """The reason why the next request begins differently from the previous request."""

    before: str
    """The provider and model of the previous request."""
    reason: PrefixReason


class PromptDigests(Struct, frozen=True):
    """The digests of the prompt and of its parts."""

    digest: str = ""
    requested: str = ""
    """The digest of the last request."""
    results: tuple[tuple[str, str], ...] = ()
    """The effect and digest of each result that the model has not seen."""
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
    """The tokens below which no compaction starts, since the last one failed or left so many."""
    last: Literal["", "compacted", "failed"] = ""
    """The outcome of a compaction since the last reply of a turn; empty: no compaction."""
    summary: PendingSummary | None = None


class TreePlace(Struct, frozen=True):
    """The session's place in its tree."""

    parent: str | None = None
    root: str | None = None
    """The topmost session of the tree; None without a parent."""
    depth: int = 0
    allowances: tuple[Allowance, ...] = ()
    """The limits of the session's ancestors, nearest first."""
    call: ChildCall | None = None
    """The parent's call that started the session; None: no call started it."""


ROOT = TreePlace()
"""The place of a session without a parent."""


class Setup(Struct, frozen=True):
    """How the session was started."""

    agent: AgentSpec
    open: bool
    attached: bool
    tools: dict[str, ToolSpec]
    limited: bool = False
    """Whether the session or an ancestor has a limit of cost or tokens, kept by the ledger."""
    asked_by: str = ""
    """The person who started the session; empty: unknown."""
    standing: tuple[StandingGrant, ...] = ()
    """The grants for the rest of the session."""
    waived: tuple[str, ...] = ()
    """The secrets that people waived."""
    traceparent: str = ""
    """The trace of the program that started the tree of sessions; empty: unknown."""
    first_turn: int = 0
    """The number of turns before the session's first turn: a fork continues the count."""
    family: TreePlace = ROOT


class OpenChild(Struct, frozen=True):
    """A child whose end the session has not read."""

    stream: str
    effect: str = ""
    """The call that started the child; empty: a program started it."""
    mode: Mode = "sync"
    deadline_at: datetime | None = None
    """The end of the wait for the child; None: the session does not wait."""
    stopping: bool = False
    """Whether the child was requested to stop."""
    overdue: bool = False
    """Whether the child's deadline has passed."""
    waited: float = 0.0
    """The seconds by which the child's waits for people moved the deadline."""
    gone: bool = False
    """Whether the child did not end after a stop."""
    leave: bool = False
    """Whether the child is not stopped at its deadline."""
    paused: bool = False
    """Whether the child waits for a person who resumes it."""

    @property
    def given_up(self) -> bool:
        """Whether the call no longer waits for the child."""
        return self.gone or self.left

    @property
    def left(self) -> bool:
        """Whether the child continues without its call, because it did not end in time."""
        return self.leave and self.overdue


class RunState(Struct, frozen=True):
    """The run's place in the queue of its blueprint."""

    blueprint: str
    queue_seconds: float
    until: datetime | None = None
    """The end of the wait for a runner; None: the wait is over, or has not begun."""
    runner: str = ""
    """The incarnation that claimed the run."""
    admitted: bool = False
    """Whether the run is admitted within the blueprint's limit of concurrent runs."""
    max_running: int = 0
    """The limit for which the run waits to be admitted; 0: it does not wait."""


class SandboxUse(Struct, frozen=True):
    """The session's sandbox."""

    number: int = 0
    """The number of the last sandbox; 0: the session had none."""
    place: str = ""
    attached: bool = False
    """Whether it is started for the session; after a wait it may be stopped."""


NO_SANDBOX = SandboxUse()


class SessionHold(Struct, frozen=True):
    """Why the session is paused."""

    cause: Cause


class Wait(Struct, frozen=True):
    """The recorded reason and end of a session's wait."""

    kind: WaitKind
    cause: Cause
    deadline_at: datetime | None = None
    exhausted: bool = False

    @property
    def raisable(self) -> str:
        """The limit to raise before the session can continue; empty if no limit stops it."""
        return self.cause.limit if self.is_pause else ""

    @property
    def is_pause(self) -> bool:
        """Whether only a person can continue the session; see `is_pause`."""
        return is_pause(self.kind, exhausted=self.exhausted)


class Stop(Struct, frozen=True):
    """The request to end the session."""

    by: str
    code: StopCode | FailCode
    """The reason of the end; with the code of a failure, the session ends as failed."""
    reason: str = ""
    """The person's text."""
    approval: str = ""
    """The approval that nobody decided in time; empty: none."""


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
    """The pause that only a person can end, and during which no effect starts; None: no pause."""
    waiting: Wait | None = None
    stop: Stop | None = None
    takeovers: int = 0
    """The number of hosts that died while a call ran, since the last finished effect."""
    account: BudgetAccount = BudgetAccount()
    used: Used = Used()
    partial: bool = False
    """Whether a tool that is not critical failed since the start or the last idle time."""
    context: ContextUse = ContextUse()
    chosen: ModelChoice | None = None
    """The model that a person chose, until the session uses it."""
    degraded: tuple[tuple[str, str, str], ...] = ()
    """The capability, provider and model of each recorded `CapabilityDegraded`."""
    children: tuple[OpenChild, ...] = ()
    ended: tuple[ChildEnded, ...] = ()
    """The messages that close delegated calls with the next facts."""
    results: Mapping[str, str] = {}
    """The ends of children of the mode `async_poll`, as texts for the model, by stream."""
    progress: Progress | None = None
    """The progress of the session's plan; None: the session has a model."""
    side_effects: bool = False
    """Whether a tool that is not read-only started in the session or in a descendant."""
    run: RunState | None = None
    """The run's state; None: the session was not started from a blueprint."""
    schedule: Schedule | None = None
    """The schedule of the session's work; None: the work has started."""
    sandbox: SandboxUse = NO_SANDBOX

    @property
    def queued(self) -> bool:
        """Whether the session is a run that waits for a runner to claim it."""
        return self.run is not None and not self.run.runner and self.schedule is None

    @property
    def unstarted(self) -> bool:
        """Whether the session waits for its time or for a runner's claim, without effects."""
        return self.schedule is not None or (self.run is not None and not self.run.runner)

    @property
    def finished(self) -> bool:
        """Whether the outcome is final (I6)."""
        return self.status in TERMINAL

    @property
    def inbox_seen(self) -> int:
        """The version of the last read inbox message; version 1 is the start request."""
        return max(self.inbox_read, 1)

    @property
    def poisoned(self) -> bool:
        """Whether so many hosts died of the session's calls that a person has to resume it."""
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
        """Whether the session needs a reservation of the ledger before a model call."""
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
        """Return the call *effect* of this turn; None without such a call."""
        place = self.turn.place(effect)
        return None if place is None else self.turn.calls[place]

    def call_of_approval(self, approval: str) -> Call | None:
        """Return the call of the open or granted *approval*; None without such a call."""
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
