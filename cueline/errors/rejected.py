"""Errors for requests that the rules do not allow; the caller changes the request."""

import json
from typing import Any

from cueline.errors.root import CuelineError


class RejectedError(CuelineError):
    """The rules do not allow this request now; change the request."""

    subject: str
    reason: str
    text = "{subject}: {reason}"


class ConfigError(RejectedError):
    """A setting, an agent file or a flag is wrong; the message names it and the fix."""


class ParameterValidationError(ConfigError):
    """The parameters of a start do not fit the agent's schema; the message has the schema."""

    code = "parameter_validation_failed"

    def __init__(self, agent: str, why: str, schema: dict[str, Any]) -> None:
        told = f"; they must fit {json.dumps(schema, ensure_ascii=False)}" if schema else ""
        super().__init__(agent, f"{self.code}: {why}{told}")
        self.args = (agent, why, schema)
        self.schema = schema
        """The JSON schema of the parameters; empty: the agent has no parameters."""


class UnknownSessionError(RejectedError):
    """The log has no session with this name; `cueline list` shows all sessions."""


class SessionFinishedError(RejectedError):
    """The session has ended; fork it, or start another session.

    `has_plan`: the session follows a plan, so it cannot be forked.
    """

    def __init__(self, subject: str, reason: str, has_plan: bool = False) -> None:  # noqa: FBT001, FBT002 - as its args have it
        super().__init__(subject, reason)
        self.args = (subject, reason, has_plan)
        self.has_plan = has_plan


class SessionOwnedError(RejectedError):
    """A living process drives the session; send it a message instead."""

    def __init__(self, subject: str, machine: str, pid: int) -> None:
        super().__init__(subject, f"driven by process {pid} on {machine}")
        self.args = (subject, machine, pid)
        self.machine = machine
        self.pid = pid


class SessionUndrivenError(RejectedError):
    """No process drives the session, and it is not waiting: resume it, or start `cueline up`."""

    def __init__(self, subject: str, why: str) -> None:
        super().__init__(
            subject,
            f"nobody drives it now ({why}); it goes on with `await runtime.resume({subject!r})`, "
            f"`cueline resume {subject}` or `cueline up`",
        )
        self.args = (subject, why)
        self.why = why


class BlueprintConflictError(RejectedError):
    """A blueprint's name is taken, so the whole registration is refused. Choose another name."""

    text = "Agent {blueprint!r} is already registered by runner {runner!r}"

    def __init__(self, blueprint: str, runner: str) -> None:
        super().__init__(blueprint, f"registered by runner {runner}")
        self.args = (blueprint, runner)
        self.blueprint = blueprint
        self.runner = runner
        """The runner that offers the blueprint; `cluster` for a reserved name."""

    def as_dict(self) -> dict[str, str]:
        """Return the error as the JSON body of the answer to the runner."""
        return {
            "error": "agent_name_collision",
            "message": str(self),
            "agent_name": self.blueprint,
            "existing_runner_id": self.runner,
        }


class NotPendingError(RejectedError):
    """The approval is not open; the message has its state."""


class ProposalError(RejectedError):
    """The id is no proposal of this person and this log. Propose again."""

    code: str = "proposal_invalid"


class ProposalExpiredError(ProposalError):
    """The proposal was not committed in time. Propose again."""

    code: str = "proposal_expired"


class ProposalStaleError(ProposalError):
    """The session has changed, so the commit would not do what the proposal says. Propose again."""

    code: str = "proposal_stale"


class NotUndoableError(RejectedError):
    """The effect of the proposal cannot be taken back, or it was not committed."""

    code: str = "not_undoable"


class InvalidNameError(RejectedError):
    """A name or id has an invalid form."""


class ToolImportError(RejectedError):
    """A tool cannot be imported by its recorded `module:name`."""


class ToolChangedError(ToolImportError):
    """A tool differs from the recorded one; the message has the differences. No call has run."""


class PathEscapeError(RejectedError):
    """A path leads out of the workspace, or to a log."""


class ForbiddenError(RejectedError):
    """The person may not do this; somebody with the named scope may."""

    def __init__(self, subject: str, scope: str) -> None:
        super().__init__(subject, f"this needs the scope `{scope}`; `cueline tokens` issues tokens")
        self.args = (subject, scope)
        self.scope = scope
