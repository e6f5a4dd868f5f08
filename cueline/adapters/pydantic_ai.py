"""Runs a pydantic-ai agent as an agent of cueline.

The agent is translated, not wrapped: its instructions, tools and output become those of a
`cueline.Agent`, and the provider `pydantic_ai` calls its model. So each model call
and tool call is an effect of cueline, with its attempts, limits and approvals.
"""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from cueline.adapters.pydantic_ai_model import NAME, loaded
from cueline.agents.agent import Agent
from cueline.errors import ConfigError, ToolFailedError
from cueline.errors.suggestion import known_instead
from cueline.tools.schema import Signature, at
from cueline.tools.tool import TIMEOUT_SECONDS, Image, Tool

if TYPE_CHECKING:
    import pydantic_ai

_DECLARED: Final = ("nothing", "read_only", "idempotent")


def from_pydantic_ai(
    target: str, *, name: str, declared: Mapping[str, str] | None = None, **fields: Any
) -> Agent:
    """Return the pydantic-ai agent at *target*, `module:name`, as an agent of cueline.

    Each process that calls the model or a tool imports *target*. The agent's instructions,
    settings and schemas are recorded with the session.

    Args:
        target: where other processes find the agent: `module:name`, or `path.py:name`.
        name: the name of the cueline agent.
        declared: `read_only` or `idempotent` for each tool whose calls may be repeated.
        fields: other fields of `cueline.Agent`, such as `limits`.

    Raises:
        ConfigError: there is no such agent, or a part of the agent cannot be translated.
    """
    agent, declared = loaded(target), declared or {}
    for reason in _untranslatable(agent):
        raise ConfigError(target, reason)
    tools = _tools(agent)
    for tool, said in declared.items():
        if tool not in tools:
            known = known_instead(tool, sorted(tools), "it has")
            raise ConfigError(target, f"declared: it has no tool {tool!r}{known}")
        if said not in _DECLARED:
            raise ConfigError(
                target, f"declared: {tool} is {said!r}; it can be {', '.join(_DECLARED)}"
            )
    source = target.replace(":", "/")
    told = {"instructions": _instructions(agent), "parameters": _settings(agent)}
    if agent.output_type is not str:
        told["output"] = agent.output_json_schema()
    targets = [f"{__name__}:{source}/{tool}/{declared.get(tool, 'nothing')}" for tool in tools]
    return Agent(
        name=name,
        provider=NAME,
        model=target,
        **{**told, **fields, "tools": [*targets, *fields.get("tools", ())]},
    )


def __getattr__(name: str) -> Tool:
    """Return the tool `MODULE/AGENT/TOOL/DECLARED` of a pydantic-ai agent.

    So `cueline.adapters.pydantic_ai:MODULE/AGENT/TOOL/DECLARED` is the target of a tool.
    """
    pieces = name.rsplit("/", 3)
    if len(pieces) < 4:  # noqa: PLR2004 - the fields of a name
        raise AttributeError(name)
    source, agent, tool, declared = pieces
    found = _tools(loaded(f"{source}:{agent}")).get(tool)
    if found is None:
        raise AttributeError(name)
    made = _tool(found, declared)
    globals()[name] = made  # so that the target of the tool names it
    return made


@dataclass(frozen=True, slots=True)
class _Arguments(Signature):
    """The arguments of a tool, checked by the validator of pydantic-ai."""

    tool: "pydantic_ai.Tool[Any]"

    def schema(self) -> dict[str, Any]:
        return dict(self.tool.function_schema.json_schema)

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        try:
            found = self.tool.function_schema.validator.validate_python(dict(arguments))
        except ValidationError as error:
            faults = (f"{at(e['loc'])}: {e['msg']}" for e in error.errors(include_url=False))
            raise ToolFailedError("invalid_arguments", "; ".join(faults)) from None
        return {"arguments": found}


def _tool(tool: "pydantic_ai.Tool[Any]", declared: Any) -> Tool:
    names = tuple(tool.function_schema.json_schema.get("properties", ()))

    async def call(arguments: dict[str, Any]) -> object:
        # Without a context, because a tool that takes a context is not translated.
        return _result(await tool.function_schema.call(arguments, None))  # type: ignore[arg-type]

    return Tool(
        name=tool.name,
        function=call,
        signature=_Arguments(
            tool.description or "", names, BaseModel, None, returns_text=False, tool=tool
        ),
        declared=declared,
        reconcile=None,
        sensitive=tool.requires_approval,
        version="1",
        timeout_seconds=tool.timeout or TIMEOUT_SECONDS,
        in_loop=tool.function_schema.is_async,
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


def _tools(agent: "pydantic_ai.Agent[Any, Any]") -> "dict[str, pydantic_ai.Tool[Any]]":
    return agent._function_toolset.tools


def _instructions(agent: "pydantic_ai.Agent[Any, Any]") -> str:
    told = [*agent._system_prompts, *(each.instruction for each in agent._instructions)]
    return "\n\n".join(map(str, told))


def _untranslatable(agent: "pydantic_ai.Agent[Any, Any]") -> Iterator[str]:
    """Yield the parts of *agent* that cueline cannot translate."""
    from pydantic_ai import Agent as Theirs
    from pydantic_ai.models import Model

    said = [each.instruction for each in agent._instructions]
    usual = {type(each) for each in Theirs().root_capability.capabilities}
    if not isinstance(agent.model, str | Model):
        yield f"its model is {agent.model!r}: give it one"
    for dynamic in (*said, *(each.function for each in agent._system_prompt_functions)):
        if not isinstance(dynamic, str):
            what = getattr(dynamic, "__name__", repr(dynamic))
            yield f"its instructions `{what}` are dynamic: cueline records static ones"
    if callable(agent.model_settings):
        yield "its model settings are a function: cueline records static ones"
    for capability in agent.root_capability.capabilities:
        if type(capability) not in usual:
            yield f"its capability {type(capability).__name__} has no counterpart"
    for toolset in agent.toolsets:
        if toolset is not agent._function_toolset:
            yield f"its toolset {type(toolset).__name__} is not translated: make tools of it"
    yield from _untranslatable_parts(agent)


def _untranslatable_parts(agent: "pydantic_ai.Agent[Any, Any]") -> Iterator[str]:
    for name, tool in _tools(agent).items():
        for unknown, why in (
            (tool.takes_ctx, "takes a RunContext: take what it needs from its module"),
            (tool.prepare, "has `prepare`, which changes it for each request"),
            (tool.args_validator, "has an `args_validator`"),
            (tool.sequential, "is sequential, and cueline may run other calls beside it"),
        ):
            if unknown:
                yield f"its tool `{name}` {why}"
    if agent._output_validators or agent._validation_context is not None:
        yield "its output has validators or a validation context: cueline checks a JSON schema"
    for output in _outputs(agent.output_type):
        if inspect.isroutine(output) or type(output).__name__ == "TextOutput":
            yield f"its output function {output!r} has no counterpart: call it with the result"
    if agent._event_hooks._registry:
        yield "it has hooks for events"


def _outputs(output: Any) -> Iterator[Any]:
    """Yield each type of an output, without its lists and markers."""
    inner = getattr(output, "outputs", None) or getattr(output, "output", None) or output
    if isinstance(inner, list | tuple):
        for each in inner:
            yield from _outputs(each)
    elif inner is not output and not isinstance(output, type):
        yield from _outputs(inner)
    else:
        yield output


def _settings(agent: "pydantic_ai.Agent[Any, Any]") -> dict[str, Any]:
    """Return the settings of *agent*, which apply to each request."""
    settings: Any = agent.model_settings
    return dict(settings or {})
