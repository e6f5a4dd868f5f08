"""A model that answers from a TOML file.

A wrong file or key raises `ConfigError`, which names it.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cueline.actors.model_port import Delta, DeltaSink, ModelReply, ModelRequest, drop_delta
from cueline.errors import ConfigError, ProviderRefusedError, ProviderUnavailableError
from cueline.events.agent import AgentSpec
from cueline.events.codes import TRANSIENT
from cueline.events.message import TextBlock, ThinkingBlock, Usage
from cueline.events.stream import is_compaction
from cueline.files import read_text_file
from cueline.providers.provider import Pause
from cueline.providers.scripted.script import Script, ScriptedFailure, read_script, tokens

_WORD = re.compile(r"\s*\S+\s*\Z|\s*\S+|\s+")


class ScriptedModel:
    """Replies by the turn and attempt of the request; it keeps no state; see `Model`.

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
        """Pass *block* on, word by word with pauses of so many *seconds*."""
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

    Call it before the agent is recorded: a resumed session must not depend on a file that
    may have changed.
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
