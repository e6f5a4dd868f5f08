"""Renders the facts of a session as lines for a terminal."""

from collections.abc import Iterator
from datetime import datetime

from cueline.console.checklist import checklist, progress_of
from cueline.console.question import ANSWERED
from cueline.console.session_lines import (
    Attempts,
    course_lines,
    message_lines,
    paragraph,
    session_head,
    step_line,
)
from cueline.console.summary import NAMES, Budget, amount, price
from cueline.console.text import (
    WIDTH,
    Line,
    Tone,
    arguments,
    capped,
    date_time,
    duration,
    money,
    one_line,
    tokens_in,
    visible,
)
from cueline.events.event_text import (
    QUESTIONS,
    compaction_text,
    degraded_text,
    doubt_text,
    untold_text,
)
from cueline.events.fact import Fact
from cueline.events.input_request import request_text
from cueline.events.message import TextBlock, ThinkingBlock, ToolCall
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    CallDelegated,
    CallsAdded,
    CapabilityDegraded,
    LimitRaised,
    LimitWarned,
    MessageAwaited,
    MessageReceived,
    MessageRefused,
    ModelFailed,
    ModelReplied,
    PeopleNotified,
    ReservationClosed,
    SessionForked,
    SessionStarted,
    ToolAsked,
    ToolDeferred,
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
    calls_of,
)
from cueline.events.store import RecordedEvent
from cueline.events.stream import effect_of, shown
from cueline.projections.summary import Summary

_FILES = 5
RESULT_LINES = 6
"""The number of shown lines of a tool's output, unless all are requested."""
_CUT = {
    "max_tokens": "it has limits.max_output_tokens",
    "model_context_window_exceeded": "the model's context is full",
}
"""The words for a reply that stops in the middle."""
_WITHOUT = "; the work goes on without it"


def not_shown(recorded: RecordedEvent, error: Exception) -> Line:
    """Return the line for an event that cannot be shown."""
    why = one_line(f"{type(error).__name__}: {error}", WIDTH)
    return Line("bad", f"! {recorded.type} is recorded, and cannot be shown: {why}")


