"""The status line: the effects in flight in a session, folded from its facts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cueline.console.event_renderer import EventRenderer
from cueline.console.session_lines import Attempts
from cueline.console.text import arguments, count, duration, money, one_line
from cueline.events.fact import Fact
from cueline.events.inbox import PauseAsked, ResumeAsked
from cueline.events.message import Usage
from cueline.events.session import (
    ApprovalResolved,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    SessionCompleted,
    SessionContinued,
    SessionFailed,
    SessionForked,
    SessionIdle,
    SessionStarted,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    ToolFailed,
    ToolInDoubt,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
)
from cueline.events.stream import is_compaction, is_model_call

_WIDTH = 60
_GOES_ON = ModelRequested | ToolStarted | SessionContinued | SessionTakenOver | ApprovalResolved
_WAITS = {
    "time": "its time",
    "child": "a child session",
    "runner": "a runner",
    "sandbox": "a sandbox",
    "message": "a message",
}


@dataclass(frozen=True, slots=True)
class InFlight:
    """An effect in flight, or a wait."""

    what: str
    since: datetime
    until: datetime | None = None
    """The time of its end, for a countdown."""

    def text(self, now: datetime) -> str:
        """Return its text, with the passed time or the time left."""
        if self.until is not None:
            return f"{self.what} in {duration(max((self.until - now).total_seconds(), 0))}"
        return f"{self.what} · {duration(max((now - self.since).total_seconds(), 0))}"


class StatusLine:
    """Gets each fact after the *telling* renderer."""

    def __init__(
        self,
        telling: EventRenderer,
        ways: Sequence[str] = ("Ctrl-C pauses", "Ctrl-C leaves at once"),
    ) -> None:
        """*ways* are the hints for a person: before and after a request to pause."""
        self._telling = telling
        self._attempts = Attempts()
        self._calls: dict[str, InFlight] = {}
        """The effects in flight by name, oldest first."""
        self._wait: InFlight | None = None
        self._rests = True
        self._pausing = False
        self._ways = ways

    def learn(self, fact: Fact, at: datetime) -> None:
        """Take in a fact."""
        self._attempts.learn(fact)
        if isinstance(fact, _GOES_ON):
            self._wait, self._rests = None, False
        match fact:
            case MessageReceived(message=PauseAsked()):
                self._pausing = True
            case MessageReceived(message=ResumeAsked()):
                self._pausing = False
            case ModelRequested(effect=effect):
                summarises = " summarises" * is_compaction(effect)
                self._calls[effect] = InFlight(f"{self._attempts.model}{summarises}", at)
            case ToolStarted(effect=effect):
                self._calls[effect] = InFlight(self._call(effect), at)
            case (
                ModelFailed(effect=effect, retry_at=datetime() as due)
                | ToolFailed(effect=effect, retry_at=datetime() as due)
            ):
                call = self._telling.calls.get(effect)
                name = self._attempts.model if is_model_call(effect) else self._call(effect)
                retry = f"{self._attempts.retry(effect, call)} of {name}"
                self._calls[effect] = InFlight(retry, at, due)
            case ModelReplied() | ModelFailed():
                self._calls.pop(fact.effect, None)
            case ToolReturned() | ToolFailed() | ToolSkipped() | ToolInDoubt():
                self._calls.pop(fact.effect, None)
            case _:
                self._stand(fact, at)

    def _stand(self, fact: Fact, at: datetime) -> None:
        """Apply a fact about the session as a whole."""
        match fact:
            case SessionTakenOver(lost_attempts=lost):
                for attempt in lost:
                    self._calls.pop(attempt.effect, None)
            case SessionWaiting():
                self._wait, self._rests = _waiting(fact, at), fact.kind == "operator"
            case SessionStarted() | SessionForked():
                self._calls.clear()
                self._wait, self._rests = InFlight("starting", at), False
            case SessionIdle() | SessionCompleted() | SessionFailed() | SessionStopped():
                self._calls.clear()
                self._wait, self._rests = None, True
            case _:
                pass

    def text(self, now: datetime) -> str:
        """Return the line at *now*: effects in flight and usage; empty while the session rests."""
        if self._rests and not self._calls:
            return ""
        first = next(iter(self._calls.values()), self._wait)
        others = len(self._calls) - 1
        tally = self._telling.tally
        pieces = [
            "working" if first is None else first.text(now),
            f"and {count(others, 'more call')}" if others > 0 else "",
            _tokens(tally.usage) if tally.usage.total else "",
            money(tally.cost, estimated=tally.estimated > 0) if tally.cost else "",
            self._ways[self._pausing] if self._ways else "",
        ]
        return " · ".join(filter(None, pieces))

    def _call(self, effect: str) -> str:
        call = self._telling.calls.get(effect)
        if call is None:
            return effect
        return f"{one_line(call.name, 40)} {arguments(call.arguments, _WIDTH)}".rstrip()


def _tokens(usage: Usage) -> str:
    cached = f" ({usage.cache_read:,} cached)" if usage.cache_read else ""
    return f"{usage.total:,} tokens{cached}"


def _waiting(fact: SessionWaiting, at: datetime) -> InFlight | None:
    match fact.kind:
        case "operator":
            return None
        case "approval":
            return InFlight("waiting for a person's answer", at)
        case "breaker":
            name = one_line(fact.cause.dependency, 40)
            return InFlight(f"breaker of {name} open, tried again", at, fact.deadline_at)
        case "retry":
            return InFlight("retry", at, fact.deadline_at)
        case "budget":
            return InFlight("waiting for room in the budget", at)
        case kind:
            return InFlight(f"waiting for {_WAITS[kind]}", at)
