"""The provider `pydantic_ai`, which calls the model of a pydantic-ai agent."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from cueline.actors.model_port import Delta, DeltaSink, ModelReply, ModelRequest, drop_delta
from cueline.errors import (
    ConfigError,
    CuelineError,
    ProviderRefusedError,
    ProviderUnavailableError,
)
from cueline.events.agent import AgentSpec
from cueline.events.message import (
    AssistantMessage,
    Block,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from cueline.events.stream import is_compaction
from cueline.providers.account import Account
from cueline.providers.fault import fault_of
from cueline.providers.provider import Capabilities, Pause, Provider
from cueline.providers.transcript import transcript
from cueline.tools.target import fetch

if TYPE_CHECKING:
    import pydantic_ai
    from pydantic_ai import messages as theirs
    from pydantic_ai.models import StreamedResponse

    from cueline.adapters.pydantic_ai_parts import AgentTool

NAME: Final = "pydantic_ai"
TOOLS: Final = "cueline.adapters.pydantic_ai:"
"""How the target of a tool of a pydantic-ai agent begins."""
_STOPS: Final = {"stop": "end_turn", "length": "max_tokens", "tool_call": "tool_use"}
_MORE: Final = ("id", "provider_name", "provider_details")
"""The fields with the opaque data of a part of a reply, which only its vendor can use."""
_RETRIES: Final = {"retry": "model_retry", "invalid_arguments": "validation_error"}
"""The codes of failures after which the model is to try again, with pydantic-ai's words."""


def loaded(target: str) -> "pydantic_ai.Agent[Any, Any]":
    """Return the pydantic-ai agent at *target*.

    Raises:
        ConfigError: there is no such agent, or pydantic-ai is not installed.
    """
    try:
        import pydantic_ai
    except ImportError as error:
        why = f"pydantic-ai is missing ({error}): install cueline[pydantic-ai]"
        raise ConfigError(target, why) from error
    try:
        found = fetch(target)
    except CuelineError as error:
        raise ConfigError(target, f"the agent cannot be loaded: {error}") from error
    if not isinstance(found, pydantic_ai.Agent):
        raise ConfigError(target, f"it is a {type(found).__name__}, not a pydantic-ai Agent")
    return found


class PydanticAIModel:
    """Calls the model of the pydantic-ai agent that a request names; see `Model`."""

    async def reply(self, request: ModelRequest, deltas: DeltaSink = drop_delta) -> ModelReply:
        """See `Model.reply`."""
        from pydantic_ai import ModelSettings, ToolDefinition, exceptions
        from pydantic_ai.models import ModelRequestParameters

        from cueline.adapters.pydantic_ai_turn import as_call, check_retries, output_of

        agent = request.agent
        history, own = _history(agent, request.messages), _own_tools(request)
        check_retries(history, own)
        if (output := output_of(history, own)) is not None:
            said = (TextBlock(text=output),)
            return ModelReply(content=said, stop_reason="end_turn", model=agent.model)
        tools = [
            ToolDefinition(
                name=tool.name, description=tool.description, parameters_json_schema=tool.parameters
            )
            for tool in agent.tools
        ]
        most = agent.limits.max_output_tokens
        settings: dict[str, Any] = {"max_tokens": most, **agent.parameters}
        settings["max_tokens"] = min(most, settings["max_tokens"] or most)
        asking = {
            "model": loaded(agent.model).model,
            "messages": history,
            "model_settings": ModelSettings(**settings),  # type: ignore[typeddict-item]
            "model_request_parameters": ModelRequestParameters(function_tools=tools),
        }
        try:
            response = await _response(asking, deltas)
        except exceptions.ModelHTTPError as error:
            raise fault_of(error.status_code, None, str(error), error.headers or {}) from error
        except exceptions.ContentFilterError as error:
            raise ProviderRefusedError("content_filtered", str(error)) from error
        except exceptions.UnexpectedModelBehavior as error:
            raise ProviderUnavailableError("malformed_reply", str(error)) from error
        except exceptions.ModelAPIError as error:
            raise ProviderUnavailableError("unavailable", str(error), error.retry_after) from error
        except (exceptions.AgentRunError, exceptions.UserError) as error:
            raise ProviderRefusedError("invalid_request", str(error)) from error
        return as_call(_reply(response), own, request.effect)

    async def close(self) -> None:
        """See `Model.close`."""


def _own_tools(request: ModelRequest) -> "list[AgentTool]":
    """Return the tools of the pydantic-ai agent that the request offers; none for a summary."""
    from cueline.adapters.pydantic_ai_parts import tools_of

    offered = {tool.name for tool in request.agent.tools if tool.target.startswith(TOOLS)}
    if not offered or is_compaction(request.effect):
        return []
    return [tool for tool in tools_of(loaded(request.agent.model)) if tool.told.name in offered]


async def _response(asking: dict[str, Any], deltas: DeltaSink) -> "theirs.ModelResponse":
    """Return the response; it is streamed if the model supports streams."""
    from pydantic_ai.direct import model_request, model_request_stream

    async with AsyncExitStack() as opened:
        try:
            stream = await opened.enter_async_context(model_request_stream(**asking))
        except (NotImplementedError, AssertionError):  # a `FunctionModel` raises `AssertionError`
            response = await model_request(**asking)
            for part in response.parts:
                _show(part, deltas)
            return response
        await _show_all(stream, deltas)
        response = stream.get()
    if response.state != "complete":
        raise ProviderUnavailableError("malformed_reply", "the stream ended before the reply")
    return response


