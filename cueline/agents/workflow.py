"""Workflows and procedures: agents whose sessions follow fixed steps, without a model."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from cueline.agents.agent import Agent, ToolOrAgent, agent_of_tool
from cueline.deciders.expression import needs_of
from cueline.deciders.plan import PlanProblem, problems_of
from cueline.errors import ConfigError
from cueline.errors.suggestion import known_instead
from cueline.events.agent import AGENT_SCHEME, ToolSpec
from cueline.events.agent_parts import (
    MAX_PARALLEL,
    PROCEDURE,
    BreakerPolicy,
    Condition,
    Demands,
    Plan,
    RetryPolicy,
)
from cueline.events.agent_parts import Step as RecordedStep
from cueline.events.fact import Seconds, Whole
from cueline.events.message import Arguments
from cueline.tools.shell import STEP, run_program
from cueline.tools.tool import TIMEOUT_SECONDS

WORKFLOW: Final = "workflow"
OF_MODELS: Final = {
    *("model", "parameters", "instructions", "tools", "agents", "fallback"),
    *("base_url", "key_variable", "headers", "context_window", "compact_at"),
}
"""The keys of agents that concern a model, which workflows and procedures lack."""
_OF_TOOL: Final = ("critical", "retry", "breaker", "demands", "timeout_seconds", "cost_usd")


def _listed(value: object) -> object:
    """Return *value* as a tuple, so that a single name is a list of one name."""
    return (value,) if isinstance(value, str) else value


class Step(BaseModel):
    """A step of a workflow: a `tool`, an `agent` or a `wait` for a message, with its conditions.

    `arguments` may contain `{{ EXPRESSION }}`, in JMESPath over `input` and `steps.NAME`, whose
    fields are `status`, `value`, `text`, `error` and `error_code`. The steps in `needs`, and the
    steps that its expressions read, end before this step begins. The expression `when` decides
    whether the step runs; `for_each` gives a list, with a call for each `item` and `index`. An
    invalid value raises pydantic's `ValidationError`.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, defer_build=True
    )

    name: str = Field(min_length=1, max_length=64)
    tool: ToolOrAgent | None = None
    agent: Agent | str | None = None
    wait: str = ""
    arguments: dict[str, JsonValue] = {}
    needs: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    when: str = ""
    for_each: str = ""
    condition: Condition = "on_success"
    auto_approve: bool = True
    timeout_seconds: Seconds | None = Field(default=None, gt=0)
    critical: bool | None = None
    retry: RetryPolicy | None = None
    breaker: BreakerPolicy | None = None
    demands: Demands | None = None
    cost_usd: Decimal | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _does_one_thing(self) -> Self:
        given = [each for each in ("tool", "agent", "wait") if getattr(self, each)]
        if len(given) != 1:
            has = " and ".join(given) or "none of them"
            raise ValueError(f"a step has either `tool`, `agent` or `wait`: {self.name} has {has}")
        return self

    @property
    def uses(self) -> ToolOrAgent | None:
        """The tool or agent that the step calls; None for a wait for a message."""
        return (
            f"{AGENT_SCHEME}{self.agent}"
            if isinstance(self.agent, str)
            else self.agent or self.tool
        )

    def recorded(self) -> RecordedStep:
        """Return the recorded form of the step, with all needed steps."""
        fields = {key: getattr(self, key) for key in RecordedStep.model_fields}
        # A tool's own is recorded with the tool.
        fields["critical"] = not self.wait or self.critical is not False
        step = RecordedStep(**fields)
        try:
            return step.model_copy(update={"needs": needs_of(step)})
        except ValueError:  # `problems_of` names it
            return step


