"""Renders the start, waits, messages and end of a session as lines."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from cueline.console.summary import possible_cost
from cueline.console.text import (
    WIDTH,
    Line,
    Tone,
    arguments,
    date_time,
    duration,
    json_of,
    money,
    one_line,
    visible,
)
from cueline.events.agent import AgentSpec, ModelChoice, answering, tool_retries, with_model
from cueline.events.agent_parts import RetryPolicy
from cueline.events.event_text import (
    cause_text,
    end_text,
    prefix_text,
    refusal_text,
    step_text,
    stop_text,
    wait_text,
)
from cueline.events.fact import Fact
from cueline.events.inbox import (
    ChildAsked,
    ChildEnded,
    ChildPaused,
    DecisionGiven,
    MessageSent,
    ModelChangeAsked,
    PauseAsked,
    RaiseAsked,
    ResumeAsked,
    SecretsWaived,
    StopAsked,
)
from cueline.events.message import ToolCall, message_text
from cueline.events.session import (
    AgentChanged,
    MessageReceived,
    MessageRefused,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    OutcomeCameLate,
    PromptPrefixChanged,
    SessionCompleted,
    SessionFailed,
    SessionForked,
    SessionIdle,
    SessionStarted,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    StepEnded,
    ToolFailed,
)
from cueline.events.stream import is_model_call, shown

_PARTIAL = ", but partial"


def session_head(fact: SessionStarted | SessionForked, id: str) -> Iterator[Line]:  # noqa: A002 - the word of the log
    """Return the lines of a start: agent, user and goal."""
    agent = fact.agent
    model = one_line(agent.model.rpartition("/")[2], 60)
    if isinstance(fact, SessionForked):
        yield Line("note", f"forked from {shown(fact.parent)} at version {fact.version}")
    yield Line("note", f"session {id} · {agent.name} · {agent.provider} {model}".rstrip())
    if isinstance(fact, SessionStarted) and fact.parameters:
        yield Line("said", f"with {arguments(fact.parameters, WIDTH)}")
    attached = fact.attachments if isinstance(fact, SessionStarted) else ()
    if said := message_text(fact.goal or "", attached):
        yield from _said("you", said)


def message_lines(fact: MessageReceived | MessageRefused) -> Iterator[Line]:
    """Return the lines of a message, or of its refusal."""
    if isinstance(fact, MessageRefused):
        why = one_line(refusal_text(fact.refusal), WIDTH)
        yield Line("bad", f"! a message was refused ({fact.message.type}): {why}")
        return
    match fact.message:
        case MessageSent():
            yield from _sent(fact.message)
        case PauseAsked(why=why):
            yield Line("note", "pause asked" + (" by Ctrl-C or a signal" * (why == "signal")))
        case ResumeAsked(tools=tools):
            names = ", ".join(tool.name for tool in tools)
            yield Line("note", "resume asked" + f"; changed tools accepted: {names}" * bool(names))
        case RaiseAsked():
            yield Line("note", "more asked for")
        case ModelChangeAsked(model=model):
            yield Line("note", f"asked for {one_line(f'{model.provider} {model.model}', WIDTH)}")
        case SecretsWaived(names=names, by=by):
            who = one_line(by, WIDTH)
            yield Line("note", f"{who} goes on without the value of {', '.join(names)}")
        case StopAsked(reason=reason):
            yield Line("note", f"stop asked: {one_line(stop_text(reason), WIDTH)}")
        case ChildAsked() | ChildEnded() | ChildPaused():
            yield child_line(fact.message)
        case DecisionGiven() | _:
            pass


def _sent(message: MessageSent) -> Iterator[Line]:
    if message.name:
        value = one_line(json_of(message.value), WIDTH)
        yield Line("said", f"message {one_line(message.name, WIDTH)}: {value}")
        return
    who = "you" if message.lane == "note" else f"you ({message.lane})"
    yield from _said(who, message_text(message.text, message.attachments))


def step_line(ended: StepEnded) -> Line:
    """Return the line of a step of a plan that ended without a call."""
    why = one_line(step_text(ended.error_code, ended.error), WIDTH)
    if ended.status == "failed":
        return Line("bad", f"✗ {ended.step} failed: {why}")
    return Line("dim", f"- {ended.step} {ended.status}{f': {why}' if why else ''}")


def child_line(message: ChildAsked | ChildEnded | ChildPaused) -> Line:
    """Return the line of a child that began, pauses, continues or ended."""
    if isinstance(message, ChildAsked):
        return Line("doing", f"▸ child {shown(message.child)}")
    if isinstance(message, ChildPaused):
        what = f"is paused: {one_line(message.reason, WIDTH)}" if message.reason else "goes on"
        return Line("note", f"child {shown(message.child)} {what}")
    tone: Tone = "good" if message.status == "completed" else "bad"
    return Line(tone, f"child {shown(message.child)} {message.status} · {money(message.usd)}")


def course_lines(fact: Fact) -> Iterator[Line]:
    """Return the lines of a wait, of the end of a wait, or of the session's end."""
    match fact:
        case SessionWaiting(kind="breaker", cause=cause, deadline_at=datetime() as opens_at):
            open_until = f"breaker open until {date_time(opens_at)}"
            yield Line("note", f"{open_until}: {one_line(cause_text(cause), WIDTH)}")
        # Of the polls of a task only the first wait is shown.
        case SessionWaiting(kind=kind, cause=cause, deadline_at=deadline_at) if (
            kind != "task" or not fact.effects
        ):
            paused = kind == "operator" or fact.exhausted
            until = f" until {date_time(deadline_at)}" if deadline_at else ""
            # The line of the failure has shown the number of the retry and its time.
            tone: Tone = "dim" if kind == "retry" else "note"
            said = wait_text(kind, cause, paused=paused, until=until)
            yield Line(tone, one_line(said, WIDTH))
        case SessionTakenOver(epoch=epoch, lost_attempts=lost, handed_over=handed_over):
            how = "handed over to another host" if handed_over else "taken over by a new owner"
            again = "".join(f"; 1 lost attempt{possible_cost(attempt.cost)}" for attempt in lost)
            yield Line("note", f"{how}, epoch {epoch}{again}")
        case OutcomeCameLate(effect=effect, outcome=outcome):
            yield Line("dim", f"  {effect}: {outcome} came late and changes nothing")
        case AgentChanged() | PromptPrefixChanged():
            yield Line("note", _change_text(fact))
        case SessionCompleted(partial=partial):
            # The result of a model was shown as its reply; that of a plan was not shown yet.
            told = "" if fact.value is None else f": {one_line(json_of(fact.value), WIDTH)}"
            yield Line("good", f"completed{_PARTIAL * partial}{told}")
        case SessionIdle(partial=partial):
            yield Line("good", f"idle{_PARTIAL * partial}: it stays open for more messages")
        case SessionFailed(kind=kind):
            told = fact.message or end_text(fact)
            yield Line("bad", f"failed ({kind}): {one_line(told, WIDTH)}")
        case SessionStopped(by=by):
            yield Line("bad", f"stopped by {one_line(by, 60)}: {one_line(end_text(fact), WIDTH)}")
        case _:
            pass


