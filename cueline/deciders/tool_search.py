"""The tools that a model finds by words and calls by name, instead of being shown each of them.

So the beginning of a prompt stays short, and the same whatever these tools are.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from cueline.errors.suggestion import closest
from cueline.events.agent import CALL_TOOL, ToolSpec
from cueline.events.message import ToolCall

MOST_FOUND: Final = 8
"""The most tools that a search returns with their schemas."""
_MOST_NAMED: Final = 100
_WORD: Final = re.compile(r"[^\W_]+")


def found_tools(tools: Iterable[ToolSpec], query: str) -> str:
    """Return the tools that fit the words of *query* best, as text for the model.

    Without a fitting tool, it has the names of the tools.
    """
    hidden = [tool for tool in tools if tool.searched]
    wanted = _words(query)
    ranks = {tool.name: _rank(tool, wanted) for tool in hidden}
    fitting = sorted((t for t in hidden if ranks[t.name]), key=lambda t: (-ranks[t.name], t.name))
    found = [t.model_dump(include={"name", "description", "parameters"}) for t in fitting]
    if found:
        return json.dumps(found[:MOST_FOUND], ensure_ascii=False)
    names = ", ".join(sorted(ranks)[:_MOST_NAMED])
    return f"No tool fits {query!r}. There are {len(hidden)} tools, among them {names}"


def named_call(call: ToolCall, tools: Mapping[str, ToolSpec]) -> ToolCall:
    """Return the call that a valid *call* of `call_tool` names, with why it cannot run."""
    name = str(call.arguments["name"])
    given = call.arguments.get("arguments", {})
    assert isinstance(given, dict), "the schema of `call_tool` was checked"
    named = call.model_copy(update={"name": name, "arguments": given, "by_name": True})
    if name in tools and name != CALL_TOOL:
        return named
    near = closest(name, (tool.name for tool in tools.values() if tool.searched), most=3)
    guess = f" Did you mean {' or '.join(near)}?" if near else " Search with find_tools."
    return named.model_copy(update={"problem": f"There is no tool {name!r}.{guess}"})


def as_asked(call: ToolCall) -> ToolCall:
    """Return *call* as the model asked for it: by `call_tool`, if it did."""
    if not call.by_name:
        return call
    asked = {"name": call.name, "arguments": call.arguments}
    return call.model_copy(update={"name": CALL_TOOL, "arguments": asked, "by_name": False})


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _rank(tool: ToolSpec, wanted: set[str]) -> int:
    """Return how well *tool* fits; a word in its name counts like three in its description."""
    taken = tool.parameters.get("properties")
    said = f"{tool.description} {' '.join(taken) if isinstance(taken, dict) else ''}"
    return 3 * len(wanted & _words(tool.name)) + len(wanted & _words(said))
