"""A model that answers from a TOML file.

A wrong file or key raises `ConfigError`, which names the file or key.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from pathlib import Path, PurePath
from typing import Any, Final, NoReturn

from msgspec.structs import replace
from pydantic import ValidationError

from cueline.actors.model_port import Delta, DeltaSink, ModelReply, ModelRequest, drop_delta
from cueline.errors import ConfigError, ProviderRefusedError, ProviderUnavailableError
from cueline.errors.suggestion import known_instead
from cueline.events.agent import AgentSpec
from cueline.events.codes import PERMANENT, TRANSIENT
from cueline.events.message import Block, OpaqueBlock, TextBlock, ThinkingBlock, ToolCall, Usage
from cueline.events.stream import is_compaction
from cueline.files import read_text_file
from cueline.providers.provider import Pause

Keys = Mapping[str, tuple[type, ...]]
NUMBER: Final = (int, float)
FILE: Final[Keys] = {"reply": (list,)}
REPLY: Final[Keys] = {
    "turn": (int,),
    "attempt": (int,),
    "text": (str,),
    "thinking": (str,),
    "calls": (list,),
    "fail": (dict,),
    "cut": (bool,),
    "compact": (bool,),
    "delay_seconds": NUMBER,
    "chunk_seconds": NUMBER,
    "stop_reason": (str,),
    "usage": (dict,),
}
CALL: Final[Keys] = {"name": (str,), "arguments": (dict,), "malformed": (str,), "id": (str,)}
FAIL: Final[Keys] = {"kind": (str,), "message": (str,), "retry_after": NUMBER}
_WORDS: Final = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}
USAGE: Final[Keys] = dict.fromkeys(Usage.model_fields, (int,))

KINDS: Final = TRANSIENT | PERMANENT - {"tool_error", "retry"}

BYTES_A_TOKEN: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedFailure:
    """A failing model call."""

    kind: str
    message: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedReply:
    """The model's reply at one turn."""

    reply: ModelReply
    usage_known: bool
    """Whether the file gives the usage; otherwise only `usage.output` is estimated."""
    delay_seconds: float
    chunk_seconds: float
    """The pause before each word; 0 if a text comes at once."""
    failure: ScriptedFailure | None


SUMMARY: Final = ScriptedReply(
    reply=ModelReply(
        content=(TextBlock(text="This is a summary."),),
        stop_reason="end_turn",
        usage=Usage(output=5),
    ),
    usage_known=False,
    delay_seconds=0,
    chunk_seconds=0,
    failure=None,
)
"""The default summary, for scripts that contain no summary."""


@dataclass(frozen=True, slots=True)
class Script:
    """The replies by turn and attempt; the attempt None means any attempt."""

    name: str
    replies: Mapping[tuple[int, int | None], ScriptedReply]
    summaries: Mapping[tuple[int | None, int | None], ScriptedReply]
    """The replies to requests for a summary; the turn None means any turn."""

    def summary_for(self, turn: int, attempt: int) -> ScriptedReply:
        """Return the summary after *turn*; by default a fixed summary."""
        places = ((turn, attempt), (turn, None), (None, attempt), (None, None))
        return next((self.summaries[p] for p in places if p in self.summaries), SUMMARY)

    def reply_for(self, turn: int, attempt: int) -> ScriptedReply:
        """Return the reply; a reply for the same attempt takes precedence.

        Raises:
            ProviderRefusedError: the file has no such reply; add it.
        """
        found = self.replies.get((turn, attempt)) or self.replies.get((turn, None))
        if found is None:
            lack = f"the script {self.name} has no reply for turn {turn}, attempt {attempt}"
            raise ProviderRefusedError("invalid_request", lack)
        return found


# A host reads the same text for each of its sessions.
@lru_cache(maxsize=64)
def read_script(text: str, name: str = "script") -> Script:
    """Read *text*; *name* is its name in errors."""
    try:
        tables = tomllib.loads(text)
    except RecursionError as error:
        raise ConfigError(name, "is nested too deep") from error
    except ValueError as error:
        raise ConfigError(name, f"is not TOML: {error}") from error
    check(tables, FILE, name, "the file")
    replies: dict[tuple[int, int | None], ScriptedReply] = {}
    summaries: dict[tuple[int | None, int | None], ScriptedReply] = {}
    turn = 0
    for number, table in enumerate(tables.get("reply", ()), 1):
        reader = ReplyReader(name, f"reply {number}")
        if isinstance(table, dict) and table.get("compact") is True:
            checked = check(table, REPLY, name, reader.where)
            place = checked.get("turn"), checked.get("attempt")
            if place in summaries:
                reader.fail("is a second summary of its turn and attempt; leave one of them out")
            summaries[place] = reader.read(table, turn)
            continue
        turn, attempt = reader.place(table, turn)
        if (turn, attempt) in replies:
            reader.fail("says again what happens at its turn and attempt; leave one of them out")
        replies[turn, attempt] = reader.read(table, turn)
    if not replies:
        raise ConfigError(name, "has no [[reply]]; write at least one")
    return Script(name, replies, summaries)


