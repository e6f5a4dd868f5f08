"""Ends the run of a pydantic-ai agent by its output, or when its retries are used up.

Both follow from the messages alone, so a resumed session decides as the killed one would have.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from pydantic_ai.messages import ModelMessage, ToolReturnPart, UserPromptPart

from cueline.actors.model_port import ModelReply
from cueline.adapters.pydantic_ai_parts import AgentTool
from cueline.errors import ProviderRefusedError
from cueline.events.message import TextBlock, ToolCall
from cueline.tools.arguments import unfenced

OUTPUT: Final = "output"
"""The key of the output in the result of a call that ends the run."""


def check_retries(history: Sequence[ModelMessage], own: Sequence[AgentTool]) -> None:
    """Check that each tool has retries left, counted as pydantic-ai counts them.

    Raises:
        ProviderRefusedError: a tool has asked for more; its session ends as failed.
    """
    counts: dict[str, int] = {}
    for message in history:
        results = [part for part in message.parts if isinstance(part, ToolReturnPart)]
        tried = {part.tool_name for part in results if part.outcome == "retried"}
        done = {part.tool_name for part in results} - tried
        counts = {name: counts.get(name, 0) + (name in tried) for name in {*counts, *tried} - done}
        if _has_prompt(message):
            counts = {}
    for tool in own:
        if (count := counts.get(tool.told.name, 0)) > tool.retries:
            why = f"the tool `{tool.told.name}` asked {count} times in a row to be called again"
            raise ProviderRefusedError("refused", f"{why}; its `retries` are {tool.retries}")


def output_of(history: Sequence[ModelMessage], own: Sequence[AgentTool]) -> str | None:
    """Return the output of the last calls; None without one, or if a person has spoken since."""
    outputs = {tool.told.name for tool in own if tool.told.kind == "output"}
    if not outputs or _has_prompt(history[-1]):
        return None
    for part in history[-1].parts:
        if isinstance(part, ToolReturnPart) and part.tool_name in outputs:
            # A result without the key says that the outcome is unknown, or is a person's.
            with suppress(ValueError, TypeError, KeyError):
                found = json.loads(str(part.content))[OUTPUT]
                return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
    return None


def as_call(reply: ModelReply, own: Sequence[AgentTool], effect: str) -> ModelReply:
    """Return *reply* with its last words as a call of the agent's output, if it has one."""
    outputs = [tool.told for tool in own if tool.told.kind == "output"]
    text = "".join(block.text for block in reply.content if isinstance(block, TextBlock))
    if not outputs or reply.calls or reply.stop_reason != "end_turn" or not text:
        return reply
    names = list(outputs[0].parameters_json_schema.get("properties", ()))
    given = None
    with suppress(ValueError):
        given = json.loads(unfenced(text))
    if not isinstance(given, dict) or not given.keys() <= set(names):
        given = {names[0] if len(names) == 1 else "text": text}
    call = ToolCall(id=f"output-{effect}", name=outputs[0].name, arguments=given)
    rest = tuple(block for block in reply.content if not isinstance(block, TextBlock))
    return ModelReply(
        content=rest,
        calls=(call,),
        stop_reason="tool_use",
        usage=reply.usage,
        model=reply.model,
    )


def _has_prompt(message: ModelMessage) -> bool:
    return any(isinstance(part, UserPromptPart) for part in message.parts)
