"""Compares recorded tools with the current ones, and estimates the costs of calls.

A missing tool raises `ToolImportError`; a changed tool raises `ToolChangedError`.
"""

import asyncio
import inspect
import json
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from operator import attrgetter
from typing import Any, Final

from pydantic import JsonValue

from cueline.actors.background_task import isolate_cancellation
from cueline.actors.tool_port import ToolOrder, ToolOutput
from cueline.errors import ToolChangedError, ToolFailedError, ToolImportError
from cueline.events.agent import ToolSpec
from cueline.events.codes import NOT_RECORDED, PERMANENT
from cueline.events.message import Estimate
from cueline.events.sanitize import cut
from cueline.tools.declaration import dollars
from cueline.tools.result import said_by
from cueline.tools.tool import Tool, load

_KEPT = ("declared", "version", "in_loop")
"""The fields of a tool that must equal the recorded fields, beside the parameters."""
_OF_AGENT = (
    *("name", "own_name", "target", "critical", "retry", "breaker"),
    *("demands", "timeout_seconds", "changes"),
)
"""The fields of a tool that an agent can set."""
_kept_of = attrgetter(*_KEPT)
_APART = {"properties", "required"}


def load_recorded(spec: ToolSpec) -> Tool:
    """Return the current tool for the recorded *spec*."""
    found = load(spec.target)
    if found.name != (was := spec.own_name or spec.name):
        reason = f"it is called {found.name!r} here, and was {was!r} when the session began"
        raise ToolImportError(spec.target, f"{reason}; put that back, or start a new session")
    if changes := _changes(spec, found):
        raise ToolChangedError(spec.target, "; ".join(changes))
    return found


def check_unchanged(name: str, tools: Iterable[ToolSpec], accept_with: str) -> None:
    """Raise if *tools* of the agent *name* have changed; the message offers *accept_with*."""
    changed = []
    for spec in _of_modules(tools):
        try:
            load_recorded(spec)
        except ToolChangedError as error:
            changed.append(f"{spec.name} ({error.reason})")
    if changed:
        choice = f"put them back, or go on with them as they are now:\n  {accept_with}"
        raise ToolChangedError(name, f"its tools have changed: {', '.join(changed)}; {choice}")


def changed_since(tools: Iterable[ToolSpec]) -> tuple[ToolSpec, ...]:
    """Return the *tools* that have changed, in their current form.

    The settings of the agent for these tools stay.
    """
    return tuple(_now(s) for s in _of_modules(tools) if _changes(s, load(s.target)))


def _of_modules(tools: Iterable[ToolSpec]) -> list[ToolSpec]:
    """Return the *tools* whose code is here; the tools of MCP servers are compared at each call."""
    return [spec for spec in tools if spec.runs and spec.imported]


def _now(spec: ToolSpec) -> ToolSpec:
    keys = (*_OF_AGENT, *(("options", "sensitive") if spec.options else ()))
    kept = {key: getattr(spec, key) for key in keys}
    return load(spec.target).spec().model_copy(update=kept)


def _changes(spec: ToolSpec, found: Tool) -> list[str]:
    """Return the differences between the tool *found* and *spec*.

    A new parameter with a default is no change: earlier arguments are still valid.
    """
    told = [
        f"{what} is {here!r}, and was {recorded!r}"
        for what, here, recorded in zip(_KEPT, _kept_of(found), _kept_of(spec), strict=True)
        if here != recorded
    ]
    parameters = found.signature.schema()
    if parameters != spec.parameters:
        told += _of_parameters(_plain(spec.parameters), _plain(parameters))
    return told


def _of_parameters(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    old, new = before.get("properties", {}), now.get("properties", {})
    needed, needs = before.get("required", []), now.get("required", [])
    for name, schema in old.items():
        if name not in new:
            yield f"parameter {name!r} was removed"
        elif new[name] != schema or (name in needs and name not in needed):
            yield f"parameter {name!r} was changed"
    yield from (
        f"parameter {name!r} was added" for name in new if name in needs and name not in old
    )
    if _rest(before) != _rest(now):
        yield "a type of its parameters was changed"


def _rest(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in _APART}


def _plain(schema: Any) -> Any:
    """Return *schema* without the texts that are only for the model."""
    match schema:
        case dict():
            return {
                key: _plain(value)
                for key, value in schema.items()
                if not (key == "description" and isinstance(value, str))
            }
        case list():
            return [_plain(each) for each in schema]
    return schema


_LONGEST = 500


def recorded_output(order: ToolOrder) -> ToolOutput | None:
    """Return the recorded output of the call; None if the call has to run.

    Raises:
        ToolFailedError: the recorded call failed, or has no recorded result and may not run.
    """
    recording = order.tool.recording
    if recording is None:
        return None
    result = recording.result_of(order.effect, order.arguments)
    if result is None:
        if recording.run_others:
            return None
        arguments = cut(json.dumps(order.arguments, ensure_ascii=False), _LONGEST)
        why = f"the recording has no result of the call {order.effect}: {order.tool.name}"
        raise ToolFailedError(NOT_RECORDED, f"{why} {arguments}; --run-tools runs such calls")
    if result.image:
        text, _, _ = result.text.rpartition("\n")  # the last line names the image
        beside = text.encode(errors="surrogatepass")
        return ToolOutput(b64decode(result.image), 0.0, None, result.media_type, text=beside)
    if not result.failed:
        return ToolOutput(result.text.encode(errors="surrogatepass"), 0.0)
    # An error of another kind could be retried, or put the call in doubt.
    kind, colon, message = result.text.partition(": ")
    if colon and kind in PERMANENT:
        raise ToolFailedError(kind, message)
    raise ToolFailedError("tool_error", result.text)


ESTIMATE_SECONDS: Final = 5.0
_MOST_CHARACTERS = 200
_LOADER: Final = ThreadPoolExecutor(1, "cueline-estimate")
"""The thread that imports estimators; two threads could import a module at the same time.

If an import never ends, only estimates are delayed.
"""


async def estimate(
    spec: ToolSpec, arguments: Mapping[str, JsonValue], within: float = ESTIMATE_SECONDS
) -> Estimate:
    """Return the tool's estimate; any error makes the cost unknown."""
    try:
        async with asyncio.timeout(within):
            return Estimate(usd=await isolate_cancellation(_asked(spec, arguments)))
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a bug of the tool makes the cost unknown
        return Estimate(problem=cut(said_by(error), _MOST_CHARACTERS))


async def _asked(spec: ToolSpec, arguments: Mapping[str, JsonValue]) -> Decimal:
    # A thread, because an import may take long, and other sessions use this loop.
    tool = await asyncio.get_running_loop().run_in_executor(_LOADER, load_recorded, spec)
    if tool.estimator is None:
        raise ToolImportError(spec.target, "it estimates nothing here")
    said = tool.estimator(**tool.signature.bind(arguments))
    if inspect.isawaitable(said):
        said = await said
    return dollars(said)
