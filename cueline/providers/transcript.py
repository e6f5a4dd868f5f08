"""Prepares the transcript for a provider.

Vendors refuse some messages: a repeated id of a call, a call without a result, a blank
text, another vendor's thoughts. One such message would fail every later request of the
session. So the message is changed here, and the log keeps the original. Later messages do
not change the result of earlier ones, so the prefix of a prompt stays the same.
"""

import base64
import json
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter

from cueline.events.agent import AgentSpec
from cueline.events.message import (
    AssistantMessage,
    Attachment,
    Block,
    FileBlock,
    ImageBlock,
    Message,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolMessage,
    UserMessage,
)

BLANK: Final = "(empty)"
NO_RESULT: Final = "(no result)"
UNKNOWN_LETTER: Final = re.compile(r"[^a-zA-Z0-9_-]")
LONGEST_NAME: Final = 64
LONGEST_ID: Final = 40
Said = TypeVar("Said", UserMessage, ToolMessage)
_MESSAGE: Final[TypeAdapter[Message]] = TypeAdapter(Message)


class CallIds:
    """The ids of calls to send, all different."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._unanswered: defaultdict[str, deque[str]] = defaultdict(deque)

    def sent_for(self, call_id: str) -> str:
        """Return the id to send for a call with the id *call_id*."""
        first = sent = UNKNOWN_LETTER.sub("_", call_id)[:LONGEST_ID] or "call"
        number = len(self._taken)
        while sent in self._taken:
            sent = f"{first[: LONGEST_ID - len(str(number)) - 1]}-{number}"
            number += 1
        self._taken.add(sent)
        self._unanswered[call_id].append(sent)
        return sent

    def answered(self, call_id: str) -> str | None:
        """Return the id to send with the next result for *call_id*.

        Several calls with one id get their results in order. Returns None if each call of the last
        reply with this id has a result.
        """
        return self._unanswered[call_id].popleft() if self._unanswered.get(call_id) else None

    def forget(self) -> None:
        """Expect no further results of the earlier calls."""
        self._unanswered.clear()


def sent_name(call: ToolCall) -> str:
    """Return the name to send for a call."""
    return UNKNOWN_LETTER.sub("_", call.name)[:LONGEST_NAME] or "_"


def sent_arguments(call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call as an object, malformed ones as Anthropic advises.

    See "Handling invalid JSON in tool responses" in
    platform.claude.com/docs/en/agents-and-tools/tool-use/fine-grained-tool-streaming.
    """
    return call.arguments if call.malformed is None else {"INVALID_JSON": call.malformed}


def written_arguments(call: ToolCall, *, unparsed: bool) -> str:
    """Return the arguments of a call as text.

    Malformed arguments are sent unchanged if the server leaves them *unparsed*; otherwise they
    are wrapped in JSON.
    """
    if unparsed and call.malformed is not None:
        return call.malformed
    return json.dumps(sent_arguments(call), separators=(",", ":"))


def function_tools(agent: AgentSpec) -> list[dict[str, Any]]:
    """Return the agent's tools in the form that Chat Completions and Ollama share."""
    said = ("name", "description", "parameters")
    return [
        {"type": "function", "function": {name: getattr(tool, name) for name in said}}
        for tool in agent.tools
    ]


def transcript(
    messages: Iterable[bytes],
    *,
    provider: str,
    model: str = "",
    images: bool = True,
    files: bool = True,
) -> Iterator[Message]:
    """Yield *messages* in a form that any vendor takes.

    After a reply there is one result for each of its calls, in the order of the calls, then the
    messages of people. A result without a call and a reply without content are left out. No text
    is blank.

    Args:
        messages: each is a `Message` in canonical JSON.
        provider: thoughts and opaque data of other providers are left out.
        model: opaque data of other models is left out.
        images: whether images can be sent; else a text replaces each.
        files: whether documents can be sent; else their text, or a text that names them.
    """
    ids = CallIds()
    asked: dict[str, ToolMessage | None] = {}
    said: list[UserMessage] = []
    for encoded in messages:
        match _MESSAGE.validate_json(encoded):
            case AssistantMessage() as reply:
                yield from _answers(asked, said)
                ids.forget()
                blocks = tuple(b for b in reply.content if _is_sent(b, provider, model))
                calls = tuple(_sent_call(call, ids, provider, model) for call in reply.calls)
                asked, said = dict.fromkeys(call.id for call in calls), []
                if blocks or calls:
                    same = blocks == reply.content and calls == reply.calls
                    yield reply if same else AssistantMessage(content=blocks, calls=calls)
            case ToolMessage() as result:
                if (sent := ids.answered(result.call)) is not None:
                    content = _content(result, images=images, files=files)
                    asked[sent] = _changed(result, {"call": sent, **content})
            case UserMessage() as message:
                content = _content(message, images=images, files=files)
                blank = not content["text"].strip() and not content["attachments"]
                said.append(_changed(message, content | ({"text": BLANK} if blank else {})))
    yield from _answers(asked, said)


def _answers(asked: dict[str, ToolMessage | None], said: list[UserMessage]) -> Iterator[Message]:
    """Yield the results of all calls, then the messages of people."""
    for call, result in asked.items():
        yield result or ToolMessage(call=call, text=NO_RESULT, failed=True)
    yield from said


def _is_sent(block: Block | OpaqueBlock | None, provider: str, model: str) -> bool:
    """Whether *block* may be sent to this provider and model."""
    match block:
        case TextBlock(text=text):
            return bool(text.strip())
        case ThinkingBlock():
            return block.provider in {"", provider}
        case OpaqueBlock():
            return block.provider == provider and block.model in {"", model}
        case _:
            return False


def _sent_call(call: ToolCall, ids: CallIds, provider: str, model: str) -> ToolCall:
    opaque = call.opaque if _is_sent(call.opaque, provider, model) else None
    sent, name = ids.sent_for(call.id), sent_name(call)
    if (sent, name, opaque) == (call.id, call.name, call.opaque):
        return call
    return call.model_copy(update={"id": sent, "name": name, "opaque": opaque})


def _changed(message: Said, update: dict[str, Any]) -> Said:
    """Return *message* with *update*; most messages need no update, and are not copied."""
    if all(getattr(message, field) == value for field, value in update.items()):
        return message
    return message.model_copy(update=update)


def _content(message: UserMessage | ToolMessage, *, images: bool, files: bool) -> dict[str, Any]:
    """Return text and attachments with a text instead of each attachment that cannot be sent."""
    if not message.attachments:
        return {"text": message.text, "attachments": ()}
    left_out = [a for a in message.attachments if not (images if a.kind == "image" else files)]
    kept = tuple(a for a in message.attachments if a not in left_out)
    text = "\n\n".join(filter(None, [message.text, *map(note_of, left_out)]))
    return {"text": text, "attachments": kept}


def note_of(attachment: Attachment) -> str:
    """Return the text that replaces *attachment*: the content of a text file, else a note."""
    match attachment:
        case ImageBlock():
            return f"({attachment.media_type} left out: this model takes no images)"
        case FileBlock(media_type=media_type, name=name):
            if media_type.startswith("text/"):
                return f"{name}:\n{text_of(attachment)}"
            return f"({name}, {media_type}, left out: this model takes no such files)"


def text_of(file: FileBlock) -> str:
    """Return the content of a text file."""
    return base64.b64decode(file.data).decode(errors="replace")
