"""The runner: executes tool calls on one machine, and fences its owners' past selves."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from cueline.actors.tool import Finding, ToolExecutor, ToolOrder
from cueline.deciders.session import order_digest
from cueline.errors import (
    PathEscapeError,
    RunnerBusyError,
    StaleOrderError,
    ToolFailedError,
    ToolImportError,
)


@dataclass(frozen=True, slots=True)
class ToolReport:
    """What became of a call; the content is not cleaned yet."""

    outcome: Literal["returned", "failed"]
    content: bytes = b""
    kind: str = ""
    """Of a failure: tool_error, timeout, invalid_arguments, killed, cancelled …"""
    message: str = ""
    seconds: float = 0.0
    truncated_from: int | None = None


@dataclass(frozen=True, slots=True)
class CallName:
    """Which attempt at which call, and on whose word."""

    session: str
    key: str
    attempt: int
    runner: str
    epoch: int


class RunnerPort(Protocol):
    """A runner as a session host sees it, near or far.

    Every method raises `RunnerGoneError` when the runner cannot be reached: the
    call may or may not have run. `StaleOrderError` means stop: the runner is
    another incarnation, or serves a newer owner of the session.
    """

    async def execute(self, order: ToolOrder) -> ToolReport:
        """Run the call, or join it where it runs already, and report.

        Raises:
            RunnerBusyError: nothing was begun, and nothing will be.
        """
        ...

    async def outcome(self, name: CallName) -> ToolReport | None:
        """Report a call that was begun. None: never seen, and it never will run here."""
        ...

    async def cancel(self, name: CallName) -> None:
        """Terminate the call's processes, and kill them 5 s later."""
        ...

    async def forget(self, name: CallName) -> None:
        """Drop the result: the owner has recorded it."""
        ...

    async def reconcile(self, order: ToolOrder) -> Finding:
        """Ask the tool what became of the call with this key."""
        ...


_Key = tuple[str, int]


class Runner:
    """Runs calls for many sessions.

    Only the incarnation that `ToolStarted` names may be sent the call, and no
    epoch below the highest one seen for its session. So "never seen" also
    promises "and never will".
    """

    def __init__(
        self, incarnation: str, executor: ToolExecutor, now: Callable[[], float], slots: int = 64
    ) -> None:
        self.incarnation = incarnation
        self._executor = executor
        self._now = now
        self._slots = asyncio.Semaphore(slots)
        self._epochs: dict[str, int] = {}
        self._running: dict[_Key, asyncio.Task[ToolReport]] = {}
        self._seen: set[_Key] = set()
        self._draining = False
        self.heard_at = now()
        """When somebody last sent it something, in its own seconds."""

    @property
    def busy(self) -> int:
        """How many calls run."""
        return sum(not task.done() for task in self._running.values())

    async def execute(self, order: ToolOrder) -> ToolReport:
        """See `RunnerPort.execute`."""
        key = (order.key, order.attempt)
        self._check(order.session, order.runner, order.epoch)
        if key not in self._running:
            if self._draining:
                raise RunnerBusyError(self.incarnation)
            if key in self._seen:
                # Barred by `outcome`, or forgotten because its result is recorded.
                raise StaleOrderError(
                    self.incarnation, order.session, order.epoch, self._epochs[order.session]
                )
            self._seen.add(key)
            self._running[key] = asyncio.create_task(self._run(order))
        # The caller may go away; the call goes on, and is asked for by its key.
        return await asyncio.shield(self._running[key])

    async def outcome(self, name: CallName) -> ToolReport | None:
        """See `RunnerPort.outcome`."""
        self._check(name.session, name.runner, name.epoch)
        key = (name.key, name.attempt)
        if key not in self._running:
            self._seen.add(key)
            return None
        return await asyncio.shield(self._running[key])

    async def cancel(self, name: CallName) -> None:
        """See `RunnerPort.cancel`."""
        self._check(name.session, name.runner, name.epoch)
        task = self._running.get((name.key, name.attempt))
        if task is not None:
            task.cancel()

    async def forget(self, name: CallName) -> None:
        """See `RunnerPort.forget`."""
        self._check(name.session, name.runner, name.epoch)
        key = (name.key, name.attempt)
        if key in self._running and self._running[key].done():
            del self._running[key]

    async def reconcile(self, order: ToolOrder) -> Finding:
        """See `RunnerPort.reconcile`."""
        self._check(order.session, None, order.epoch)
        try:
            return await self._executor.reconcile(order)
        except (ToolFailedError, ToolImportError) as error:
            return Finding("unknown", str(error))

    async def drain(self) -> None:
        """Begin nothing new."""
        self._draining = True

    async def close(self) -> None:
        """Kill what runs, and end."""
        self._draining = True
        for task in self._running.values():
            task.cancel()
        await self._executor.close()

    def _check(self, session: str, runner: str | None, epoch: int) -> None:
        """Refuse another incarnation's orders, and those of a former owner."""
        self.heard_at = self._now()
        highest = self._epochs.get(session, 0)
        if (runner is not None and runner != self.incarnation) or epoch < highest:
            raise StaleOrderError(self.incarnation, session, epoch, highest)
        self._epochs[session] = epoch

    async def _run(self, order: ToolOrder) -> ToolReport:
        started = self._now()
        place = order.workspace
        digest = order_digest(
            session=order.session,
            effect=order.effect,
            tool=order.tool.name,
            tool_digest=order.tool.digest,
            arguments=order.arguments,
            workspace=(place.machine, place.path) if place else None,
        )
        if digest != order.digest:
            # I9: what would run is not what was asked for.
            return ToolReport("failed", kind="not_granted", message="the call was changed")
        try:
            async with self._slots:
                output = await self._executor.call(order)
        except asyncio.CancelledError:
            spent = self._now() - started
            return ToolReport("failed", kind="cancelled", message="it was stopped", seconds=spent)
        except ToolFailedError as error:
            spent = self._now() - started
            return ToolReport("failed", kind=error.kind, message=error.message, seconds=spent)
        except (ToolImportError, PathEscapeError) as error:
            return ToolReport("failed", kind="tool_error", message=str(error))
        return ToolReport(
            "returned",
            content=output.content,
            seconds=output.seconds,
            truncated_from=output.truncated_from,
        )
