"""Counts the failures of effects, shown as `retry 2/3 in 4 s`."""

from datetime import datetime

from cueline.console.text import duration
from cueline.events.agent import AgentSpec, ModelChoice, answering, tool_retries, with_model
from cueline.events.agent_parts import RetryPolicy
from cueline.events.fact import Fact
from cueline.events.inbox import ResumeAsked
from cueline.events.message import ToolCall
from cueline.events.session import (
    AgentChanged,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    SessionForked,
    SessionStarted,
    ToolFailed,
)
from cueline.events.stream import is_model_call


class Attempts:
    """Counts the retries of the current turn, by effect."""

    def __init__(self) -> None:
        self._agent: AgentSpec | None = None
        self._fallback = 0
        self._retries: dict[str, int] = {}

    def learn(self, fact: Fact) -> None:
        """Take in a fact."""
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