@dataclass(frozen=True, slots=True)
class ReplyReader:
    """Reads one `[[reply]]`, and locates errors in it."""

    name: str
    where: str

    def fail(self, reason: str) -> NoReturn:
        """Raise the `ConfigError` of this reply."""
        raise ConfigError(self.name, f"{self.where} {reason}")

    def place(self, table: object, before: int) -> tuple[int, int | None]:
        """Return turn and attempt; by default the turn is *before* plus one."""
        checked = check(table, REPLY, self.name, self.where)
        if "attempt" in checked and "turn" not in checked:
            self.fail("names an attempt; name its turn too")
        turn, attempt = checked.get("turn", before + 1), checked.get("attempt")
        if 0 in {turn, attempt}:
            self.fail("counts from 0; turns and attempts count from 1")
        return turn, attempt

    def read(self, table: Mapping[str, Any], turn: int) -> ScriptedReply:
        """Return the reply at *turn*."""
        failure = self.failure(table)
        if failure is None and not table.keys() & {"text", "thinking", "calls"}:
            self.fail("says nothing; give it text, thinking, calls, fail or cut")
        calls = tuple(
            self.call(call, f"call_{turn}_{index}", index)
            for index, call in enumerate(table.get("calls", ()))
        )
        content = content_of(table)
        reply = ModelReply(
            content=content,
            calls=calls,
            stop_reason=table.get("stop_reason", "tool_use" if calls else "end_turn"),
            usage=self.usage(table) or Usage(output=tokens(size_of(content, calls))),
            model=PurePath(self.name).name,
        )
        return ScriptedReply(
            reply=reply,
            usage_known="usage" in table,
            delay_seconds=table.get("delay_seconds", 0),
            chunk_seconds=table.get("chunk_seconds", 0),
            failure=failure,
        )

    def failure(self, table: Mapping[str, Any]) -> ScriptedFailure | None:
        """Return the failure of the call; None if the call succeeds."""
        if table.get("cut"):
            if "fail" in table:
                self.fail("is cut and fails; choose one")
            return ScriptedFailure(kind="malformed_reply", message="the reply broke off")
        if "fail" not in table:
            return None
        where = f"{self.where} fail"
        fields = check(table["fail"], FAIL, self.name, where)
        kind = fields.get("kind")
        if kind not in KINDS:
            said = f"kind is {kind!r}" if kind else "has no kind"
            self.fail(f"fail {said}{known_instead(str(kind), sorted(KINDS))}")
        if kind not in TRANSIENT and "retry_after" in fields:
            self.fail(f"fail retry_after: {kind} is not tried again; leave it out")
        return ScriptedFailure(**{"message": f"the script says {kind}", **fields})

    def call(self, table: object, default_id: str, index: int) -> ToolCall:
        """Return one tool call."""
        where = f"{self.where} calls[{index}]"
        fields = check(table, CALL, self.name, where)
        if "name" not in fields:
            raise ConfigError(self.name, f"{where} has no name")
        try:
            json.dumps(fields.get("arguments"), allow_nan=False)
        except (TypeError, ValueError) as error:
            lack = "hold what JSON has not, a date or an infinity; put quotes around it"
            raise ConfigError(self.name, f"{where} arguments {lack}") from error
        try:
            return ToolCall(**{"id": default_id, **fields})
        except ValidationError as error:
            raise ConfigError(self.name, f"{where} arguments are nested too deep") from error

    def usage(self, table: Mapping[str, Any]) -> Usage | None:
        """Return the usage in the file; None if the file gives no usage."""
        if "usage" not in table:
            return None
        return Usage(**check(table["usage"], USAGE, self.name, f"{self.where} usage"))


def check(table: object, keys: Keys, name: str, where: str) -> dict[str, Any]:
    """Return *table* if its keys and types are valid."""
    if not isinstance(table, dict):
        raise ConfigError(name, f"{where} is {as_written(table)}, not a table")
    for key, value in table.items():
        if key not in keys:
            known = known_instead(key, keys)
            raise ConfigError(name, f"{where} has the unknown key {key!r}{known}")
        # Not isinstance: True is an int.
        if type(value) not in keys[key]:
            wanted = "a number" if keys[key] is NUMBER else _WORDS[keys[key][0]]
            raise ConfigError(name, f"{where} {key} is {as_written(value)}, not {wanted}")
        # "Not at least" instead of "less than", because of nan.
        if isinstance(value, (int, float)) and not 0 <= value < inf:
            raise ConfigError(name, f"{where} {key} is {value!r}, not a number from 0 up")
    return table