class Workflow(Agent):
    """An agent that runs `steps` instead of a model, with at most `max_parallel` calls at a time.

    `output` is the expression of the workflow's result; by default, the last step's value.
    The keys of agents that do not concern a model have the same meaning.
    """

    RULE_SUBJECT: ClassVar[str] = "step of the workflow, whose rules name steps,"
    provider: Literal["workflow"] = WORKFLOW
    steps: tuple[Step, ...]
    max_parallel: Whole = Field(default=MAX_PARALLEL, ge=1)
    output: str = ""  # type: ignore[assignment]  # an expression, where an agent has a schema

    @model_validator(mode="after")
    def _has_no_model(self) -> Self:
        if given := sorted(OF_MODELS & self.model_fields_set):
            raise ValueError(f"a workflow has no model, and so no `{given[0]}`: leave it out")
        return self

    @property
    def plan(self) -> Plan:
        """The recorded form of the workflow's steps."""
        steps = tuple(step.recorded() for step in self.steps)
        return Plan(steps=steps, max_parallel=self.max_parallel, output=self.output)

    def usual_model(self) -> tuple[str, str]:
        """Return the provider name of workflows or procedures, and no model."""
        return WORKFLOW, ""

    def children(self) -> Iterator[Agent]:
        """Yield the agents that the steps start."""
        yield from filter(None, (agent_of_tool(step.uses) for step in self.steps if step.uses))

    def tool_names(self) -> dict[str, str | None]:
        """Return the names of the steps that call a tool or agent."""
        return {step.name: step.name for step in self.steps if step.uses}

    def tool_specs(self) -> tuple[ToolSpec, ...]:
        """Return the tool of each step, with the step's name and settings.

        Raises:
            ConfigError: a tool or an expression is wrong; the message names its key.
            ToolImportError: a tool cannot be imported where it will run.
        """
        tools, found = self.checked()
        for key, reason in found:
            raise ConfigError(self.name, f"key {key!r}: {reason}")
        return tools

    def checked(self) -> tuple[tuple[ToolSpec, ...], list[PlanProblem]]:
        """Return the tools of the steps, and the faults of the steps.

        Raises:
            ConfigError: a tool is unknown, or cannot be recorded.
            ToolImportError: a tool cannot be imported where it will run.
        """
        tools = tuple(self._tool_of(step, step.uses) for step in self.steps if step.uses)
        taken = (self.parameters_schema or {}).get("properties", {})
        open_ = (self.parameters_schema or {}).get("additionalProperties", False)
        parameters = None if open_ or not isinstance(taken, dict) else taken
        found = problems_of(self.plan, parameters=parameters)
        by_name = {tool.name: tool for tool in tools}
        for step in self.steps:
            if (tool := by_name.get(step.name)) is not None:
                key = f"steps.{step.name}.arguments"
                found += [PlanProblem(key, why) for why in _unfit(step.arguments, tool.parameters)]
        return tools, found

    def _tool_of(self, step: Step, uses: ToolOrAgent) -> ToolSpec:
        own = self.as_recorded(uses)
        named = {"name": step.name, "own_name": "" if own.name == step.name else own.name}
        tool = self._as_set(own.model_copy(update=named))
        given = {key: getattr(step, key) for key in _OF_TOOL if getattr(step, key) is not None}
        return tool.model_copy(update=given)

    def _form(self) -> dict[str, Any]:
        return {"instructions": "", "output": None, "plan": self.plan}


def _unfit(arguments: dict[str, JsonValue], schema: dict[str, JsonValue]) -> Iterator[str]:
    """Yield the faults in the names of *arguments* for a tool with the parameters' *schema*."""
    known: Any = schema.get("properties", {})
    needed: Any = schema.get("required", [])
    if schema.get("additionalProperties") is False:
        for name in arguments.keys() - known.keys():
            yield f"it takes no {name!r}{known_instead(name, known)}"
    yield from (f"{name!r} is missing" for name in needed if name not in arguments)


class Procedure(Agent):
    """An agent that runs a command with its parameters, without a model.

    Each text of `command` may contain `{{ input.NAME }}`, and the command gets all parameters
    as JSON on its standard input. The output of the command is the result; if the output is JSON,
    it is also the `value`. The command runs in the `workspace`, for `timeout_seconds` at most. An
    invalid value raises pydantic's `ValidationError`.
    """

    provider: Literal["procedure"] = PROCEDURE
    command: tuple[str, ...] = Field(min_length=1)
    timeout_seconds: Seconds = Field(default=TIMEOUT_SECONDS, gt=0)

    def usual_model(self) -> tuple[str, str]:
        """Return the provider name of workflows or procedures, and no model."""
        return PROCEDURE, ""

    def tool_names(self) -> dict[str, str | None]:
        """Return the name of the procedure's only tool."""
        return {STEP: STEP}

    def tool_specs(self) -> tuple[ToolSpec, ...]:
        """Return the tool that runs the command, on the machine of the workspace."""
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
        plan = Plan(steps=(RecordedStep(name=STEP, arguments=arguments),))
        return {"instructions": "", "output": None, "plan": plan}
