"""The state of a session for display, without the rules."""

from dataclasses import dataclass

from cueline.deciders.session import SessionState
from cueline.deciders.session.state import Wait
from cueline.deciders.session.turn import CallApproval
from cueline.events.agent import AgentSpec
from cueline.events.stream import shown

OpenQuestion = CallApproval
"""An open question."""


@dataclass(frozen=True, slots=True)
class SessionView:
    """The state of a session at one version."""

    state: SessionState

    @property
    def id(self) -> str:
        """The id for users."""
        return shown(self.state.stream)

    @property
    def status(self) -> str:
        """The shown status; a session that only a person can continue is `paused`."""
        paused = self.waiting is not None and self.waiting.is_pause
        return "paused" if paused else str(self.state.status)

    @property
    def finished(self) -> bool:
        """Whether it has ended."""
        return self.state.finished

    @property
    def agent(self) -> AgentSpec | None:
        """Its agent; None until it has begun."""
        return None if self.state.setup is None else self.state.agent

    @property
    def automatic(self) -> bool:
        """Whether its questions are granted at once."""
        return self.agent is not None and self.agent.policy.auto_approve

    @property
    def open(self) -> bool:
        """Whether it accepts further messages after its goal."""
        return self.state.setup is not None and self.state.setup.open and not self.finished

    @property
    def waiting(self) -> Wait | None:
        """The reason and the end of its wait."""
        return self.state.waiting

    @property
    def questions(self) -> tuple[OpenQuestion, ...]:
        """The open questions."""
        calls = self.state.open_calls
        return tuple(call.approval for call in calls if call.approval and call.asking)

    @property
    def too_long(self) -> bool:
        """Whether the conversation was too long for the model, so that a resume does not help."""
        model = self.state.turn.model
        if model is None or model.phase != "given_up" or model.error is None:
            return False
        return model.error.failure == "context_too_long"