def as_written(value: object) -> str:
    """Return a value as TOML writes it."""
    return json.dumps(value, default=str, ensure_ascii=False)


def content_of(table: Mapping[str, Any]) -> tuple[Block, ...]:
    """Return the content, thoughts first."""
    thinking = [ThinkingBlock(text=table["thinking"])] if table.get("thinking") else []
    text = [TextBlock(text=table["text"])] if table.get("text") else []
    return (*thinking, *text)


def size_of(content: Iterable[Block], calls: Iterable[ToolCall]) -> int:
    """Return the size of a reply in bytes: texts, thoughts, and calls as JSON."""
    # Not the size of their records, which grows with every new field.
    said = [block.text for block in content if not isinstance(block, OpaqueBlock)]
    asked = [call.name + (call.malformed or json.dumps(call.arguments)) for call in calls]
    return len("".join((*said, *asked)).encode())


def tokens(size: int) -> int:
    """Estimate the tokens of *size* bytes; the rule never changes."""
    return -(-size // BYTES_A_TOKEN)


_WORD = re.compile(r"\s*\S+\s*\Z|\s*\S+|\s+")


class ScriptedModel:
    """Answers by the turn and attempt of the request, and keeps no state; see `Model`.

    So it continues at the right place after a crash, and one instance serves any number of
    sessions.
    """

    def __init__(self, pause: Pause) -> None:
        self._pause = pause

    async def reply(self, request: ModelRequest, deltas: DeltaSink = drop_delta) -> ModelReply:
        script = script_of(request.agent)
        if is_compaction(request.effect):
            scripted = script.summary_for(request.turn, request.attempt)
        else:
            scripted = script.reply_for(request.turn, request.attempt)
        if scripted.delay_seconds:
            await self._pause(scripted.delay_seconds)
        for block in scripted.reply.content:
            if isinstance(block, TextBlock | ThinkingBlock):
                await self._stream(block, scripted.chunk_seconds, deltas)
        if scripted.failure is not None:
            raise error_of(scripted.failure)
        if scripted.usage_known:
            return scripted.reply
        usage = Usage(input=input_tokens(request), output=scripted.reply.usage.output)
        return replace(scripted.reply, usage=usage)

    async def _stream(
        self, block: TextBlock | ThinkingBlock, seconds: float, deltas: DeltaSink
    ) -> None:
        """Pass on *block* word by word, with pauses of *seconds*."""
        for piece in _WORD.findall(block.text) if seconds else [block.text]:
            if seconds:
                await self._pause(seconds)
            deltas(Delta(block.kind, piece))

    async def close(self) -> None:
        """See `Model.close`."""


def error_of(failure: ScriptedFailure) -> ProviderUnavailableError | ProviderRefusedError:
    """Return the error that a vendor's adapter would raise."""
    if failure.kind in TRANSIENT:
        return ProviderUnavailableError(failure.kind, failure.message, failure.retry_after)
    return ProviderRefusedError(failure.kind, failure.message)


def input_tokens(request: ModelRequest) -> int:
    """Estimate the input: one token for four bytes of instructions and messages."""
    return tokens(len(request.agent.instructions.encode()) + sum(map(len, request.messages)))


def script_of(agent: AgentSpec) -> Script:
    """Return the script of *agent*: its parameter `script`, or else the file `model`."""
    text = record_script(agent.parameters, Path(agent.model))["script"]
    return read_script(text, agent.model)


def record_script(parameters: Mapping[str, Any], model: Path) -> dict[str, Any]:
    """Return *parameters* with the text of the file *model* in `script`.

    Call this before the agent is recorded: a resumed session must not depend on a file that may
    have changed.
    """
    text = parameters["script"] if "script" in parameters else text_of(model)
    if not isinstance(text, str):
        raise ConfigError("parameters.script", f"is {text!r}, not the text of a script")
    read_script(text, str(model))
    return {**parameters, "script": text}


def text_of(path: Path) -> str:
    """Return the text of the file at *path*."""
    try:
        return read_text_file(path)
    except OSError as error:
        why = f"cannot be read ({error.strerror}); `model` names the script of a scripted agent"
        raise ConfigError(str(path), why) from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), f"is not UTF-8 text: {error.reason}") from error
