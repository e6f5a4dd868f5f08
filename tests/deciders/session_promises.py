"""What the rules of a session promise after every step, whatever the shell does."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from cueline.deciders.session import SessionState, Status, derived_events, due, wake_at
from cueline.deciders.session.due import CallModel, ReserveBudget
from cueline.deciders.session.model_call import UNCOUNTED
from cueline.events.agent import AgentSpec, each_model, tool_retries
from cueline.events.inbox import ResumeAsked
from cueline.events.session import (
    AgentChanged,
    MessageReceived,
    ModelFailed,
    ModelRequested,
    ModelStarted,
    SessionCompleted,
    SessionEvent,
    SessionFailed,
    SessionForked,
    SessionIdle,
    SessionStopped,
    ToolAsked,
    ToolFailed,
    ToolReconciled,
    ToolStarted,
)
from cueline.events.stream import is_model_call

_RUNS_AGAIN = ("did_not_happen", "run_again")
"""What is said of a call in doubt that is made once more."""
_RESTS = (SessionIdle, SessionCompleted, SessionFailed, SessionStopped)


def check_step(before: SessionState, state: SessionState, opening: SessionEvent) -> None:
    """Check the state after a step that began with *opening*."""
    if before.finished and not isinstance(opening, SessionForked):
        assert state.status == before.status, "I6: the end is final"
        assert state.turn == before.turn, "I6: the result is final"
    assert derived_events(state) == [], "something more follows"
    assert state.turn == state.turn.with_calls(state.turn.calls), "rules overlook a call"
    started = [call for call in state.open_calls if call.phase == "started"]
    if state.progress is None:
        alone = all(call.repeatable for call in started) or len(started) == 1
        assert alone, "an undeclared call runs beside another"
    else:
        assert len(started) <= state.agent.plan.max_parallel, "more runs than the plan allows"
    if state.status is Status.IDLE:
        assert not state.mail, "a message waits, and nobody reads it"
    if state.status is Status.WAITING:
        _check_wait(state)


def _check_wait(state: SessionState) -> None:
    assert state.waiting is not None, "a wait has a reason"
    assert state.waiting.deadline_at == wake_at(state), "the deadline is not kept"
    if not state.waiting.is_pause:
        assert wake_at(state) is not None, "I14: it waits for ever"
    if state.waiting.kind != "operator":
        assert not any(isinstance(e, CallModel | ReserveBudget) for e in due(state)), "work is due"


class Patience:
    """Sees that nothing is tried again before its time, unless a person wants it so."""

    def __init__(self) -> None:
        self._until: dict[str, datetime] = {}

    def check(self, fact: SessionEvent, now: datetime) -> None:
        """Check one fact that is recorded *now*."""
        match fact:
            case ModelFailed() | ToolFailed() if fact.retry_at is not None:
                self._until[fact.effect] = fact.retry_at
                asked = timedelta(seconds=fact.retry_after or 0.0)
                early = fact.failed_at is not None and fact.retry_at < fact.failed_at + asked
                assert not early, f"{fact.effect} is tried again before it was asked for"
            case ModelRequested(effect=effect) | ToolStarted(effect=effect):
                until = self._until.pop(effect, now)
                assert now >= until, f"{effect} is tried again before its time"
            case MessageReceived(message=ResumeAsked()) | SessionForked():
                self._until.clear()
            case AgentChanged():  # another model, as a person wants it
                self._until = {e: at for e, at in self._until.items() if not is_model_call(e)}
            case _:
                pass


class Starts:
    """That a tool call starts only when it may: if granted (I9), and once if undeclared (I5)."""

    def __init__(self) -> None:
        self._may_have_run: set[str] = set()

    def check(self, fact: SessionEvent, state: SessionState) -> None:
        """Check *fact*, which is about to change *state*."""
        ran_not = isinstance(fact, ToolReconciled) and fact.outcome in _RUNS_AGAIN
        if ran_not or (isinstance(fact, ToolAsked) and _is_started(state, fact.effect)):
            self.never_began(fact.effect)
        if not isinstance(fact, ToolStarted):
            return
        call = state.call(fact.effect)
        assert call is not None, "a start names a call"
        if call.gated and not call.runs_held:
            assert call.approval is not None, "I9: started without a grant"
            assert call.approval.granted is not None, "I9: started without an answer"
        if not call.repeatable:
            assert fact.effect not in self._may_have_run, "I5: may run twice"
            self._may_have_run.add(fact.effect)

    def never_began(self, effect: str) -> None:
        """Learn that it may start again."""
        self._may_have_run.discard(effect)


def _is_started(state: SessionState, effect: str) -> bool:
    """Whether the call runs; one that goes on as a task has had effects."""
    call = state.call(effect)
    return call is not None and call.phase == "started"


def check_paid(fact: SessionEvent, state: SessionState, *, held: bool) -> None:
    """Check that nothing goes out that is not held, and nothing is *held* by who rests."""
    if isinstance(fact, ModelStarted) and state.limited:
        assert held, "I8: nobody granted it"
    if isinstance(fact, _RESTS):
        assert not held, f"I8: something is held at {fact.type}"


def check_attempts(facts: Sequence[SessionEvent], agent: AgentSpec) -> None:
    """Check that no effect was tried more often than its policy allows, whatever failed.

    A resume or another model lets a model call begin anew, and a call that could not be begun; a
    person who says that a call in doubt did not happen has it made once more:
    people are no loop.
    """
    resumes = sum(
        (isinstance(fact, MessageReceived) and isinstance(fact.message, ResumeAsked))
        or isinstance(fact, AgentChanged)
        for fact in facts
    )
    models = sum(each.retry.max_retries + 1 for each in each_model(agent))
    failed = Counter(
        f.effect for f in facts if isinstance(f, ModelFailed) and f.kind not in UNCOUNTED
    )
    for effect, attempts in failed.items():
        assert attempts <= (resumes + 1) * models, f"{effect} was asked {attempts} times"
    again = Counter(
        f.effect
        for f in facts
        if isinstance(f, ToolAsked) or (isinstance(f, ToolReconciled) and f.outcome in _RUNS_AGAIN)
    )
    held = Counter(f.effect for f in facts if isinstance(f, ToolFailed) and f.held)
    started = Counter((f.effect, f.tool) for f in facts if isinstance(f, ToolStarted))
    for (effect, tool), attempts in started.items():
        series = 1 + held[effect]
        allowed = series * (tool_retries(agent, tool).max_retries + 1) + again[effect]
        assert attempts <= allowed, f"{effect} was started {attempts} times"


def check_pairs(messages: Sequence[dict[str, Any]]) -> None:
    """Check that each reply's calls have their results, in call order, right behind it."""
    for place, message in enumerate(messages):
        if message["role"] != "assistant" or place + 1 == len(messages):
            continue
        calls = [call["id"] for call in message["calls"]]
        results = messages[place + 1 : place + 1 + len(calls)]
        assert calls == [result.get("call") for result in results], "half a tool pair"