class EventRenderer:
    """Renders facts in the order of the log; it stores earlier calls and models for later lines."""

    def __init__(
        self, *, whole_results: bool = False, whole_past: bool = True, thinking: bool = False
    ) -> None:
        self.tally = Summary()
        self.budget = Budget()
        self.calls: dict[str, ToolCall] = {}
        """Every call so far, by effect."""
        self.attempts = Attempts()
        self._whole_results = whole_results
        self._whole_past = whole_past
        """Whether the renderer gets all facts; otherwise it shows no sums."""
        self.thinking = thinking
        """Whether the renderer shows the model's thoughts."""

    def learn(self, fact: Fact, at: datetime) -> None:
        """Apply a fact without rendering it."""
        self.tally = self.tally.after(fact, at)
        self.attempts.learn(fact)
        if isinstance(fact, SessionStarted | SessionForked):
            self.budget.start(fact.agent.limits)
        if isinstance(fact, ReservationClosed):
            self.budget.settle(fact.shares)
        if isinstance(fact, ModelReplied):
            self.calls.update(calls_of(fact))
        if isinstance(fact, CallsAdded):
            # For a reader, the name of a plan's call is its step, which is also its id.
            named = {e: each.model_copy(update={"name": each.id}) for e, each in fact.calls.items()}
            self.calls.update(named)
        if isinstance(fact, ApprovalResolved) and fact.edit is not None:
            effect = effect_of(fact.approval)
            if effect in self.calls:
                changed = {"arguments": fact.edit}
                self.calls[effect] = self.calls[effect].model_copy(update=changed)

    def render(self, recorded: RecordedEvent, fact: Fact) -> list[Line]:
        """Apply a fact, and return its lines; an error in the rendering becomes a line, too."""
        try:
            self.learn(fact, recorded.recorded_at)
            return list(self._lines(fact, recorded.stream))
        except Exception as error:  # noqa: BLE001 - what happens goes on, shown or not
            return [not_shown(recorded, error)]

    def _lines(self, fact: Fact, stream: str) -> Iterator[Line]:
        match fact:
            case SessionStarted() | SessionForked():
                yield from session_head(fact, shown(stream))
            case MessageReceived() | MessageRefused():
                yield from message_lines(fact)
            case ModelReplied() | ModelFailed():
                yield from self._model(fact)
            case (
                CallsAdded()
                | MessageAwaited()
                | ToolStarted()
                | CallDelegated()
                | ToolReturned()
                | ToolFailed()
                | ToolSkipped()
            ):
                yield from self._call(fact)
            case ToolAsked() | ToolDeferred():
                yield Line("note", f"? {self._name(fact.effect)} {_does(fact)}")
            case ToolInDoubt() | ToolReconciled():
                yield from self._doubt(fact)
            case ApprovalRequested() | ApprovalResolved() | PeopleNotified():
                yield from self._approval(fact)
            case LimitWarned() | LimitRaised() | ReservationClosed():
                yield from self._limits(fact)
            case CapabilityDegraded():
                yield Line("note", one_line(degraded_text(fact), WIDTH))
            case _:
                yield from course_lines(fact)

    def _limits(self, fact: LimitWarned | LimitRaised | ReservationClosed) -> Iterator[Line]:
        match fact:
            case LimitWarned(limit=limit, share=share, used=used, of=of):
                told = "; the agent is told to wrap up" if fact.note else ""
                said = f": {amount(limit, used)} of {amount(limit, of)}"
                if limit in ("max_tokens", "max_cost"):
                    said = ""  # perhaps those of a session above
                yield Line("note", f"{share:.0%} of the {NAMES[limit]} used{said}{told}")
            case LimitRaised():
                yield Line("note", f"raised to {self.budget.rise(fact)}")
            case ReservationClosed(outcome="estimated", effect=effect, usd=usd, tokens=tokens):
                cost = f"{money(usd)}, {tokens:,} tokens"
                said = f"nobody knows what {effect} used: counted as all it may have cost, {cost}"
                yield Line("bad", f"! {said}")

    def _model(self, fact: ModelReplied | ModelFailed) -> Iterator[Line]:
        if isinstance(fact, ModelFailed):
            again = self.attempts.next_of(fact, None)
            said = one_line(fact.message, WIDTH)
            cost = f" · {price(fact.cost)}" if fact.cost else ""
            yield Line("bad", f"! the model did not answer ({fact.kind}): {said}{cost}{again}")
            return
        if fact.cut is not None:
            yield Line("note", compaction_text(fact.cut))
        yield from reply_lines(fact, thinking=self.thinking)
        if fact.stop_reason in _CUT:
            yield Line("bad", f"! the answer was cut off: {_CUT[fact.stop_reason]}")
        yield Line("dim", self._cost_line(fact))

    def _cost_line(self, fact: ModelReplied) -> str:
        usage = fact.usage
        used = f"{tokens_in(usage)} + {usage.output:,} out tokens"
        so_far = f", {money(self.tally.cost, estimated=self.tally.estimated > 0)} so far"
        pieces = [
            f"turn {fact.effect.partition('.')[0]}" if fact.cut is None else "summary",
            used if usage.total else "its use was not told",
            f"{price(fact.cost)}{so_far * self._whole_past}",
            duration(fact.seconds),
        ]
        if (miss := self.tally.miss) is not None and miss.tokens:
            usd = f", {money(miss.usd)} more" if miss.usd else ""
            pieces.append(f"{miss.tokens:,} cached tokens were sent anew{usd}")
        if self._whole_past and (share := self.budget.share(self.tally)) is not None:
            pieces.append(f"budget {share:.0%}")
        return "  " + " · ".join(pieces)

    def _call(self, fact: Fact) -> Iterator[Line]:
        match fact:
            case CallsAdded():
                yield from map(step_line, fact.ended)
            case MessageAwaited(effect=effect, name=name, deadline_at=until):
                said = f"waits for the message {one_line(name, WIDTH)} until {date_time(until)}"
                yield Line("doing", f"▸ {effect} {self._name(effect)} {said}")
            case ToolStarted() | CallDelegated() | ToolReturned() | ToolFailed() | ToolSkipped():
                yield from self._tool(fact)

    def _tool(
        self, fact: ToolStarted | CallDelegated | ToolReturned | ToolFailed | ToolSkipped
    ) -> Iterator[Line]:
        call = self.calls.get(fact.effect)
        name = self._name(fact.effect)
        rows = checklist(call)
        match fact:
            case ToolStarted(attempt=attempt):
                given = arguments(call.arguments, WIDTH) if call else ""
                given = progress_of(rows) if rows else given
                again = f" (attempt {attempt})" if attempt > 1 else ""
                yield Line("doing", f"▸ {fact.effect} {name} {given}{again}".rstrip())
                if fact.notify:
                    why = one_line(fact.rule, WIDTH)
                    cost = f", about ${fact.usd}" if fact.usd is not None else ""
                    yield Line("note", f"{fact.effect} {name}: allowed ({why}){cost}")
            case CallDelegated(child=child, agent=agent):
                given = arguments(call.arguments, WIDTH) if call else ""
                yield Line("doing", f"▸ {fact.effect} {name} {given}".rstrip())
                yield Line("note", f"child {shown(child)} · {agent}")
            case ToolReturned(seconds=seconds, output=output):
                took = "" if fact.child else f" · {duration(seconds)}"
                yield Line("good", f"✓ {fact.effect} {name}{took}{_size(fact)}")
                if rows:
                    yield from (Line(row.tone, f"    {row.text}") for row in rows)
                elif output:
                    of = " of what the model was told" if fact.size else ""
                    yield from self._output(output, of)
            case ToolFailed(kind=kind, message=message):
                then = _WITHOUT if fact.degraded else self.attempts.next_of(fact, call)
                yield Line("bad", f"✗ {fact.effect} {name} failed ({kind}){then}")
                yield from self._output(message)
            case ToolSkipped(reason=reason):
                then = _WITHOUT if fact.degraded else ""
                yield Line("bad", f"✗ {fact.effect} {name} was not run{then}")
                yield from self._output(reason)

    def _name(self, effect: str) -> str:
        """Return the name of the tool that *effect* calls, also if the tool does not exist."""
        call = self.calls.get(effect)
        return one_line(call.name, 60) if call else effect

    def _output(self, text: str, of: str = "") -> Iterator[Line]:
        if self._whole_results:
            shown = visible(text).rstrip("\n").split("\n")
        else:
            shown = capped(text, RESULT_LINES, WIDTH, of)
        yield from (Line("output", f"    {line}") for line in shown)

    def _doubt(self, fact: ToolInDoubt | ToolReconciled) -> Iterator[Line]:
        name = f"{fact.effect} {self._name(fact.effect)}"
        if isinstance(fact, ToolInDoubt):
            why = one_line(doubt_text(fact.cause), WIDTH)
            yield Line("bad", f"? {name} is in doubt: it may or may not have run ({why})")
            return
        outcome = {
            "happened": "took effect",
            "did_not_happen": "did not take effect",
            "run_again": "runs again",
        }
        said = outcome.get(fact.outcome, "stays unknown, and the agent is told so")
        then = _WITHOUT if fact.degraded else ""
        yield Line("note", f"? {name} {said} (says {one_line(fact.by, 60)}){then}")

    def _approval(
        self, fact: ApprovalRequested | ApprovalResolved | PeopleNotified
    ) -> Iterator[Line]:
        if isinstance(fact, PeopleNotified):
            if why := one_line(untold_text(fact), WIDTH):
                told = f"hook {fact.hook + 1} told nobody of {fact.approval or fact.effect}"
                yield Line("bad", f"{told}: {why}")
            return
        if isinstance(fact, ApprovalResolved):
            tone: Tone = "good" if fact.verdict == "granted" else "bad"
            by = f" by {one_line(fact.by, 60)}" if fact.by else ""
            note = f": {one_line(fact.note, WIDTH)}" if fact.note else ""
            given = "" if fact.edit is None else f" with {arguments(dict(fact.edit), WIDTH)}"
            always = ", always" if fact.always is not None else ""
            verdict = ANSWERED[fact.resolution] if fact.resolution else fact.verdict
            if fact.result and fact.resolution is None:
                verdict, note = "answered", f": {one_line(fact.result, WIDTH)}{note}"
            said = f"approval {fact.approval} {verdict}{by}{given}{always}{note}"
            yield Line(tone, said)
            return
        name = self._name(fact.effect)
        what = QUESTIONS[fact.question]
        until = f"until {date_time(fact.auto_at or fact.deadline_at)}"
        then = f"{until}, then granted" if fact.auto_at else until
        yield Line("note", f"approval {fact.approval}: {what} {name} ({then})")
        for each in fact.requests:
            yield from (Line("agent", line) for line in request_text(each).splitlines())


def _does(fact: ToolAsked | ToolDeferred) -> str:
    if isinstance(fact, ToolDeferred):
        return "goes on at its server"
    files = ", ".join(fact.paths[:_FILES])
    more = f" and {len(fact.paths) - _FILES:,} more" if fact.paths[_FILES:] else ""
    return f"would change {files}{more}" if files else "asks"


def reply_lines(fact: ModelReplied, *, thinking: bool) -> Iterator[Line]:
    """Return the lines of a model's reply: its thoughts, if they are shown, then its text."""
    for block in fact.content:
        if thinking and isinstance(block, ThinkingBlock) and block.text.strip():
            yield from (Line("thinking", line) for line in paragraph(block.text))
        if isinstance(block, TextBlock) and block.text.strip():
            yield from (Line("agent", line) for line in paragraph(block.text))


def _size(fact: ToolReturned) -> str:
    """Return the size of an output that the model got in part, and the size of the kept part."""
    if fact.size is None:
        return ""
    kept = "kept whole" if fact.kept is None else f"the first {fact.kept:,} of them kept"
    return f" · {fact.size:,} bytes, {kept} in the log"
