"""Folds a session's events into the prompt: the messages that each event adds.

The session's state holds only digests. The model's caller folds the messages here
from the same events, and gets identical bytes after every resume. A request's
digest chains the messages' digests, so it takes constant time a turn.

Order: the model's reply; with the next request the results of its calls in call
order, then the messages of this request, then warnings about limits.
"""

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any, Final

from cueline.deciders.child_text import callback_of, callback_text, fenced, paused_text
from cueline.deciders.tool_search import as_asked
from cueline.events.agent import AgentSpec
from cueline.events.fact import Part
from cueline.events.inbox import ChildPaused, MessageSent
from cueline.events.message import (
    Arguments,
    Attachment,
    ImageBlock,
    TextBlock,
    ToolCall,
    UserMessage,
    assistant_json,
    tool_json,
)
from cueline.events.session import (
    LimitWarned,
    ModelReplied,
    SessionEvent,
    SessionForked,
    SessionStarted,
    ToolFailed,
    ToolReconciled,
    ToolReturned,
    ToolSkipped,
    calls_of,
)
from cueline.events.stream import effect_of, is_compaction

PROMPT_FOLD: Final = 1
"""The version of this fold; raised when a fact adds other messages than in the earlier version."""

FORKED_AWAY = "This call belongs to the session this was forked from; it was not run here."

_OPENING: Final[Any] = {
    "provider": True,
    "model": True,
    "parameters": True,
    "instructions": True,
    "tools": {"__all__": {"name", "description", "parameters"}},
}

TOOL: Final = b'{"role":"tool"'
"""The first bytes of the message of a tool call's result."""

SUMMARY = "Earlier messages were replaced by this summary of them:"

PARAMETERS = "The parameters:"

GO_ON = "The work can do without this tool: go on, and say what is missing."

_NONE: Final[dict[str, Any]] = {}
"""The empty dict of calls or results; it is replaced, and never changed."""
_last_said: list[tuple[ModelReplied | None, bytes]] = [(None, b"")]


def encode(message: Part) -> bytes:
    """Return a message in canonical JSON."""
    return message.__pydantic_serializer__.to_json(message)


def fingerprint(message: bytes) -> str:
    """Return the digest of one encoded message."""
    return hashlib.sha256(message).hexdigest()


def opening_digest(agent: AgentSpec) -> str:
    """Return the digest of the prompt's start: model, system prompt and tools."""
    return fingerprint(agent.model_dump_json(include=_OPENING).encode())


def chain_digest(previous: str, fingerprint: str) -> str:
    """Return the digest of a prompt extended by the message of *fingerprint*."""
    return hashlib.sha256(f"{previous}{fingerprint}".encode()).hexdigest()


def assistant_message(replied: ModelReplied) -> bytes:
    """Return the model's reply as a message.

    A resume needs the message twice in a row, for the state's digest and for the prompt, and
    it takes 1.6 us to create. So the last result is cached, together with its fact.
    """
    fact, said = _last_said[0]
    if fact is not replied:
        calls = replied.calls
        for call in calls:
            if call.by_name:
                calls = tuple(map(as_asked, calls))
                break
        said = assistant_json(replied.content, calls)
        _last_said[0] = replied, said
    return said


@lru_cache(maxsize=1)  # needed twice, as the reply
def tool_message(
    call_id: str, text: str, *, failed: bool, images: Sequence[ImageBlock] = ()
) -> bytes:
    """Return the result of one call as a message."""
    return tool_json(call_id, text, failed=failed, attachments=images)


def user_message(text: str, attachments: tuple[Attachment, ...] = ()) -> bytes:
    """Return a user's message."""
    return encode(UserMessage(text=text, attachments=attachments))


def summary_message(replied: ModelReplied) -> bytes:
    """Return the message with the summary, which replaces the summarised messages."""
    text = "\n".join(block.text for block in replied.content if isinstance(block, TextBlock))
    return user_message(f"{SUMMARY}\n\n{text}")


def result_of(event: SessionEvent) -> tuple[str, bool] | None:
    """Return a call's result for the model, and whether it failed; None without a call's end."""
    match event:
        case ToolReturned(child=""):
            return event.output, False
        case ToolReturned():
            return fenced(event.child, event.output), False
        case ToolFailed(retry_at=None, kind=kind, degraded=True):
            return f"{kind}: {_message_of(event)}\n{GO_ON}", True
        case ToolSkipped(reason=reason, degraded=True):
            return f"{reason}\n{GO_ON}", True
        case ToolFailed(retry_at=None, kind=kind):
            return f"{kind}: {_message_of(event)}", True
        case ToolSkipped(reason=reason):
            return reason, True
        case ToolReconciled(outcome="happened", output=output):
            return output, False
        case ToolReconciled(outcome="unknown", output=output) if output:
            return output, False
        case _:
            return None


def _message_of(failed: ToolFailed) -> str:
    return fenced(failed.child, failed.message) if failed.child else failed.message


def images_of(event: SessionEvent) -> tuple[ImageBlock, ...]:
    """Return the image that a call returned; empty if *event* has no image."""
    if event.type != "ToolReturned" or not event.image:
        return ()
    return (ImageBlock(media_type=event.media_type, data=event.image),)


def opening_messages(event: SessionStarted | SessionForked) -> list[bytes]:
    """Return the messages that a session's first fact adds."""
    if isinstance(event, SessionForked):
        return [user_message(text) for text in (event.note, event.goal) if text]
    texts = [event.goal] if event.goal else []
    if event.parameters:
        texts.append(f"{PARAMETERS}\n{json.dumps(event.parameters, ensure_ascii=False)}")
    if not texts and not event.attachments:
        return []
    return [user_message("\n\n".join(texts), event.attachments)]


