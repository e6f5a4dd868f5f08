"""A procedure: an agent whose sessions run one command."""

from typing import Any, Literal

from pydantic import Field

from cueline.agent import Agent
from cueline.events.agent import ToolSpec
from cueline.events.message import Arguments
from cueline.events.number import Seconds
from cueline.events.plan import PROCEDURE, Plan, Step
from cueline.tools.program import STEP, run_program
from cueline.tools.tool import TIMEOUT_SECONDS


class Procedure(Agent):
    """An agent that runs a command with its parameters; no model decides anything.

    Each text of `command` may hold `{{ input.NAME }}`, and the command gets all parameters
    as JSON on its standard input. What it prints is the result; JSON is its `value`, too.
    It runs in the `workspace`, if there is one, for `timeout_seconds` at most. An invalid
    value raises pydantic's `ValidationError`.
    """

    provider: Literal["procedure"] = PROCEDURE
    command: tuple[str, ...] = Field(min_length=1)
    timeout_seconds: Seconds = Field(default=TIMEOUT_SECONDS, gt=0)

    def usual_model(self) -> tuple[str, str]:
        """Return that it has no model."""
        return PROCEDURE, ""

    def tool_names(self) -> dict[str, str | None]:
        """Return the name of its only tool."""
        return {STEP: STEP}

    def tool_specs(self) -> tuple[ToolSpec, ...]:
        """Return the tool that runs the command, where the workspace is."""
        spec = run_program.spec()
        update = {
            "name": STEP,
            "own_name": spec.name,
            "timeout_seconds": self.timeout_seconds,
            "needs_workspace": self.workspace is not None,
        }
        return (spec.model_copy(update=update),)

    def _form(self) -> dict[str, Any]:
        arguments: Arguments = {"command": [*self.command], "parameters": "{{ input }}"}
        plan = Plan(steps=(Step(name=STEP, arguments=arguments),))
        return {"instructions": "", "output": None, "plan": plan}
