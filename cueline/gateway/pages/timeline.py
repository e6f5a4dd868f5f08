"""Draws what happened when: turns, calls, waits, approvals and children, as an SVG."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal

from markupsafe import Markup

from cueline.console.text import duration, money
from cueline.events.event_text import cause_text
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    ModelReplied,
    SessionContinued,
    SessionEvent,
    SessionTakenOver,
    SessionWaiting,
)
from cueline.events.store import RecordedEvent
from cueline.events.stream import is_model_call
from cueline.gateway.pages.conversation import Told
from cueline.projections.calls import changes_of

Kind = Literal["model", "tool", "wait", "child", "fault"]
_ROW: Final = 20
_WIDTH: Final = 1000
_LEFT: Final = 150
_APART: Final = 90
"""The least distance of two marks."""
_LONGEST: Final = 22
"""The most characters of a name."""
_FAULTS: Final = frozenset({"failed", "retry", "in_doubt", "lost"})
MOST: Final = 400
"""The most bars of a timeline; a longer one begins later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Something that took time in a session."""

    kind: Kind
    name: str
    says: str
    """What the bar was, with its outcome, in words."""
    version: int
    began: datetime
    ended: datetime | None = None
    """The end; None if it goes on."""
    cost: Decimal = Decimal(0)


def bars(events: Iterable[Told]) -> list[Bar]:
    """Return the bars of the events of a session, in the order of their beginnings."""
    drawn = _Bars()
    for recorded, fact in events:
        drawn.take_calls(recorded, fact)
        drawn.take_waits(recorded, fact)
    return drawn.done


class _Bars:
    """The bars so far; those that go on have no end."""

    def __init__(self) -> None:
        self.done: list[Bar] = []
        self._open: dict[str, int] = {}
        """The places of the bars that go on."""
        self._names: dict[str, str] = {}
        """The names of the called tools, by effect."""

    def take_calls(self, recorded: RecordedEvent, fact: SessionEvent | None) -> None:
        moment = recorded.recorded_at
        for change in changes_of(fact):
            effect = change.effect
            self._names[effect] = change.tool or self._names.get(effect, effect)
            if change.status == "started":
                model = is_model_call(effect)
                kind: Kind = "model" if model else "child" if change.child else "tool"
                name = f"turn {effect.partition('.')[0]}" if model else self._names[effect]
                again = f"{name}, attempt {change.attempt}" if change.attempt > 1 else name
                self._begin(effect, kind, name, again, recorded)
            elif change.status in _FAULTS:
                why = change.kind or change.status.replace("_", " ")
                self._end(effect, moment, why, kind="fault")
            elif change.status:
                cost = fact.cost.usd if isinstance(fact, ModelReplied) and fact.cost else Decimal(0)
                said = f"{change.status} · {money(cost)}" if cost else change.status
                self._end(effect, moment, said, cost=cost)

    def take_waits(self, recorded: RecordedEvent, fact: SessionEvent | None) -> None:
        moment = recorded.recorded_at
        match fact:
            case SessionWaiting(cause=cause):
                self._begin("wait", "wait", "wait", cause_text(cause), recorded)
            case SessionContinued():
                self._end("wait", moment, "")
            case ApprovalRequested(approval=approval, effect=effect):
                name = f"approval: {self._names.get(effect, effect)}"
                self._begin(approval, "wait", name, name, recorded)
            case ApprovalResolved(approval=approval, verdict=verdict, by=by):
                self._end(approval, moment, f"{verdict} by {by}" if by else verdict)
            case SessionTakenOver():
                self._begin("over", "fault", "taken over", "another process took over", recorded)
                self._end("over", moment, "")
            case _:
                pass

    def _begin(
        self,
        key: str,
        kind: Kind,
        name: str,
        says: str,
        recorded: RecordedEvent,
    ) -> None:
        moment = recorded.recorded_at
        self._end(key, moment, "ended")
        self._open[key] = len(self.done)
        bar = Bar(kind=kind, name=name, says=says, version=recorded.version, began=moment)
        self.done.append(bar)

    def _end(self, key: str, moment: datetime, said: str, **more: Any) -> None:
        if (place := self._open.pop(key, None)) is not None:
            before = self.done[place]
            says = f"{before.says} · {said}" if said else before.says
            self.done[place] = replace(before, ended=moment, says=says, **more)


class _Scale:
    """The places of times: time in which only waits go on is shortened."""

    def __init__(self, drawn: Sequence[Bar], now: datetime) -> None:
        self.first = min(bar.began for bar in drawn)
        self.spans: list[tuple[float, float]] = []
        """The times in which something is done, in seconds from the first on, in order."""
        for bar in sorted(drawn, key=lambda each: each.began):
            if bar.kind != "wait":
                begins, ends = self._seconds(bar.began), self._seconds(bar.ended or now)
                if self.spans and begins <= self.spans[-1][1]:
                    self.spans[-1] = self.spans[-1][0], max(ends, self.spans[-1][1])
                else:
                    self.spans.append((begins, ends))
        done = sum(ends - begins for begins, ends in self.spans)
        self._most = max(0.1 * done, 0.01)
        """The most seconds that a wait takes in the picture."""
        self._end = max(self._seconds(bar.ended or now) for bar in drawn)
        self._all = self._place(self._end) or 1.0

    def x(self, moment: datetime) -> float:
        """Return the place of a time."""
        return _LEFT + (_WIDTH - _LEFT) * self._place(self._seconds(moment)) / self._all

    def marks(self) -> Iterator[tuple[float, str]]:
        """Yield places with their times, not too close to one another."""
        before = -float(_APART)
        for begins, _ in self.spans:
            x = _LEFT + (_WIDTH - _LEFT) * self._place(begins) / self._all
            if x - before >= _APART and x < _WIDTH - _APART / 2:
                before = x
                yield x, duration(begins)

    def _seconds(self, moment: datetime) -> float:
        return (moment - self.first).total_seconds()

    def _place(self, seconds: float) -> float:
        place, at = 0.0, 0.0
        for begins, ends in [*self.spans, (self._end, self._end)]:
            if (gap := begins - at) > 0:  # in it, time goes evenly, but perhaps faster
                place += min(gap, self._most) * (min(seconds, begins) - at) / gap
            if seconds <= begins:
                return place
            place += min(seconds, ends) - begins
            if seconds <= ends:
                return place
            at = ends
        return place


def timeline(drawn: Sequence[Bar], now: datetime, link: str, *, by_cost: bool = False) -> Markup:
    """Return the SVG of the last `MOST` bars; each is a link to its event.

    The link is *link* and the version; *by_cost*: dearer bars are darker.
    """
    if not drawn:
        return Markup()
    drawn = drawn[-MOST:]
    scale = _Scale(drawn, now)
    most = max(bar.cost for bar in drawn) or Decimal(1)
    rows = Markup().join(
        _bar(bar, _ROW * number, scale, now, link, float(bar.cost / most) if by_cost else 1.0)
        for number, bar in enumerate(drawn)
    )
    height = _ROW * len(drawn) + 30
    marks = Markup().join(_MARK.format(x=x, height=height, said=said) for x, said in scale.marks())
    return _PICTURE.format(width=_WIDTH, height=height, marks=marks, rows=rows)


def _bar(  # noqa: PLR0917
    bar: Bar, y: int, scale: _Scale, now: datetime, link: str, share: float
) -> Markup:
    x = min(scale.x(bar.began), _WIDTH - 3.0)
    took = duration(((bar.ended or now) - bar.began).total_seconds())
    return _BAR.format(
        kind=bar.kind,
        link=link,
        version=bar.version,
        said=f"{bar.says} · {took}{'' if bar.ended else ' so far'}",
        name=bar.name if len(bar.name) <= _LONGEST else f"{bar.name[: _LONGEST - 1]}…",
        x=x,
        y=y + 24,
        text=y + 34,
        width=max(3.0, scale.x(bar.ended or now) - x),
        share=0.2 + 0.8 * share,
    )


_MARK: Final = Markup(
    '<line class="grid" x1="{x:.0f}" x2="{x:.0f}" y1="16" y2="{height}"/>'
    '<text x="{x:.0f}" y="12">{said}</text>'
)
_BAR: Final = Markup(
    '<a class="bar {kind}" href="{link}{version}"><title>{said}</title>'
    '<text x="4" y="{text}">{name}</text><rect x="{x:.1f}" y="{y}" width="{width:.1f}" '
    'height="12" rx="2" fill-opacity="{share:.2f}"/></a>'
)
_PICTURE: Final = Markup(
    '<svg viewBox="0 0 {width} {height}" role="group" aria-label="Timeline">{marks}{rows}</svg>'
)
