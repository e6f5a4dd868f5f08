"""Makes the spans of one session from its facts, each at the fact that ends it.

An agent's work from a start or a message to its rest is a span, with a span for each attempt of a
model call and of a tool call below it. The first span of a child is below the call that started it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from cueline.events.agent import AgentSpec, answering, with_model
from cueline.events.inbox import MessageSent
from cueline.events.message import ToolCall, Usage
from cueline.events.session import (
    AgentChanged,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    SessionCompleted,
    SessionFailed,
    SessionForked,
    SessionIdle,
    SessionStarted,
    SessionStopped,
    ToolReturned,
)
from cueline.events.store import RecordedEvent
from cueline.events.stream import is_model_call, shown
from cueline.events.trace import call_place, ids_in, span_id, trace_id
from cueline.projections.calls import CallChange, changes_of
from cueline.telemetry import conventions as names
from cueline.telemetry.conventions import Attributes

_NS: Final = 1000
"""Nanoseconds in a microsecond."""
_ENDS: Final = frozenset(
    {"returned", "failed", "retry", "asked", "reconciled", "skipped", "lost", "requested"}
)
"""The statuses at which an attempt is over: see `CallChange`."""
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)


class SpanSettings(NamedTuple):
    """What the spans of all sessions of a log share."""

    log_id: str
    resource: Resource
    scope: InstrumentationScope
    content: bool
    """Whether the spans have what people, models and tools said."""


class _Attempt(NamedTuple):
    """An attempt of a call that has not ended."""

    number: int
    began_us: int


@dataclass(slots=True)
class SessionSpans:
    """A session, as far as its events were read."""

    settings: SpanSettings
    stream: str
    _trace: str = ""
    _above: str | None = None
    """The span of the caller, or of the parent's call."""
    _origin: SpanContext | None = None
    """The last span of the session that this one was forked from."""
    _agent: AgentSpec | None = None
    _model: AgentSpec | None = None
    """The agent with the model of the last request."""
    _asked: str = ""
    """What the current work was asked for."""
    _work: int = 0
    """The number of the current span of the agent's work."""
    _working_us: int | None = None
    """Since when the agent works; None: it rests."""
    _attempts: dict[str, _Attempt] = field(default_factory=dict)
    _calls: dict[str, ToolCall] = field(default_factory=dict)

    def after(self, recorded: RecordedEvent, fact: object) -> Iterator[ReadableSpan]:
        """Yield the spans that end with the next event of the session."""
        if isinstance(fact, SessionStarted | SessionForked):
            self._start(recorded.stream, fact)
            self._working_us = recorded.recorded_us
        if self._agent is None:
            return  # its start was emptied, or is of a newer cueline
        if isinstance(fact, ModelRequested):
            self._model = answering(self._agent, fact.fallback)
            self._working_us = self._working_us or recorded.recorded_us
        elif isinstance(fact, AgentChanged) and fact.model is not None:
            self._agent = with_model(self._agent, fact.model)
        elif isinstance(fact, MessageReceived) and isinstance(fact.message, MessageSent):
            self._asked = self._asked or fact.message.text
        for change in changes_of(fact):
            yield from self._changed(recorded, fact, change)
        if isinstance(fact, SessionIdle | SessionCompleted | SessionFailed | SessionStopped):
            yield from self._rest(recorded, fact)

    def _start(self, stream: str, fact: SessionStarted | SessionForked) -> None:
        log = self.settings.log_id
        if isinstance(fact, SessionForked):
            if self._agent is not None:
                last = self._work - (self._working_us is None)
                self._origin = self._context(span_id(log, fact.parent, f"work/{last}"))
            self._trace, self._above = trace_id(log, stream), None
        else:
            self._trace = trace_id(log, fact.root or stream, fact.traceparent)
            caller = ids_in(fact.traceparent)
            self._above = caller and caller[1]
            if fact.parent is not None and fact.call is not None:
                place = call_place(fact.call.effect, fact.call.attempt)
                self._above = span_id(log, fact.parent, place)
        self._agent = self._model = fact.agent
        self._asked, self._work = fact.goal or "", 1
        self._attempts, self._calls = {}, {}

    def _changed(
        self, recorded: RecordedEvent, fact: object, change: CallChange
    ) -> Iterator[ReadableSpan]:
        effect = change.effect
        if change.call is not None:
            self._calls[effect] = change.call
        elif change.edit is not None and effect in self._calls:
            edited = self._calls[effect].model_copy(update={"arguments": change.edit})
            self._calls[effect] = edited
        elif change.status == "started" or change.status in _ENDS:
            if (ended := self._attempts.pop(effect, None)) is not None:
                yield self._call_span(recorded, fact, change, ended)
            elif isinstance(fact, ModelReplied | ModelFailed) and fact.usage is not None:
                began = recorded.recorded_us - round(fact.seconds * 1e6)
                yield self._call_span(recorded, fact, change, _Attempt(fact.attempt, began))
            if change.status == "started":
                self._attempts[effect] = _Attempt(change.attempt, recorded.recorded_us)
            if change.status in {"returned", "failed", "skipped", "reconciled"}:
                self._calls.pop(effect, None)

    def _call_span(
        self, recorded: RecordedEvent, fact: object, change: CallChange, ended: _Attempt
    ) -> ReadableSpan:
        given: Attributes = {names.EFFECT: change.effect, names.ATTEMPT: ended.number}
        is_model = is_model_call(change.effect)
        if is_model:
            name = self._describe_model(given, fact, change)
        else:
            name = self._describe_tool(given, fact, change)
        error = change.kind or ("lost" if change.status in {"lost", "started"} else "")
        return self._span(
            recorded,
            name,
            call_place(change.effect, ended.number),
            given,
            began_us=ended.began_us,
            above=span_id(self.settings.log_id, self.stream, f"work/{self._work}"),
            error=error,
            kind=SpanKind.CLIENT if is_model else SpanKind.INTERNAL,
        )

    def _describe_model(self, given: Attributes, fact: object, change: CallChange) -> str:
        assert self._model is not None, "the session was started"
        given |= {names.OPERATION: names.CHAT, names.REQUEST_MODEL: self._model.model}
        usage = getattr(fact, "usage", None)
        if isinstance(usage, Usage):
            given |= names.usage_attributes(usage)
        if change.used is not None and change.used.cost:
            given[names.COST] = float(change.used.cost)
        if isinstance(fact, ModelReplied):
            given[names.RESPONSE_MODEL] = fact.model or self._model.model
            given[names.FINISH_REASONS] = (fact.stop_reason,)
            if self.settings.content:
                given[names.OUTPUT_MESSAGES] = names.reply_message(fact)
        return f"{names.CHAT} {self._model.model}"

    def _describe_tool(self, given: Attributes, fact: object, change: CallChange) -> str:
        call = self._calls.get(change.effect)
        given |= {names.OPERATION: names.EXECUTE_TOOL, names.TOOL_TYPE: "function"}
        given[names.OUTCOME] = change.outcome or change.status
        if call is None:  # its reply was emptied
            return names.EXECUTE_TOOL
        given |= {names.TOOL: call.name, names.CALL_ID: call.id}
        if self.settings.content:
            given[names.ARGUMENTS] = names.call_arguments(call)
            if isinstance(fact, ToolReturned):
                given[names.RESULT] = fact.output
        return f"{names.EXECUTE_TOOL} {call.name}"

    def _rest(
        self,
        recorded: RecordedEvent,
        fact: SessionIdle | SessionCompleted | SessionFailed | SessionStopped,
    ) -> Iterator[ReadableSpan]:
        if self._working_us is None:
            return
        assert self._agent is not None, "the session was started"
        given: Attributes = {
            names.OPERATION: names.INVOKE_AGENT,
            names.OUTCOME: fact.type.removeprefix("Session").lower(),
        }
        if self.settings.content:
            given[names.INPUT_MESSAGES] = names.text_message("user", self._asked)
            said = getattr(fact, "result", "")
            given[names.OUTPUT_MESSAGES] = names.text_message("assistant", said)
        yield self._span(
            recorded,
            f"{names.INVOKE_AGENT} {self._agent.name}",
            f"work/{self._work}",
            given,
            began_us=self._working_us,
            above=self._above,
            error=fact.kind if isinstance(fact, SessionFailed) else "",
        )
        self._work, self._working_us, self._asked = self._work + 1, None, ""

    def _span(
        self,
        recorded: RecordedEvent,
        name: str,
        place: str,
        given: Attributes,
        *,
        began_us: int,
        above: str | None,
        error: str,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> ReadableSpan:
        assert self._agent is not None, "the session was started"
        assert self._model is not None, "as above"
        given[names.PROVIDER] = self._model.provider
        given[names.AGENT] = self._agent.name
        given[names.CONVERSATION] = shown(self.stream)
        if recorded.correlation_id is not None:
            given[names.CORRELATION] = recorded.correlation_id
        if error:
            given[names.ERROR_TYPE] = error
        span = span_id(self.settings.log_id, self.stream, place)
        return ReadableSpan(
            name=name,
            context=self._context(span),
            parent=None if above is None else self._context(above),
            resource=self.settings.resource,
            attributes=given,
            links=[Link(self._origin)] if self._origin and above == self._above else (),
            kind=kind,
            status=Status(StatusCode.ERROR, error) if error else Status(StatusCode.UNSET),
            start_time=began_us * _NS,
            end_time=recorded.recorded_us * _NS,
            instrumentation_scope=self.settings.scope,
        )

    def _context(self, span: str) -> SpanContext:
        return SpanContext(
            int(self._trace, 16), int(span, 16), is_remote=False, trace_flags=_SAMPLED
        )
