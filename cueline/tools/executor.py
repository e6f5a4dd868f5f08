"""Runs a runner's tools: in worker processes, or in the event loop of the runner.

Sync functions run in warm worker processes, which take one call at a time. Async functions
run in the runner's loop, unless declared otherwise. A call that ends without an answer
ends its worker.
"""

import asyncio
import inspect
import signal
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

from cueline.actors.background_task import GRACE_SECONDS
from cueline.actors.runner_slots import SLOTS
from cueline.actors.tool_port import (
    OnProgress,
    ReconcileFinding,
    ToolOrder,
    ToolOutput,
    drop_progress_of,
)
from cueline.errors import ToolChangedError, ToolFailedError, ToolImportError
from cueline.events.agent import ToolSpec
from cueline.tools.arguments import check_arguments
from cueline.tools.progress import ProgressReporter, Report, drop_progress
from cueline.tools.recorded_tool import load_recorded
from cueline.tools.result import (
    failure_of,
    finding_of,
    is_transient,
    output_of,
    signal_name,
    transient_failure,
)
from cueline.tools.sandbox import VARIABLES
from cueline.tools.target import LOADING
from cueline.tools.tool import ToolContext
from cueline.tools.worker_pool import WorkerPool
from cueline.tools.worker_protocol import Head, unpacked_images

Start = Callable[[], object]


