"""The prompt as a fold: which message an event adds.

The state of a session keeps only digests; who calls the model folds the bodies
here, from the same events, and gets byte-identical messages after every
resume. A request's digest chains the messages' digests, so it is O(1) a turn.

Order: what the model said; at the next request the results of its calls in
call order, then the messages that this request tells it, then what it is told
of its limits.
"""

import hashlib
from functools import reduce
from typing import Any, Final

from cueline.events.agent import AgentSpec, Part
from cueline.events.inbox import MessageSent
from cueline.events.message import Arguments, ToolCall, UserMessage, assistant_json, tool_json
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
from cueline.events.stream import effect_of

PROMPT_FOLD: Final = 1
"""The number of this fold: raised when a fact comes to other messages than before."""

FORKED_AWAY = "This call belongs to the session this was forked from; it was not run here."

_OPENING: Final[Any] = {
    "provider": True,
    "model": True,
    "parameters": True,
    "instructions": True,
    "tools": {"__all__": {"name", "description", "parameters"}},
}

GO_ON = "The work can do without this tool: go on, and say what is missing."

_last_said: list[tuple[ModelReplied | None, bytes]] = [(None, b"")]


def encode(message: Part) -> bytes:
    """Return a message in canonical JSON."""
    return message.__pydantic_serializer__.to_json(message)


def fingerprint(message: bytes) -> str:
    """Return the digest of one encoded message."""
    return hashlib.sha256(message).hexdigest()


def opening_digest(agent: AgentSpec) -> str:
    """Return the digest of what comes before all messages: model, system prompt and tools."""
    return fingerprint(agent.model_dump_json(include=_OPENING).encode())


def chain_digest(previous: str, fingerprint: str) -> str:
    """Return the digest of a prompt that goes on with the message of *fingerprint*."""
    return hashlib.sha256(f"{previous}{fingerprint}".encode()).hexdigest()


def assistant_message(replied: ModelReplied) -> bytes:
    """Return what the model said.

    Who resumes asks twice in a row, for the state's digest and for the prompt:
    the last answer is kept, for to make it takes 1.6 us. It is kept with the
    fact itself, so that no other can be taken for it.
    """
    fact, said = _last_said[0]
    if fact is not replied:
        said = assistant_json(replied.content, replied.calls)
        _last_said[0] = replied, said
    return said


def tool_message(call_id: str, text: str, *, failed: bool) -> bytes:
    """Return what the model is told of one call."""
    return tool_json(call_id, text, failed=failed)


def user_message(text: str) -> bytes:
    """Return what a person says."""
    return encode(UserMessage(text=text))


def result_of(
    event: ToolReturned | ToolFailed | ToolSkipped | ToolReconciled,
) -> tuple[str, bool] | None:
    """Return what the model is told of the call, and whether it failed; None if it goes on."""
    match event:
        case ToolReturned():
            return event.output, False
        case ToolFailed(retry_at=None, kind=kind, message=message, degraded=True):
            return f"{kind}: {message}\n{GO_ON}", True
        case ToolSkipped(reason=reason, degraded=True):
            return f"{reason}\n{GO_ON}", True
        case ToolFailed(retry_at=None, kind=kind, message=message):
            return f"{kind}: {message}", True
        case ToolSkipped(reason=reason):
            return reason, True
        case ToolReconciled(outcome="happened", output=output):
            return output, False
        case ToolReconciled(outcome="unknown", output=output) if output:
            return output, False
        case _:
            return None


def opening_messages(event: SessionStarted | SessionForked) -> list[bytes]:
    """Return what a session's first fact tells the model."""
    texts = [event.goal] if isinstance(event, SessionStarted) else [event.note, event.goal]
    return [user_message(text) for text in texts if text]


def warning_messages(event: LimitWarned) -> list[bytes]:
    """Return what a warning tells the model."""
    return [user_message(event.note)] if event.note else []


class Prompt:
    """The messages of one session, encoded; dropped when the session rests."""

    __slots__ = ("_mail", "_notes", "_opening", "_results", "calls", "messages")

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        """What the next request sends, up to the last `ModelRequested`."""
        self._opening = ""
        self.calls: dict[str, ToolCall] = {}
        """The calls of the current turn by effect."""
        self._results: dict[str, bytes] = {}
        self._mail: dict[int, list[bytes]] = {}
        self._notes: tuple[bytes, ...] = ()

    @property
    def digest(self) -> str:
        """Of all messages, as `ModelRequested` records it: the state chains its own as it goes."""
        return reduce(chain_digest, map(fingerprint, self.messages), self._opening)

    @property
    def rest(self) -> tuple[Any, ...]:
        """All that is folded but for the messages, as a snapshot keeps it."""
        return self._opening, self.calls, self._results, self._mail, self._notes

    @rest.setter
    def rest(self, rest: tuple[Any, ...]) -> None:
        self._opening, self.calls, self._results, self._mail, self._notes = rest

    def add(self, event: SessionEvent) -> None:
        """Take in one fact; by its type's name, as in `session.evolve`."""
        match event.type:
            case "ToolReturned" | "ToolFailed" | "ToolSkipped" | "ToolReconciled":
                self._close(event.effect, result_of(event))
            case "ModelRequested":
                self._present(event.messages)
            case "ModelReplied":
                self.messages.append(assistant_message(event))
                self.calls = calls_of(event)
            case "MessageReceived":
                if isinstance(event.message, MessageSent):
                    self._mail[event.inbox_version] = [user_message(event.message.text)]
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
                self._notes = ()  # of limits of which the fork has used nothing
            case _:
                pass

    def _edit(self, effect: str, arguments: Arguments) -> None:
        """Take the arguments with which a person allowed the call: what the tool gets."""
        if effect in self.calls:
            changed = self.calls[effect].model_copy(update={"arguments": arguments})
            self.calls = {**self.calls, effect: changed}

    def _close(self, effect: str, result: tuple[str, bool] | None) -> None:
        if result is not None and effect in self.calls and effect not in self._results:
            text, failed = result
            self._results[effect] = tool_message(self.calls[effect].id, text, failed=failed)

    def _present(self, versions: tuple[int, ...]) -> None:
        for effect in self.calls:
            if effect in self._results:
                self.messages.append(self._results[effect])
        self.calls, self._results = {}, {}
        for version in versions:
            self.messages.extend(self._mail.pop(version, ()))
        if not self._mail:
            self._mail.clear()  # what was popped leaves its room: 160 bytes a session
        self.messages.extend(self._notes)
        self._notes = ()
