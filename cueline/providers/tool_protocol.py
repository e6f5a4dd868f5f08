"""Calls a model with the tools of its server, or with tools described as text.

The instructions describe the tools. The model writes a call as a JSON object between two
tags, and gets its result between two other tags, in the next message. Models learn this form
in training, and small models often miss a part of it, so the reader is lenient.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from cueline.actors.model_port import Delta, DeltaSink, ModelReply, ModelRequest
from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.events.agent import AgentSpec, ToolSpec
from cueline.events.message import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolCall,
    ToolMessage,
    UserMessage,
    canonical_json,
)
from cueline.providers.event_stream import CUT_CALL, tool_call
from cueline.providers.patience import TOOL_PROTOCOL
from cueline.providers.transcript import transcript

CALL: Final = "<tool_call>"
CALL_END: Final = "</tool_call>"
RESULT: Final = "<tool_response"
RESULT_END: Final = "</tool_response>"
UNREADABLE: Final = "unreadable"
"""The name of a call without a readable name; no tool has this name, so the model gets an error."""

_CALLS: Final = re.compile(f"{CALL}(.*?)({CALL_END}|(?={CALL})|$)", re.DOTALL)
_FENCE: Final = re.compile(r"\s*```\w*\s*\n(.*?)(?:\n\s*```\s*)?$", re.DOTALL)
_NAME: Final = re.compile(r"""["']name["']\s*:\s*["']([^"']+)["']""")
_ARGUMENTS: Final = ("arguments", "parameters")

_INTRODUCTION: Final = """\
# Tools

You can call the tools below. To call one, write its name and arguments as a JSON object \
between two tags:

<tool_call>
{"name": "NAME", "arguments": {"ARGUMENT": "VALUE"}}
</tool_call>

You can write several calls, one after the other. Stop after the last one: the next message \
holds the results, each in <tool_response> tags. Never write a <tool_response> yourself. \
Without a call, your answer is final.

Each line describes a tool, with the JSON schema of its arguments:
"""


class TextReply(Struct, frozen=True):
    """A reply with its calls read from the text."""

    text: str
    """The text that is left for the reader."""
    calls: tuple[ToolCall, ...] = ()


def instructions_with_tools(instructions: str, tools: Sequence[ToolSpec]) -> str:
    """Return *instructions*, with the form of calls if there are *tools*."""
    if not tools:
        return instructions
    described = (
        json.dumps(
            {"name": t.name, "description": t.description, "parameters": t.parameters},
            ensure_ascii=False,
        )
        for t in tools
    )
    told = "\n".join((_INTRODUCTION, *described))
    return f"{instructions.rstrip()}\n\n{told}" if instructions.strip() else told


def without_tools(agent: AgentSpec, messages: Iterable[bytes]) -> tuple[AgentSpec, Sequence[bytes]]:
    """Return *agent* with its tools in the instructions, and *messages* with calls as text."""
    told = instructions_with_tools(agent.instructions, agent.tools)
    asking = agent.model_copy(update={"instructions": told, "tools": ()})
    heard = as_text(transcript(messages, provider=agent.provider, model=agent.model))
    return asking, [canonical_json(message) for message in heard]


def prompted_request(request: ModelRequest) -> ModelRequest:
    """Return *request* for a model without tools."""
    agent, messages = without_tools(request.agent, request.messages)
    return replace(request, agent=agent, messages=messages)


def prompted_reply(reply: ModelReply, request: ModelRequest) -> ModelReply:
    """Return *reply* with the calls in its text; *request* is the request with the tools."""
    text = "".join(block.text for block in reply.content if isinstance(block, TextBlock))
    cut = reply.stop_reason == "max_tokens"
    read = read_reply(text, request.agent.tools, prefix=f"call_{request.turn}_", cut=cut)
    if not read.calls:
        return reply
    rest = tuple(block for block in reply.content if not isinstance(block, TextBlock))
    return replace(
        reply,
        content=(*rest, TextBlock(text=read.text)) if read.text else rest,
        calls=(*reply.calls, *read.calls),
        stop_reason=reply.stop_reason if cut else "tool_use",
    )


def as_text(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield *messages* with each call and result as text, for a model without tools.

    A result becomes a message of the user, and consecutive results become one.
    """
    names: dict[str, str] = {}
    results: list[ToolMessage] = []
    for message in messages:
        if not isinstance(message, ToolMessage) and results:
            yield _told(results, names)
            results = []
        match message:
            case ToolMessage():
                results.append(message)
            case AssistantMessage(content=content, calls=calls):
                names |= {call.id: call.name for call in calls}
                written = "\n".join(map(written_call, calls))
                said = (*content, TextBlock(text=written)) if calls else content
                yield AssistantMessage(content=said)
            case UserMessage():
                yield message
    if results:
        yield _told(results, names)


def _told(results: Sequence[ToolMessage], names: dict[str, str]) -> UserMessage:
    """Return one message with all *results*."""
    return UserMessage(
        text="\n".join(written_result(each, names.get(each.call, "")) for each in results),
        attachments=tuple(attached for each in results for attached in each.attachments),
    )


def written_call(call: ToolCall) -> str:
    """Return the text of a call, as the model writes it."""
    arguments = call.arguments if call.malformed is None else call.malformed
    told = json.dumps({"name": call.name, "arguments": arguments}, ensure_ascii=False)
    # In a text of JSON, `\u003c` is `<`: no value begins or ends a call.
    told = told.replace("<", "\\u003c")
    return f"{CALL}\n{told}\n{CALL_END}"


def written_result(result: ToolMessage, name: str) -> str:
    """Return the text of a result; no text in it ends the result."""
    failed = ' failed="true"' if result.failed else ""
    text = result.text.replace("</tool_response", "<\\/tool_response")
    return f"{RESULT} name={json.dumps(name)}{failed}>\n{text}\n{RESULT_END}"


def read_reply(
    text: str, tools: Sequence[ToolSpec], *, prefix: str, cut: bool = False
) -> TextReply:
    """Read the calls in *text*.

    A result that the model has invented is left out, with all text after it.

    Args:
        text: the whole text of a reply.
        tools: the tools that are described to the model.
        prefix: begins the ids of the calls; one reply has one prefix.
        cut: whether the reply reached its limit, so that a call without its end does not run.
    """
    before, _, _ = text.partition(RESULT)
    text = before if CALL in before else text
    found = list(_CALLS.finditer(text))
    if not found:
        bare = _bare_call(text, tools, prefix)
        return TextReply("", (bare,)) if bare is not None else TextReply(text)
    calls = []
    for index, match in enumerate(found):
        call = _read_call(match[1], f"{prefix}{index}")
        if cut and not match[2] and match.end() == len(text) and call.malformed is not None:
            call = call.model_copy(update={"problem": CUT_CALL})
        calls.append(call)
    return TextReply(_CALLS.sub("", text).strip(), tuple(calls))


def _bare_call(text: str, tools: Sequence[ToolSpec], prefix: str) -> ToolCall | None:
    """Return the call of a reply that is only the JSON of a call of a known tool."""
    told = _json_of(text)
    known = {tool.name for tool in tools}
    if not isinstance(told, dict) or not isinstance(told.get("name"), str):
        return None
    if told["name"] not in known or not any(key in told for key in _ARGUMENTS):
        return None
    return _read_call(text, f"{prefix}0")


def _read_call(text: str, call_id: str) -> ToolCall:
    """Return the call in *text*; an unreadable call is malformed."""
    told = _json_of(text)
    if isinstance(told, dict) and isinstance(told.get("name"), str) and told["name"].strip():
        given = next((told[key] for key in _ARGUMENTS if key in told), None)
        arguments = given if isinstance(given, str) else json.dumps({} if given is None else given)
        return tool_call(call_id, told["name"].strip(), arguments)
    named = _NAME.search(text)
    return ToolCall(id=call_id, name=named[1] if named else UNREADABLE, malformed=text.strip())


def _json_of(text: str) -> Any:
    """Return the JSON value that *text* begins with, perhaps within a fence; else None."""
    fenced = _FENCE.match(text)
    try:
        value, _ = json.JSONDecoder().raw_decode((fenced[1] if fenced else text).strip())
    except (ValueError, RecursionError):
        return None
    return value


class VisibleText:
    """Passes on the text of a reply while it arrives, without its calls."""

    def __init__(self, deltas: DeltaSink) -> None:
        self._deltas = deltas
        self._held = ""
        self._in_call = False

    def __call__(self, delta: Delta) -> None:
        """Take the next piece of a reply, as a `DeltaSink`."""
        if delta.kind == "text":
            self.add(delta.text)
        else:
            self._deltas(delta)

    def add(self, text: str) -> None:
        """Add the next piece of text."""
        self._held += text
        while self._held:
            tag = CALL_END if self._in_call else CALL
            before, found, after = self._held.partition(tag)
            if not found:
                break
            self._show(before)
            self._held, self._in_call = after, not self._in_call
        # Keep a text that may be the beginning of a tag.
        kept = _begun(self._held, CALL_END if self._in_call else CALL)
        self._show(self._held[: len(self._held) - kept])
        self._held = self._held[len(self._held) - kept :]

    def end(self) -> None:
        """Pass on the held-back text: the reply is over."""
        self._show(self._held)
        self._held = ""

    def _show(self, text: str) -> None:
        if text and not self._in_call:
            self._deltas(Delta("text", text))


def _begun(text: str, tag: str) -> int:
    """Return how many characters at the end of *text* begin *tag*."""
    longest = min(len(text), len(tag) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(tag[:n])), 0)


Ask = Callable[[ModelRequest, DeltaSink], Awaitable[ModelReply]]

NO_TOOLS: Final = re.compile(
    "not support (tool|function)|tools? (use )?(is|are) not supported|support tool use"
    "|function calling is not enabled|enable-auto-tool-choice|requires --jinja",
    re.IGNORECASE,
)
"""The errors for missing tools of Ollama, gateways, OpenRouter, Gemini, vLLM and llama.cpp."""


class ToolProtocol:
    """Calls the models of one account, and remembers the models without tools.

    The parameter `tool_protocol` of an agent decides whether tools are described as text. Without
    the parameter, this is done for the models of `learn`, and for models whose server refuses a
    request with tools; the refused request is then sent once more, without tools.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._without: set[str] = set()

    def learn(self, model: str) -> None:
        """Remember that *model* has no tools."""
        self._without.add(model)

    async def reply(self, request: ModelRequest, deltas: DeltaSink) -> ModelReply:
        """Return the reply; it raises as `Model.reply`."""
        agent = request.agent
        protocol = agent.parameters.get(TOOL_PROTOCOL)
        if not agent.tools or protocol == "native":
            return await self._ask(request, deltas)
        if protocol == "prompt":
            return await self._in_text(request, deltas)
        if agent.model not in self._without:
            try:
                return await self._ask(request, deltas)
            except (ProviderRefusedError, ProviderUnavailableError) as error:
                if not NO_TOOLS.search(error.message):
                    raise
            self.learn(agent.model)
        reply = await self._in_text(request, deltas)
        return replace(reply, lacking=("tools", *reply.lacking))

    async def _in_text(self, request: ModelRequest, deltas: DeltaSink) -> ModelReply:
        visible = VisibleText(deltas)
        reply = await self._ask(prompted_request(request), visible)
        visible.end()
        return prompted_reply(reply, request)


def as_asked(agent: AgentSpec, messages: Iterable[bytes]) -> tuple[AgentSpec, Sequence[bytes]]:
    """Return *agent* and *messages* in the form to send, by the agent's own parameter."""
    if agent.tools and agent.parameters.get(TOOL_PROTOCOL) == "prompt":
        return without_tools(agent, messages)
    return agent, list(messages)
