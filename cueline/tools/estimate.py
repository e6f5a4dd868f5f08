"""Estimates the cost of a call with the tool's own function."""

import asyncio
import inspect
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Final

from pydantic import JsonValue

from cueline.actors.cancellation import isolate_cancellation
from cueline.errors import ToolImportError
from cueline.events.agent import ToolSpec
from cueline.events.message import Estimate
from cueline.events.sanitize import cut
from cueline.tools.declaration import dollars
from cueline.tools.recorded_tool import load_recorded
from cueline.tools.result import said_by

ESTIMATE_SECONDS: Final = 5.0
_LONGEST = 200
_LOADER: Final = ThreadPoolExecutor(1, "cueline-estimate")
"""One thread: two could meet a half-imported module.

If an import never ends, only estimates wait for it.
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
        return Estimate(problem=cut(said_by(error), _LONGEST))


async def _asked(spec: ToolSpec, arguments: Mapping[str, JsonValue]) -> Decimal:
    # A thread, because an import may take long, and other sessions use this loop.
    tool = await asyncio.get_running_loop().run_in_executor(_LOADER, load_recorded, spec)
    if tool.estimator is None:
        raise ToolImportError(spec.target, "it estimates nothing here")
    said = tool.estimator(**tool.signature.bind(arguments))
    if inspect.isawaitable(said):
        said = await said
    return dollars(said)
