"""Runs a pydantic-ai agent as an agent of cueline.

The agent is translated, not wrapped: its instructions, tools and output become those of a
`cueline.Agent`, and the provider `pydantic_ai` calls its model. So each model call
and tool call is an effect of cueline, with its attempts, limits and approvals.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, JsonValue

from cueline.adapters.pydantic_ai_model import NAME, TOOLS, loaded
from cueline.agents.agent import Agent
from cueline.errors import ConfigError, CuelineError, ToolFailedError
from cueline.errors.suggestion import known_instead
from cueline.events.agent import ToolSpec
from cueline.tools.schema import Signature
from cueline.tools.tool import TIMEOUT_SECONDS, Image, Tool, ToolContext, load

if TYPE_CHECKING:
    import pydantic_ai

    from cueline.adapters.pydantic_ai_parts import AgentTool

_DECLARED: Final = ("nothing", "read_only", "idempotent")


def from_pydantic_ai(
    target: str,
    *,
    name: str,
    declared: Mapping[str, str] | None = None,
    deps: object = None,
    **fields: Any,
) -> Agent:
    """Return the pydantic-ai agent at *target*, `module:name`, as an agent of cueline.

    Each process that calls the model or a tool imports *target*. The agent's instructions,
    settings and schemas are recorded with the session; functions that return instructions
    are called here, once.

    Args:
        target: where other processes find the agent: `module:name`, or `path.py:name`.
        name: the name of the cueline agent.
        declared: `read_only` or `idempotent` for each tool whose calls may be repeated.
        deps: the agent's dependencies, which are recorded as JSON of its `deps_type`; or a
            function at the top level of a module that makes them for each call, where the
            call runs. It takes no arguments, and may be async.
        fields: other fields of `cueline.Agent`, such as `limits`.

    Raises:
        ConfigError: there is no such agent, or a part of the agent cannot be translated.
    """
    agent, declared = loaded(target), declared or {}
    from cueline.adapters.pydantic_ai_parts import instructions_of, recorded_deps, tools_of

    for reason in _untranslatable(agent):
        raise ConfigError(target, reason)
    try:
        tools = list(tools_of(agent))
        options = recorded_deps(agent, deps)
        told = instructions_of(agent, options)
    except CuelineError as error:
        raise ConfigError(target, str(error)) from error
    names = [tool.told.name for tool in tools]
    for named, said in declared.items():
        if named not in names:
            known = known_instead(named, sorted(names), "it has")
            raise ConfigError(target, f"declared: it has no tool {named!r}{known}")
        if said not in _DECLARED:
            raise ConfigError(
                target, f"declared: {named} is {said!r}; it can be {', '.join(_DECLARED)}"
            )
    if outputs := [f"`{tool.told.name}`" for tool in tools if tool.told.kind == "output"]:
        how = f"When you are done, call {' or '.join(outputs)}: your last reply is made of it."
        told = f"{told}\n\n{how}".lstrip()
    made: dict[str, Any] = {"instructions": told, "parameters": _settings(agent)}
    if (schema := agent.output_json_schema()) != {"type": "string"}:
        made["output"] = schema
    source = f"{TOOLS}{target.replace(':', '/')}"
    own = [
        _with_options(f"{source}/{each}/{declared.get(each, 'nothing')}", options) for each in names
    ]
    return Agent(
        name=name,
        provider=NAME,
        model=target,
        **{**made, **fields, "tools": [*own, *fields.get("tools", ())]},
    )


def __getattr__(name: str) -> Tool:
    """Return the tool `MODULE/AGENT/TOOL/DECLARED` of a pydantic-ai agent.

    So `cueline.adapters.pydantic_ai:MODULE/AGENT/TOOL/DECLARED` is the target of a tool.
    """
    pieces = name.rsplit("/", 3)
    if len(pieces) < 4:  # noqa: PLR2004 - the fields of a name
        raise AttributeError(name)
    source, place, tool, declared = pieces
    agent = loaded(f"{source}:{place}")
    from cueline.adapters.pydantic_ai_parts import tools_of

    found = next((each for each in tools_of(agent) if each.told.name == tool), None)
    if found is None:
        raise AttributeError(name)
    made = _tool(agent, found, declared)
    globals()[name] = made  # so that the target of the tool names it
    return made


@dataclass(frozen=True, slots=True)
class _Arguments(Signature):
    """The arguments of a tool, which the call checks by the validator of pydantic-ai."""

    told: dict[str, Any]

    def schema(self) -> dict[str, Any]:
        return dict(self.told)

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        return {"arguments": dict(arguments)}


@dataclass(frozen=True, kw_only=True, eq=False)
class _WithOptions(Tool):
    """A tool whose recorded form has the dependencies of its agent."""

    target: str
    options: dict[str, JsonValue]

    def spec(self) -> ToolSpec:
        return load(self.target).spec().model_copy(update={"options": self.options})


def _with_options(target: str, options: dict[str, JsonValue]) -> Tool | str:
    if not options:
        return target
    tool = load(target)
    told = {each.name: getattr(tool, each.name) for each in fields(Tool)}
    return _WithOptions(**told, target=target, options=options)


def _tool(agent: "pydantic_ai.Agent[Any, Any]", tool: "AgentTool", declared: Any) -> Tool:
    from pydantic_ai import exceptions

    from cueline.adapters.pydantic_ai_parts import EffectContext, deps_of
    from cueline.adapters.pydantic_ai_turn import OUTPUT

    told = tool.told
    known: dict[str, Any] = {"agent": agent, "tool_name": told.name, "max_retries": tool.retries}
    known |= {"tool_call_approved": told.kind == "unapproved", "partial_output": False}

    async def call(arguments: dict[str, Any], context: ToolContext) -> object:
        now = {"run_id": context.session, "tool_call_id": context.effect}
        try:
            given = EffectContext(await deps_of(agent, context.options), **known, **now)
            result = await tool.run(arguments, given)
        except exceptions.ModelRetry as error:
            raise ToolFailedError("retry", error.message) from None
        except (exceptions.CallDeferred, exceptions.ApprovalRequired) as error:
            why = f"{type(error).__name__} in a call: declare `requires_approval=True` instead"
            raise ToolFailedError("tool_error", why) from None
        return {OUTPUT: result} if told.kind == "output" else _result(result)

    schema = told.parameters_json_schema
    text = told.description or ""
    return Tool(
        name=told.name,
        function=call,
        signature=_Arguments(text, (), BaseModel, "context", returns_text=False, told=schema),
        declared=declared,
        reconcile=None,
        sensitive=told.kind == "unapproved",
        version="1",
        timeout_seconds=told.timeout or TIMEOUT_SECONDS,
        in_loop=tool.in_loop,
        needs_workspace=False,
    )


def _result(value: object) -> object:
    """Return the result of a pydantic-ai tool in the form of a cueline tool's result."""
    from pydantic_ai import BinaryContent, ToolReturn

    match value:
        case ToolReturn(return_value=returned, content=None):
            return _result(returned)
        case ToolReturn(return_value=returned, content=content):
            return [returned, content]
        case BinaryContent(is_image=True, data=data):
            return Image(data)
        case _:
            return value


def _untranslatable(agent: "pydantic_ai.Agent[Any, Any]") -> Iterator[str]:
    """Yield the parts of *agent* that cueline cannot translate, and what to do instead."""
    from pydantic_ai import Agent as Theirs
    from pydantic_ai.models import Model

    usual = {type(each) for each in Theirs().root_capability.capabilities}
    if not isinstance(agent.model, str | Model):
        yield f"its model is {agent.model!r}: give it one"
    if callable(agent.model_settings):
        yield "its model settings are a function: give it a dict, which cueline records"
    for capability in agent.root_capability.capabilities:
        if type(capability) not in usual:
            yield f"its capability {type(capability).__name__} has no counterpart: leave it out"
    if agent._output_schema.allows_deferred_tools:
        yield "its output DeferredToolRequests has no counterpart: a person answers in the session"
    if agent._output_schema.allows_image:
        yield "its output is an image: return it from a tool"
    if agent._event_hooks._registry:
        yield "it has hooks for events: read the events of the session"


def _settings(agent: "pydantic_ai.Agent[Any, Any]") -> dict[str, Any]:
    """Return the settings of *agent*, which apply to each request."""
    settings: Any = agent.model_settings
    return dict(settings or {})
