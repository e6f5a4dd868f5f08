"""Runs each call by the executor of its tool's scheme."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cueline.actors.tool_port import (
    OnProgress,
    ReconcileFinding,
    ToolExecutor,
    ToolOrder,
    ToolOutput,
    ToolQuestion,
    ToolTask,
    drop_progress_of,
)
from cueline.events.agent import CUSTOM_SCHEMES
from cueline.tools.arguments import check_arguments
from cueline.tools.ask_user import ask_user, asked
from cueline.tools.executor import ProcessToolExecutor
from cueline.tools.held import HeldCalls
from cueline.tools.recorded_tool import recorded_output

if TYPE_CHECKING:
    from cueline.tools.mcp.executor import McpExecutor
    from cueline.tools.mcp.oauth import Logins


_ASK_USER: Final = ask_user.spec().target


class SchemeExecutor:
    """The executor of a runner, for tools of all schemes; see `ToolExecutor`.

    What a scheme needs is imported at its first call.
    """

    def __init__(
        self,
        workers: int,
        on_progress: OnProgress = drop_progress_of,
        *,
        hidden: Sequence[Path] = (),
        logins: "Logins | None" = None,
    ) -> None:
        """Create the executor, with so many worker processes; *on_progress* gets progress.

        Isolated commands do not see the *hidden* files, those of the log. *logins* keeps the
        logins to MCP servers.

        Raises:
            ToolImportError: a file of tools runs an agent when it is imported.
        """
        self._functions = ProcessToolExecutor(workers, hidden=hidden, on_progress=on_progress)
        self._held = HeldCalls(self._functions)
        self._on_progress = on_progress
        self._logins = logins
        self._hidden = hidden
        self._mcp: McpExecutor | None = None

    async def call(self, order: ToolOrder) -> ToolOutput | ToolQuestion | ToolTask:
        if (recorded := recorded_output(order)) is not None:
            return recorded
        if order.tool.target == _ASK_USER:
            check_arguments(order.tool, order.arguments)
            return asked(order)
        if order.tool.target.startswith(CUSTOM_SCHEMES):
            from cueline.tools.custom import shipped_order  # noqa: PLC0415

            order = shipped_order(order)
        if order.tool.changes:
            return await self._held.call(order)
        return await self._executor_of(order).call(order)

    async def reconcile(self, order: ToolOrder) -> ReconcileFinding:
        return await self._executor_of(order).reconcile(order)

    async def close(self) -> None:
        used: list[ToolExecutor] = [
            self._functions,
            *([self._mcp] if self._mcp is not None else []),
        ]
        await asyncio.gather(*(each.close() for each in used))

    def _executor_of(self, order: ToolOrder) -> ToolExecutor:
        if order.server is None:
            return self._functions
        if self._mcp is None:
            from cueline.tools.mcp.executor import McpExecutor  # noqa: PLC0415

            self._mcp = McpExecutor(
                on_progress=self._on_progress, logins=self._logins, hidden=self._hidden
            )
        return self._mcp
