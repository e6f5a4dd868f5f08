"""Reads the tools, instructions, dependencies and output of a pydantic-ai agent.

It imports pydantic-ai, which is slow and may be absent: import this module when it is needed.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from types import NoneType
from typing import Any, Final

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_ai import (
    Agent,
    NativeOutput,
    PromptedOutput,
    RunContext,
    TextOutput,
    Tool,
    ToolDefinition,
)
from pydantic_ai._instructions import SourcedInstruction
from pydantic_ai._output import OutputToolset, _flatten_output_spec
from pydantic_ai._system_prompt import SystemPromptRunner
from pydantic_ai.durable_exec import DurableRunContext
from pydantic_ai.messages import InstructionPart
from pydantic_ai.output import _ChoicesActions
from pydantic_core import PydanticSerializationError, from_json, to_json

from cueline.errors import ConfigError, ToolFailedError
from cueline.tools.result import said_by
from cueline.tools.schema import at
from cueline.tools.target import fetch, locate

_INSTEAD: Final = {
    "MCPToolset": "name its server in `mcp`",
    "ExternalToolset": "its calls have no function; give each tool one",
}
_MADE_ANEW: Final = "it may change in each request; give the agent a FunctionToolset"


class EffectContext(DurableRunContext[Any]):
    """The `RunContext` of an effect; a field of the run raises `UserError` when it is read."""

    def unavailable_field_message(self, name: str) -> str:
        """See `DurableRunContext.unavailable_field_message`."""
        return (
            f"`RunContext.{name}` depends on the run, and cueline calls each function without "
            "one: take the value from the dependencies or the arguments"
        )


@dataclass(frozen=True)
class AgentTool:
    """A tool of an agent: a function, or a way to end the run with an output."""

    told: ToolDefinition
    """Its name and schema; its `kind` is `unapproved` if a person has to allow each call."""
    run: Callable[[dict[str, Any], RunContext[Any]], Awaitable[object]]
    retries: int
    """The most results in a row that ask the model to try again."""
    in_loop: bool = False


def tools_of(agent: Agent[Any, Any]) -> Iterator[AgentTool]:
    """Yield the tools of *agent*, and those whose calls are its output.

    Raises:
        ConfigError: a tool or toolset cannot be translated; the message says what to do instead.
    """
    for toolset in agent.toolsets:
        yield from _tools_in(toolset, agent)
    if (outputs := output_tools(agent)) is not None:
        for told in outputs._tool_defs:
            retries = outputs._max_retries_overrides.get(told.name, agent._max_output_retries)
            yield AgentTool(told, partial(_put_out, agent, outputs.processors[told.name]), retries)


def _tools_in(toolset: Any, agent: Agent[Any, Any]) -> Iterator[AgentTool]:
    inner = _tools_in(getattr(toolset, "wrapped", None), agent)
    # By the name of the class, because a subclass may do something else.
    match name := type(toolset).__name__:
        case "FunctionToolset" | "_AgentFunctionToolset":
            yield from (_of_function(t, toolset.timeout, agent) for t in toolset.tools.values())
        case "CombinedToolset":
            yield from chain.from_iterable(_tools_in(each, agent) for each in toolset.toolsets)
        case "PrefixedToolset":
            yield from (_but(tool, name=f"{toolset.prefix}_{tool.told.name}") for tool in inner)
        case "RenamedToolset":
            names = {old: new for new, old in toolset.name_map.items()}
            yield from (
                _but(tool, name=names.get(tool.told.name, tool.told.name)) for tool in inner
            )
        case "ApprovalRequiredToolset":
            yield from (_but(tool, kind="unapproved") for tool in inner)
        case "SetMetadataToolset":
            yield from inner
        case _:
            raise ConfigError(f"its toolset {name}", _INSTEAD.get(name, _MADE_ANEW))


def _but(tool: AgentTool, **changes: Any) -> AgentTool:
    return replace(tool, told=replace(tool.told, **changes))


def _of_function(tool: Tool[Any], timeout: float | None, agent: Agent[Any, Any]) -> AgentTool:
    for unknown, why in (
        (tool.prepare, "`prepare` changes it for each request"),
        (tool.sequential, "it is sequential, and cueline may run other calls beside it"),
        (tool.defer_loading, "`defer_loading` hides it, and cueline shows it from the start"),
    ):
        if unknown:
            raise ConfigError(f"its tool `{tool.name}`", f"{why}; leave that out")
    retries = agent._max_tool_retries if tool.max_retries is None else tool.max_retries
    told = replace(tool.tool_def, timeout=tool.timeout or timeout)
    return AgentTool(told, partial(_call, tool), retries, tool.function_schema.is_async)


async def _call(tool: Tool[Any], arguments: dict[str, Any], context: RunContext[Any]) -> object:
    found = _validated(tool.function_schema.validator, arguments, context)
    if tool.args_validator is not None:
        await _awaited(tool.args_validator(context, **found))
    return await tool.function_schema.call(found, context)


async def _put_out(
    agent: Agent[Any, Any], processor: Any, arguments: dict[str, Any], context: RunContext[Any]
) -> object:
    found = _validated(processor.validator, arguments, context)
    output = await processor.call(found, run_context=context, wrap_validation_errors=False)
    for validator in agent._output_validators:
        output = await validator.validate(output, context)
    return output


def _validated(validator: Any, arguments: dict[str, Any], context: RunContext[Any]) -> Any:
    try:
        return validator.validate_python(arguments, context=context.validation_context)
    except ValidationError as error:  # otherwise it comes from a function, which has run
        faults = (f"{at(e['loc'])}: {e['msg']}" for e in error.errors(include_url=False))
        raise ToolFailedError("invalid_arguments", "; ".join(faults)) from None


def output_tools(agent: Agent[Any, Any]) -> OutputToolset[Any] | None:
    """Return the tools with which *agent* ends; None if no code of it sees the output."""
    outputs = list(_outputs(agent.output_type))
    inner = [getattr(each, "output", each) for each in outputs]
    runs = any(inspect.isroutine(each) or _ChoicesActions.of(each) for each in inner)
    read = agent._validation_context is not None and outputs != [str]
    return OutputToolset.build(outputs) if runs or read or agent._output_validators else None


def _outputs(output: Any) -> Iterator[Any]:
    """Yield each type, function and `ToolOutput` of an output, without lists and markers."""
    for each in _flatten_output_spec(output):
        match each:
            case NativeOutput(outputs=several) | PromptedOutput(outputs=several):
                yield from _outputs(several)
            case TextOutput(output_function=function):
                yield function
            case _:
                yield each


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def recorded_deps(agent: Agent[Any, Any], deps: object) -> dict[str, JsonValue]:
    """Return the recorded form of the dependencies of *agent*, which `deps_of` reads.

    Raises:
        ConfigError: they are missing, or have no JSON form.
        ToolImportError: no other process could import the function that makes them.
    """
    if inspect.isroutine(deps):
        return {"deps_from": locate(deps, deps.__module__)}
    if deps is None and agent.deps_type in (object, NoneType):
        return {}
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(agent.deps_type)
        said = adapter.dump_json(deps, warnings="error")
        if adapter.validate_json(said) != deps:
            raise ValueError("it comes back as another value")  # noqa: TRY301 - as pydantic's own
    except (PydanticUserError, PydanticSerializationError, ValueError) as error:
        told = str(error).partition("\n")[0]
        why = f"JSON cannot record {deps!r} as {agent.deps_type}: {told}"
        raise ConfigError("deps", f"{why}; give such a value, or a function") from error
    return {"deps": from_json(said)}


async def deps_of(agent: Agent[Any, Any], recorded: Mapping[str, JsonValue]) -> Any:
    """Return the recorded dependencies, or new ones of the recorded function."""
    if "deps" in recorded:
        return TypeAdapter(agent.deps_type).validate_json(to_json(recorded["deps"]))
    make: Any = fetch(str(recorded["deps_from"])) if "deps_from" in recorded else None
    return None if make is None else await _awaited(make())


def instructions_of(agent: Agent[Any, Any], recorded: Mapping[str, JsonValue]) -> str:
    """Return the instructions of *agent*; functions are called now, once.

    Raises:
        ConfigError: a function fails, or needs more than the dependencies.
    """
    with ThreadPoolExecutor(1) as thread:  # because a loop may run in the current one
        told = thread.submit(asyncio.run, _instructions(agent, recorded)).result()
    return "\n\n".join(filter(None, told))


async def _instructions(agent: Agent[Any, Any], recorded: Mapping[str, JsonValue]) -> list[str]:
    leaves: list[Any] = []
    for toolset in agent.toolsets:
        toolset.apply(leaves.append)
    own = chain(agent._system_prompts, agent._system_prompt_functions, agent._instructions)
    told: list[str] = []
    for each in chain(own, *(toolset._instructions for toolset in leaves)):
        said: Any = each.instruction if isinstance(each, SourcedInstruction) else each
        if not isinstance(said, str | InstructionPart):
            function = getattr(said, "function", said)
            name = f"its instructions `{getattr(function, '__name__', repr(function))}`"
            if getattr(said, "dynamic", False) or getattr(each, "on_change", "") == "append":
                raise ConfigError(name, "they change in a run; cueline records them at its start")
            try:
                context = EffectContext(await deps_of(agent, recorded), agent=agent)
                said = await SystemPromptRunner(function).run(context) or ""
            except Exception as error:  # it is other people's code
                why = f"they are evaluated once, at the start: {said_by(error)}"
                raise ConfigError(name, why) from error
        told.append(said.content if isinstance(said, InstructionPart) else said)
    return told
