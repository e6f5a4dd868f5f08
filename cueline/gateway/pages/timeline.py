"""Draws what happened when: turns, calls, waits, approvals and children, as an SVG."""

from collections.abc import Iterable, Sequence
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


def timeline(drawn: Sequence[Bar], now: datetime, session: str, *, by_cost: bool = False) -> Markup:
    """Return the SVG of the last `MOST` bars; each is a link to its event.

    *session* is the path of the page of the session; *by_cost*: dearer bars are darker.
    """
    if not drawn:
        return Markup()
    drawn = drawn[-MOST:]
    first = min(bar.began for bar in drawn)
    last = max(bar.ended or now for bar in drawn)
    span = max((last - first).total_seconds(), 0.001)
    most = max((bar.cost for bar in drawn), default=Decimal(0)) or Decimal(1)
    rows = []
    for number, bar in enumerate(drawn):
        x = _LEFT + (_WIDTH - _LEFT) * (bar.began - first).total_seconds() / span
        took = ((bar.ended or now) - bar.began).total_seconds()
        width = max(3.0, (_WIDTH - _LEFT) * took / span)
        share = f"{0.2 + 0.8 * float(bar.cost / most):.2f}" if by_cost else "1"
        said = f"{bar.says} · {duration(took)}{'' if bar.ended else ' so far'}"
        rows.append(
            Markup(
                '<a class="bar {kind}" href="{session}/versions/{version}">'
                '<title>{said}</title><text x="4" y="{text}">{name}</text>'
                '<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="12" rx="2" '
                'fill-opacity="{share}"/></a>'
            ).format(
                kind=bar.kind,
                session=session,
                version=bar.version,
                said=said,
                name=bar.name if len(bar.name) <= 22 else f"{bar.name[:21]}…",  # noqa: PLR2004
                x=min(x, _WIDTH - 3),
                y=_ROW * number + 24,
                text=_ROW * number + 34,
                width=min(width, _WIDTH - x if x < _WIDTH - 3 else 3),
                share=share,
            )
        )
    height = _ROW * len(drawn) + 30
    marks = Markup().join(
        Markup(
            '<line class="grid" x1="{x}" x2="{x}" y1="16" y2="{height}"/>'
            '<text x="{at}" y="12" text-anchor="{anchor}">{said}</text>'
        ).format(
            x=_LEFT + (_WIDTH - _LEFT) * part / 4,
            at=_LEFT + (_WIDTH - _LEFT) * part / 4,
            anchor="end" if part == 4 else "start",  # noqa: PLR2004
            height=height,
            said=duration(span * part / 4),
        )
        for part in range(5)
    )
    return Markup(
        '<svg viewBox="0 0 {width} {height}" role="group" aria-label="Timeline">{marks}{rows}</svg>'
    ).format(width=_WIDTH, height=height, marks=marks, rows=Markup().join(rows))