def warning_messages(event: LimitWarned) -> list[bytes]:
    """Return the messages for the model about a nearly used-up limit."""
    return [user_message(event.note)] if event.note else []


def calls_after(prompt: "Prompt", events: Sequence[SessionEvent]) -> dict[str, ToolCall]:
    """Return the calls of the current turn after *events*, which *prompt* does not include yet."""
    after = Prompt()
    after.calls = prompt.calls
    for event in events:
        if event.type in ("ModelReplied", "ApprovalResolved", "CallsAdded"):
            after.add(event)
    return after.calls


class Prompt:
    """The messages of one session, encoded; dropped when the session waits."""

    __slots__ = (
        "_covered",
        "_mail",
        "_notes",
        "_opening",
        "_results",
        "_summary",
        "calls",
        "summarised",
        "transcript",
    )

    def __init__(self) -> None:
        self.transcript: list[bytes] = []
        """All messages up to the last `ModelRequested`; the list only grows."""
        self.summarised = 0
        """The number of the oldest messages that the summary replaces."""
        self._summary = b""
        """The newest summary, which requests contain after its `ContextCompacted`."""
        self._covered = 0
        """The number of the oldest messages that the digest `_opening` includes."""
        self._opening = ""
        self.calls: dict[str, ToolCall] = _NONE
        """The calls of the current turn, by effect."""
        self._results: dict[str, bytes] = _NONE
        self._mail: dict[int, list[bytes]] = {}
        self._notes: tuple[bytes, ...] = ()

    @property
    def messages(self) -> list[bytes]:
        """The messages of the next request, up to the last `ModelRequested`."""
        if not self.summarised:
            return self.transcript
        return [self._summary, *self.transcript[self.summarised :]]

    @property
    def digest(self) -> str:
        """The digest of all messages, as `ModelRequested` records it."""
        return reduce(
            chain_digest, map(fingerprint, self.transcript[self._covered :]), self._opening
        )

    @property
    def rest(self) -> tuple[Any, ...]:
        """The folded data without the messages, for a snapshot."""
        summary = (self.summarised, self._summary, self._covered)
        return self._opening, self.calls, self._results, self._mail, self._notes, *summary

    @rest.setter
    def rest(self, rest: tuple[Any, ...]) -> None:
        self._opening, self.calls, self._results, self._mail, self._notes = rest[:5]
        self.summarised, self._summary, self._covered = rest[5:]

    def add(self, event: SessionEvent) -> None:
        """Add the messages of one fact."""
        match event.type:
            case "ToolReturned" | "ToolFailed" | "ToolSkipped" | "ToolReconciled":
                self._close(event.effect, result_of(event), images_of(event))
            case "ModelRequested":
                if not is_compaction(event.effect):
                    self._present(event.messages)
            case "ModelReplied" if event.cut is not None:
                self._summary = summary_message(event)
            case "ContextCompacted":
                self.summarised, self._covered = event.cut.messages, event.cut.of
                self._opening = event.digest
            case "ModelReplied":
                self.transcript.append(assistant_message(event))
                self.calls = calls_of(event)
            case "CallsAdded":
                left = {e: call for e, call in self.calls.items() if e not in self._results}
                self.calls, self._results = left | event.calls, _NONE
            case "MessageReceived":
                if isinstance(event.message, MessageSent):
                    self._mail[event.inbox_version] = [
                        user_message(event.message.text, event.message.attachments)
                    ]
                elif (ended := callback_of(event)) is not None:
                    self._mail[event.inbox_version] = [user_message(callback_text(ended))]
                elif isinstance(event.message, ChildPaused) and event.message.reason:
                    self._mail[event.inbox_version] = [user_message(paused_text(event.message))]
                elif event.gate_answer is not None and event.gate_answer.told:
                    self._mail[event.inbox_version] = [user_message(event.gate_answer.told)]
            case "ApprovalResolved":
                if event.edit is not None:
                    self._edit(effect_of(event.approval), event.edit)
            case "SessionStarted":
                self._opening = opening_digest(event.agent)
                self._mail[1] = opening_messages(event)
            case "LimitWarned":
                self._notes = (*self._notes, *warning_messages(event))
            case "SessionForked":
                for effect in self.calls.keys() - self._results.keys():
                    self._close(effect, (FORKED_AWAY, True))
                waiting = [message for messages in self._mail.values() for message in messages]
                self._mail = {1: [*waiting, *opening_messages(event)]}
                self._notes = ()  # of limits that the fork has not used yet
            case _:
                pass

    def _edit(self, effect: str, arguments: Arguments) -> None:
        """Replace the arguments of the call *effect* with the edited *arguments*."""
        if effect in self.calls:
            changed = self.calls[effect].model_copy(update={"arguments": arguments})
            self.calls = {**self.calls, effect: changed}

    def _close(
        self, effect: str, result: tuple[str, bool] | None, images: Sequence[ImageBlock] = ()
    ) -> None:
        if result is not None and effect in self.calls and effect not in self._results:
            text, failed = result
            said = tool_message(self.calls[effect].id, text, failed=failed, images=images)
            self._results = self._results or {}  # a copy for each of 1,000 results is slow
            self._results[effect] = said

    def _present(self, versions: tuple[int, ...]) -> None:
        for effect in self.calls:
            if effect in self._results:
                self.transcript.append(self._results[effect])
        self.calls, self._results = _NONE, _NONE
        for version in versions:
            self.transcript.extend(self._mail.pop(version, ()))
        if not self._mail:
            self._mail.clear()  # a popped list keeps its memory: 160 bytes a session
        self.transcript.extend(self._notes)
        self._notes = ()