def _change_text(fact: AgentChanged | PromptPrefixChanged) -> str:
    if isinstance(fact, PromptPrefixChanged):
        return f"the prompt's beginning changed: {one_line(prefix_text(fact), WIDTH)}"
    named = "unchanged" if fact.model is None else f"{fact.model.provider} {fact.model.model}"
    return f"the model is now {one_line(named, WIDTH)}"


def _said(who: str, text: str) -> Iterator[Line]:
    first, *rest = paragraph(text) or [""]
    yield Line("said", f"{who}: {first}")
    yield from (Line("said", f"     {line}") for line in rest)


def paragraph(text: str) -> Sequence[str]:
    """Return the lines of a text, without control characters."""
    return visible(text.strip("\n")).split("\n")


class Attempts:
    """Counts the retries of the current turn, by effect."""

    def __init__(self) -> None:
        self._agent: AgentSpec | None = None
        self._fallback = 0
        self._retries: dict[str, int] = {}

    def learn(self, fact: Fact) -> None:
        """Apply a fact to the counts."""
        match fact:
            case SessionStarted() | SessionForked():
                self._agent, self._fallback = fact.agent, 0
                self._retries.clear()
            case AgentChanged(model=ModelChoice() as model) if self._agent is not None:
                self._agent, self._fallback = with_model(self._agent, model), 0
            case ModelRequested(effect=effect, fallback=fallback):
                if fallback != self._fallback:
                    self._retries.pop(effect, None)
                self._fallback = fallback
            case ModelReplied():
                self._retries.clear()
            case MessageReceived(message=ResumeAsked()):
                self._retries = {e: n for e, n in self._retries.items() if not is_model_call(e)}
            case ModelFailed() | ToolFailed() if fact.retry_at is not None:
                self._retries[fact.effect] = self._retries.get(fact.effect, 0) + 1

    def next_of(self, fact: ModelFailed | ToolFailed, call: ToolCall | None) -> str:
        """Return the time and the number of the next retry of the failed effect."""
        if fact.retry_at is None:
            return ""
        if isinstance(fact, ToolFailed) and fact.held:
            return "; it never began, and is tried again when a person resumes"
        return f"; {self.retry(fact.effect, call)} {_when(fact.failed_at, fact.retry_at)}"

    def retry(self, effect: str, call: ToolCall | None) -> str:
        """Return the number of the next retry of *effect*, as `retry 2/3`."""
        policy = self._policy(call)
        of = f"/{policy.max_retries}" if policy is not None else ""
        return f"retry {self._retries[effect]}{of}"

    @property
    def model(self) -> str:
        """The name of the current model."""
        if self._agent is None:
            return "the model"
        return answering(self._agent, self._fallback).model.rpartition("/")[2]

    def _policy(self, call: ToolCall | None) -> RetryPolicy | None:
        if self._agent is None:
            return None
        if call is None:
            return answering(self._agent, self._fallback).retry
        return tool_retries(self._agent, call.name)


def _when(failed_at: datetime | None, retry_at: datetime) -> str:
    if failed_at is None or retry_at <= failed_at:
        return "at once"
    return f"in {duration((retry_at - failed_at).total_seconds())}"
