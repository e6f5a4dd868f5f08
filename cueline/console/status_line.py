"""The status line: the effects in flight in a session, folded from its facts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from cueline.client.live_text import ToolProgress
from cueline.console.event_renderer import EventRenderer
from cueline.console.text import arguments, count, duration, money, one_line
from cueline.events.fact import Fact
from cueline.events.inbox import PauseAsked, ResumeAsked
from cueline.events.message import Usage
from cueline.events.session import MessageReceived
from cueline.events.stream import is_compaction, is_model_call
from cueline.projections.calls import OVER, CallChange, changes_of
from cueline.projections.summary import Summary

_WIDTH = 60
_LEFT = OVER | {"in_doubt", "lost"}
"""The statuses of a call that is no longer in flight."""
_WAITS = {
    "operator": "waiting for a person",
    "approval": "waiting for a person's answer",
    "retry": "retry",
    "budget": "waiting for room in the budget",
    "time": "waiting for its time",
    "child": "waiting for a child session",
    "task": "waiting for a task of a server",
    "runner": "waiting for a runner",
    "sandbox": "waiting for a sandbox",
    "message": "waiting for a message",
}


@dataclass(frozen=True, slots=True)
class InFlight:
    """An effect in flight, or a wait."""

    what: str
    since: datetime
    until: datetime | None = None
    """The time at which the wait ends, for a countdown; None: the elapsed time is shown."""
    done: str = ""
    """What a call says of its progress."""

    def text(self, now: datetime) -> str:
        """Return the text of the effect, with the elapsed time or the remaining time."""
        if self.until is not None:
            return f"{self.what} in {duration(max((self.until - now).total_seconds(), 0))}"
        done = f" · {self.done}" if self.done else ""
        return f"{self.what}{done} · {duration(max((now - self.since).total_seconds(), 0))}"


class StatusLine:
    """The status line of a session; it must get each fact after the renderer *telling*."""

    def __init__(
        self,
        telling: EventRenderer,
        ways: Sequence[str] = ("Ctrl-C pauses", "Ctrl-C leaves at once"),
    ) -> None:
        """Set the hints for the person, *ways*: before and after a request to pause."""
        self._telling = telling
        self._calls: dict[str, InFlight] = {}
        """The effects in flight by name, oldest first."""
        self._done: dict[str, str] = {}
        """What running calls say of their progress, by name; it may come before their start."""
        self._pausing = False
        self._ways = ways

    def learn(self, fact: Fact, at: datetime) -> None:
        """Apply a fact to the effects in flight."""
        match fact:
            case MessageReceived(message=PauseAsked() | ResumeAsked() as message):
                self._pausing = isinstance(message, PauseAsked)
        for change in changes_of(fact):
            self._take(change, at)
        if self._telling.tally.activity in ("starting", "idle", "over"):
            self._calls.clear()
            self._done.clear()

    def show_progress(self, progress: ToolProgress) -> None:
        """Show the progress of a running call, while it runs."""
        share = "" if progress.share is None else f"{progress.share:.0%}"
        self._done[progress.effect] = one_line(f"{share} {progress.text}".strip(), _WIDTH)

    def _take(self, change: CallChange, at: datetime) -> None:
        effect, attempts = change.effect, self._telling.attempts
        of_model = is_model_call(effect)
        if change.retry_at is not None:
            retry = attempts.retry(effect, self._telling.calls.get(effect))
            name = attempts.model if of_model else self._call(effect)
            self._calls[effect] = InFlight(f"{retry} of {name}", at, change.retry_at)
        elif change.status == "requested" and of_model:
            summarises = " summarises" * is_compaction(effect)
            self._calls[effect] = InFlight(f"{attempts.model}{summarises}", at)
        elif change.status == "started" and change.runner:
            self._calls[effect] = InFlight(self._call(effect), at)
        elif change.status in _LEFT:
            self._calls.pop(effect, None)
            self._done.pop(effect, None)

    def text(self, now: datetime) -> str:
        """Return the line at *now*: effects in flight and usage; empty while the session rests."""
        tally = self._telling.tally
        rests = tally.wait is not None and tally.wait.kind == "operator"
        if not self._calls and (rests or tally.activity in ("", "idle", "over")):
            return ""
        first = next(
            (replace(c, done=self._done.get(e, "")) for e, c in self._calls.items()),
            _wait_of(tally),
        )
        others = len(self._calls) - 1
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


def _wait_of(tally: Summary) -> InFlight | None:
    """Return what the session waits for, while no call is in flight."""
    wait, at = tally.wait, tally.active_since
    if at is None or (wait is None and tally.activity != "starting"):
        return None
    if wait is None:
        return InFlight("starting", at)
    if wait.kind == "breaker":
        name = one_line(wait.cause.dependency, 40)
        return InFlight(f"breaker of {name} open, tried again", at, wait.deadline_at)
    return InFlight(_WAITS[wait.kind], at, wait.deadline_at if wait.kind == "retry" else None)