class ProcessToolExecutor:
    """Runs tools in worker processes, or in the event loop; see `ToolExecutor`."""

    def __init__(
        self,
        workers: int = SLOTS.workers,
        *,
        grace_seconds: float = GRACE_SECONDS,
        hidden: Sequence[Path] = (),
        on_progress: OnProgress = drop_progress_of,
    ) -> None:
        """Create the executor; workers start later.

        Args:
            workers: the number of sync calls at a time.
            grace_seconds: the time from terminating a tool's processes to killing them.
            hidden: the files of the log, which isolated commands do not see.
            on_progress: gets what a running call says of its progress.

        Raises:
            ToolImportError: a file of tools runs an agent when it is imported.
        """
        for file in LOADING:
            reason = (
                'it runs an agent when it is imported; do that under `if __name__ == "__main__"`'
            )
            raise ToolImportError(file, reason)
        self._pool = WorkerPool(workers, grace_seconds)
        self._grace_seconds = grace_seconds
        self._hidden = tuple(map(str, hidden))
        self._on_progress = on_progress
        self._tasks: set[asyncio.Task[object]] = set()

    async def call(self, order: ToolOrder) -> ToolOutput:
        if order.tool.needs_workspace and order.workspace is None and order.sandbox is None:
            raise ToolFailedError(
                "tool_error", f"{order.tool.name} needs a workspace; there is none"
            )
        began = time.perf_counter()
        if order.tool.in_loop:
            start = in_loop(order, self._on_progress)
            output = output_of(await self._in_loop(order, start))
            seconds = time.perf_counter() - began
            return ToolOutput(output.content, seconds, output.truncated_from, output.media_type)
        # A function in the loop checks its arguments when it binds them; a worker is not used for
        # an invalid call.
        check_arguments(order.tool, order.arguments)
        head, body, seconds = await self._in_worker(order, "run")
        size = head["size"]
        changes = unpacked_images(head["changes"], body[size:])
        told = head["truncated_from"], head["media_type"]
        return ToolOutput(body[:size] if changes else body, seconds, *told, changes)

    async def reconcile(self, order: ToolOrder) -> ReconcileFinding:
        try:
            if order.tool.in_loop:
                ask = load_recorded(order.tool).reconcile
                if inspect.iscoroutinefunction(ask):
                    return finding_of(await self._in_loop(order, lambda: ask(order.key)))
            head, body, _ = await self._in_worker(order, "reconcile")
        except ToolImportError as error:
            raise ToolFailedError("tool_error", str(error)) from error
        return finding_of((head["outcome"], body))

    async def check(
        self, tools: Sequence[ToolSpec], secrets: Collection[str], environment: Collection[str]
    ) -> dict[str, str]:
        """Return, by name, the reason why each of *tools* cannot be loaded here; no tool runs.

        The tools run without the variables in *secrets*, except those in *environment*.
        """
        problems = {}
        for tool in tools:
            async with self._pool.worker(secrets, environment) as worker:
                reply = await worker.exchange(
                    {"verb": "load", "tool": tool.model_dump(mode="json")}
                )
            try:
                if reply is None:
                    problems[tool.name] = "it ends its process when it is loaded"
                else:
                    refuse(reply[0])
            except ToolImportError as error:
                problems[tool.name] = error.reason
            except ToolFailedError as error:
                problems[tool.name] = error.message
        return problems

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await self._pool.close()

    async def _in_worker(self, order: ToolOrder, verb: str) -> tuple[Head, bytes, float]:
        passed = order.environment
        if order.sandbox is not None:
            spec = order.sandbox.spec
            passed += (*VARIABLES.get(spec.backend, ()), spec.git_variable)
        async with self._pool.worker(order.secrets, passed) as worker:
            began = time.perf_counter()
            try:
                async with asyncio.timeout(order.tool.timeout_seconds):
                    report = partial(self._on_progress, order)
                    reply = await worker.exchange(request_for(order, verb, self._hidden), report)
            except TimeoutError:
                raise timeout_failure(order) from None
            seconds = time.perf_counter() - began
            if reply is None:
                raise killed_failure(order, await worker.stop(self._grace_seconds))
        head, body = reply
        refuse(head)
        return head, body, seconds

    async def _in_loop(self, order: ToolOrder, start: Start) -> object:
        # A separate task: a tool that ignores its cancellation is abandoned, and does not block the
        # runner.
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        task = loop.create_task(call_or_explain(start))
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, ended))
        timer = loop.call_later(order.tool.timeout_seconds, wake, ended)
        try:
            await ended
        except asyncio.CancelledError:
            await self._cancel(task)
            raise
        finally:
            timer.cancel()
        if not task.done():
            await self._cancel(task)
            raise timeout_failure(order)
        if task.cancelled():
            raise killed_failure(order, None)
        return task.result()

    def _ended(self, ended: asyncio.Future[None], task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        wake(ended)

    async def _cancel(self, task: asyncio.Task[object]) -> None:
        task.cancel()
        await asyncio.wait({task}, timeout=self._grace_seconds)


def in_loop(order: ToolOrder, on_progress: OnProgress) -> Start:
    """Return a function that starts the async tool of *order*.

    Raises:
        ToolImportError: there is no such tool here.
    """
    tool = load_recorded(order.tool)
    report: Report = drop_progress
    if tool.signature.injected is not None:
        report = ProgressReporter(from_any_thread(on_progress, order))
    context = ToolContext(**context_of(order), report=report)

    async def run() -> object:
        try:
            return await cast("Awaitable[object]", tool.run(order.arguments, context))
        except Exception as error:
            if is_transient(error, tool.transient):
                raise transient_failure(error) from None
            raise

    return run


def from_any_thread(on_progress: OnProgress, order: ToolOrder) -> Report:
    """Return a function that calls *on_progress* in the current loop."""
    loop = asyncio.get_running_loop()

    def report(share: float | None, text: str) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(on_progress, order, share, text)

    return report


async def call_or_explain(start: Start) -> object:
    """Await the tool; every error becomes a message for the model.

    Raises:
        ToolFailedError: it failed.
    """
    try:
        return await cast("Awaitable[object]", start())
    except asyncio.CancelledError as error:
        if (task := asyncio.current_task()) is None or task.cancelling():
            raise
        raise failure_of(error) from None  # raised by an awaitable of the tool itself
    except GeneratorExit:
        raise  # the loop is gone, and with it all waiters
    except BaseException as error:  # noqa: BLE001 - tools are foreign code
        # A tool's `SystemExit` must not end the runner's loop. Without this error, the call would
        # count as never begun.
        raise failure_of(error) from None


def wake(waiting: asyncio.Future[None]) -> None:
    """Resolve *waiting*, unless it was resolved or cancelled earlier."""
    if not waiting.done():
        waiting.set_result(None)


def request_for(order: ToolOrder, verb: str, hidden: Sequence[str]) -> Head:
    """Return the worker's request for *order*, whose isolated commands do not see *hidden*."""
    context = context_of(order)
    folder = context["folder"] and str(context["folder"])
    box = order.sandbox and [order.sandbox.spec.model_dump(mode="json"), order.sandbox.place]
    seen = {"isolation": order.isolation.model_dump(mode="json"), "hidden": hidden, "sandbox": box}
    return {
        "verb": verb,
        "tool": order.tool.model_dump(mode="json"),
        "arguments": order.arguments,
        "context": {**context, **seen, "folder": folder},
    }


def context_of(order: ToolOrder) -> dict[str, Any]:
    """Return the fields of the `ToolContext`; the folder only if the tool needs the workspace."""
    place = order.workspace if order.tool.needs_workspace else None
    said: dict[str, Any] = {"session": order.session, "effect": order.effect}
    said |= {"attempt": order.attempt, "key": order.key, "isolation": order.isolation}
    said |= {"environment": order.environment, "options": order.tool.options}
    said |= {"overlay": order.overlay, "sandbox": order.sandbox}
    return {**said, "folder": None if place is None else Path(place.path)}


def refuse(head: Head) -> None:
    """Raise if the worker's answer is an error.

    Raises:
        ToolFailedError: the tool failed.
        ToolImportError: there is no such tool.
        ToolChangedError: the current tool differs from the recorded tool.
    """
    match head:
        case {"kind": "changed", "subject": subject, "reason": reason}:
            raise ToolChangedError(subject, reason)
        case {"kind": "failed", "fault": fault, "message": message, "retry_after": retry_after}:
            raise ToolFailedError(fault, message, retry_after)
        case {"kind": "missing", "subject": subject, "reason": reason}:
            raise ToolImportError(subject, reason)


def timeout_failure(order: ToolOrder) -> ToolFailedError:
    """Return the error for the model of a call that took too long."""
    reason = f"did not end within {order.tool.timeout_seconds:g} s and was killed"
    return ToolFailedError("timeout", f"{order.tool.name} {reason}; it may have had effects")


def killed_failure(order: ToolOrder, code: int | None) -> ToolFailedError:
    """Return the error for the model of a call whose process ended."""
    match code:
        case None:
            how = "was stopped together with its runner"
        case _ if code == -signal.SIGKILL:
            how = "was killed by SIGKILL, perhaps because memory ran out"
        case _ if code < 0:
            how = f"was killed by {signal_name(-code)}"
        case _:
            how = f"ended its process, with exit status {code}"
    return ToolFailedError("killed", f"{order.tool.name} {how}; it may have had effects")