async def _show_all(stream: "StreamedResponse", deltas: DeltaSink) -> None:
    from pydantic_ai import exceptions
    from pydantic_ai import messages as theirs

    try:
        async for event in stream:
            if isinstance(event, theirs.PartStartEvent):
                _show(event.part, deltas)
            elif isinstance(event, theirs.PartDeltaEvent):
                _show(event.delta, deltas)
    except (exceptions.AgentRunError, exceptions.UserError):
        raise
    except Exception as error:  # any client of the model may raise it
        why = f"the stream broke off ({type(error).__name__}: {error})"
        raise ProviderUnavailableError("network", why) from error


def _show(part: Any, deltas: DeltaSink) -> None:
    """Pass on the text or thought of *part*, a part of a response or a piece of a part."""
    text = getattr(part, "content_delta", None) or getattr(part, "content", None)
    kind = part.part_kind if hasattr(part, "part_kind") else part.part_delta_kind
    if text and kind in {"text", "thinking"}:
        deltas(Delta(kind, text))


@cache
def _part() -> TypeAdapter[Any]:
    from pydantic_ai.messages import ModelResponsePart

    return TypeAdapter(ModelResponsePart)


def _reply(response: "theirs.ModelResponse") -> ModelReply:
    from pydantic_ai import messages as theirs

    content: list[Block] = []
    calls: list[ToolCall] = []
    for part in response.parts:
        match part:
            case theirs.TextPart():
                content.append(TextBlock(text=part.content))
            case theirs.ToolCallPart():
                calls.append(_call(part))
            case _:
                # People see a thought as a separate block; the vendor gets the whole part again.
                if isinstance(part, theirs.ThinkingPart) and part.content:
                    content.append(ThinkingBlock(text=part.content, provider=NAME))
                content.append(
                    OpaqueBlock(provider=NAME, data=_part().dump_python(part, mode="json"))
                )
    used = response.usage
    cached = used.cache_read_tokens + used.cache_write_tokens
    return ModelReply(
        content=tuple(content),
        calls=tuple(calls),
        stop_reason="tool_use" if calls else _STOPS.get(response.finish_reason or "stop", "other"),
        usage=Usage(
            input=max(used.input_tokens - cached, 0),
            output=used.output_tokens,
            cache_read=used.cache_read_tokens,
            cache_write=used.cache_write_tokens,
        ),
        model=response.model_name or "",
    )


def _call(part: "theirs.ToolCallPart") -> ToolCall:
    more = {key: value for key in _MORE if (value := getattr(part, key))}
    opaque = OpaqueBlock(provider=NAME, data=more) if more else None
    try:
        given: dict[str, Any] = {"arguments": part.args_as_dict(raise_if_invalid=True)}
    except (ValueError, AssertionError):
        given = {"malformed": part.args_as_json_str()}
    return ToolCall(id=part.tool_call_id, name=part.tool_name, opaque=opaque, **given)


def _history(agent: AgentSpec, messages: Iterable[bytes]) -> "list[theirs.ModelMessage]":
    """Return the prompt in the form of pydantic-ai: requests and responses alternate."""
    from pydantic_ai import messages as theirs

    history: list[theirs.ModelMessage] = []
    names: dict[str, str] = {}
    for message in transcript(messages, provider=NAME):
        if isinstance(message, AssistantMessage):
            names = {call.id: call.name for call in message.calls}
            history.append(theirs.ModelResponse(parts=list(_said(message))))
            continue
        part = _asked(message, names)
        if history and isinstance(last := history[-1], theirs.ModelRequest):
            history[-1] = replace(last, parts=[*last.parts, part])
        else:
            told = agent.instructions or None
            history.append(theirs.ModelRequest(parts=[part], instructions=told))
    return history


def _said(message: AssistantMessage) -> "Iterator[theirs.ModelResponsePart]":
    from pydantic_ai import messages as theirs

    for block in message.content:
        match block:
            case TextBlock():
                yield theirs.TextPart(block.text)
            case OpaqueBlock():
                yield _part().validate_python(block.data)
            case ThinkingBlock(provider="", text=text):  # otherwise the next block has it
                yield theirs.ThinkingPart(text)
    for call in message.calls:
        more: dict[str, Any] = call.opaque.data if call.opaque else {}
        given = call.arguments if call.malformed is None else call.malformed
        yield theirs.ToolCallPart(call.name, given, call.id, **more)


def _asked(message: UserMessage | ToolMessage, names: Mapping[str, str]) -> Any:
    from pydantic_ai import messages as theirs

    files = [
        theirs.BinaryContent(base64.b64decode(each.data), media_type=each.media_type)
        for each in message.attachments
    ]
    content: Any = [message.text, *files] if files else message.text
    if isinstance(message, UserMessage):
        return theirs.UserPromptPart(content)
    kind, _, said = message.text.partition(": ")
    if message.failed and kind in _RETRIES:
        retry: Any = theirs.RetryInfo(cause=_RETRIES[kind])
        return theirs.ToolReturnPart(
            names[message.call], said, message.call, outcome="retried", retry=retry
        )
    return theirs.ToolReturnPart(
        names[message.call],
        content,
        message.call,
        outcome="failed" if message.failed else "success",
    )


def make(_account: Account, _pause: Pause) -> PydanticAIModel:
    """Return the model of every pydantic-ai agent."""
    return PydanticAIModel()


def check(agent: AgentSpec) -> None:
    """Check that the pydantic-ai agent can be loaded.

    Raises:
        ConfigError: it cannot be loaded.
    """
    loaded(agent.model)


PROVIDER: Final = Provider(
    name=NAME,
    capabilities=Capabilities(images=True, files=True, thinking=True, needs_key=False),
    make=make,
    check=check,
)
