"""The runner: executes tool calls on one machine, and fences former owners of sessions."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol

from msgspec import Struct

from cueline.actors.tool_port import (
    FileImage,
    ReconcileFinding,
    ToolExecutor,
    ToolOrder,
    ToolQuestion,
    ToolTask,
)
from cueline.deciders.session import order_digest
from cueline.errors import (
    CuelineError,
    PathEscapeError,
    RunnerBusyError,
    StaleOrderError,
    ToolChangedError,
    ToolFailedError,
    ToolImportError,
)


class ToolReport(Struct, frozen=True):
    """The outcome of a call; the content is not sanitized yet."""

    outcome: Literal["returned", "asked", "deferred", "failed"]
    content: bytes = b""
    kind: str = ""
    """The kind of a failure: tool_error, timeout, invalid_arguments, killed, cancelled …"""
    message: str = ""
    seconds: float = 0.0
    truncated_from: int | None = None
    media_type: str = ""
    """See `ToolOutput`."""
    question: ToolQuestion | None = None
    """What the call asks a person for; then it has had no effect."""
    task: ToolTask | None = None
    """The task in which the call goes on."""
    changes: tuple[FileImage, ...] = ()
    """See `ToolOutput`."""
    retry_after: float | None = None
    """The wait that a temporarily failing tool asked for, in seconds."""
    text: bytes = b""
    """See `ToolOutput`."""


KEPT_SECONDS = 60.0
"""How long the runner waits for the owner of a session to record the outcome of an ended call.

If the owner's host dies, the next owner of the session asks within seconds.
"""
NOT_BEGUN = ToolReport("failed", kind="not_started", message="it was stopped before it began")


class CallName(Struct, frozen=True):
    """The name of one attempt at a call, with the owner who sends it."""

    session: str
    key: str
    attempt: int
    runner: str
    epoch: int


class RunnerPort(Protocol):
    """A runner as a session host sees it, local or remote.

    Every method raises `RunnerGoneError` if the runner cannot be reached: the call
    may or may not have run. It raises `StaleOrderError` if the runner is another
    incarnation, or serves a newer owner of the session: stop.
    """

    async def execute(self, order: ToolOrder) -> ToolReport:
        """Run the call, or join it if it runs already, and report its outcome.

        Raises:
            RunnerBusyError: the call was not started and will not be.
        """

    async def outcome(self, name: CallName) -> ToolReport | None:
        """Report a started call; None if it was not started: then it will never run here."""

    async def cancel(self, name: CallName) -> None:
        """Terminate the call's processes; kill them after 5 s."""

    def forget(self, name: CallName) -> None:
        """Drop the recorded result of the call, and all results of earlier turns.

        Best effort: the session's next turn also drops it.
        """

    async def reconcile(self, order: ToolOrder) -> ReconcileFinding:
        """Ask the tool for the outcome of the call with this key."""


class _Call:
    """A running call, and the waiters for its report; the call runs on without waiters."""

    __slots__ = ("report", "task", "waiting")

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.report: ToolReport | None = None
        self.waiting: list[asyncio.Future[None]] = []

    def end(self, report: ToolReport) -> None:
        """Wake all current waiters; a done callback of the task would come later."""
        self.report = report
        for waiting in self.waiting:
            if not waiting.done():
                waiting.set_result(None)

    async def reported(self) -> ToolReport:
        """Wait for the report; a cancelled caller can ask again by the call's key."""
        if self.report is None:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.waiting.append(waiting)
            await waiting
        assert self.report is not None, "a call that ended has a report"
        return self.report


@dataclass(slots=True)
class _Served:
    """The runner's memory of one session."""

    epoch: int = 0
    """The highest epoch in an order for the session."""
    turn: int = 0
    """The latest turn; calls of earlier turns are over."""
    calls: dict[tuple[str, int], _Call | None] = field(default_factory=dict)
    """That turn's calls by key and attempt; None if its result is recorded or it is barred."""


class Runner:
    """Executes the calls of many sessions.

    A call runs only on the incarnation that `ToolStarted` names, and only for the highest
    epoch seen for its session. So the answer "never seen" promises that it never will run.

    The runner remembers an epoch for each session while it lives, and the calls of a turn
    until the next turn begins: by then the log has an outcome for each call.
    """

    def __init__(self, incarnation: str, executor: ToolExecutor, now: Callable[[], float]) -> None:
        self.incarnation = incarnation
        self._executor = executor
        self._now = now
        self._served: dict[str, _Served] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._kept: dict[_Call, float | None] = {}
        """The ended calls that no owner has asked to forget.

        The value is the time of the first check by `unsettled`; None before that check.
        """
        self._closed = False

    @property
    def unsettled(self) -> int:
        """The number of calls that run, or whose outcome may not be recorded yet."""
        now = self._now()
        kept = {call: now if since is None else since for call, since in self._kept.items()}
        self._kept = {call: since for call, since in kept.items() if now - since <= KEPT_SECONDS}
        return len(self._running) + len(self._kept)

    def refuse(self) -> None:
        """Start no more calls."""
        self._closed = True

    async def execute(self, order: ToolOrder) -> ToolReport:
        calls = self._check(order).calls
        key = (order.key, order.attempt)
        if key not in calls:
            if self._closed:
                raise RunnerBusyError(self.incarnation)
            calls[key] = self._begin(order)
        call = calls[key]
        if call is None:
            # `outcome` barred it, or its result is recorded and forgotten.
            raise StaleOrderError(self.incarnation, order.session, order.epoch, order.epoch)
        return await call.reported()

    async def outcome(self, name: CallName) -> ToolReport | None:
        call = self._check(name).calls.setdefault((name.key, name.attempt), None)
        return None if call is None else await call.reported()

    async def cancel(self, name: CallName) -> None:
        call = self._check(name).calls.get((name.key, name.attempt))
        if call is not None and call.task is not None:
            call.task.cancel()

    def forget(self, name: CallName) -> None:
        try:
            calls = self._check(name).calls
        except StaleOrderError:
            return
        call = calls.get((name.key, name.attempt))
        if call is not None and call.report is not None:
            calls[name.key, name.attempt] = None
            self._kept.pop(call, None)

    async def reconcile(self, order: ToolOrder) -> ReconcileFinding:
        # Any runner can be asked, so the order names none.
        self._check(CallName(order.session, order.key, 0, self.incarnation, order.epoch))
        try:
            return await self._executor.reconcile(order)
        except CuelineError as error:
            return ReconcileFinding("unknown", str(error))

    async def close(self) -> None:
        """Start no more calls, kill the running calls, and end."""
        self._closed = True
        for task in self._running:
            task.cancel()
        await self._executor.close()

    def _check(self, name: CallName | ToolOrder) -> _Served:
        """Refuse orders for another incarnation, of a former owner, or of an earlier turn."""
        served = self._served.get(name.session)
        if served is None:
            served = self._served[name.session] = _Served()
        turn = _turn(name.key)
        if name.runner != self.incarnation or name.epoch < served.epoch or turn < served.turn:
            raise StaleOrderError(self.incarnation, name.session, name.epoch, served.epoch)
        served.epoch = name.epoch
        if turn > served.turn:
            for call in filter(None, served.calls.values()):
                self._kept.pop(call, None)
            served.turn, served.calls = turn, {}
        return served

    def _begin(self, order: ToolOrder) -> _Call:
        call = _Call()
        call.task = asyncio.create_task(self._carry_out(call, order))
        self._running.add(call.task)
        call.task.add_done_callback(partial(self._ended, call))
        return call

    def _ended(self, call: _Call, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        call.task = None
        if call.report is not None:
            return
        self._kept[call] = None
        if task.cancelled():
            # The task ended before its first step, so it did not report.
            call.end(NOT_BEGUN)
        else:
            why = f"the runner failed ({type(task.exception()).__name__}); it may have had effects"
            call.end(ToolReport("failed", kind="killed", message=why))

    async def _carry_out(self, call: _Call, order: ToolOrder) -> None:
        report = await self._run(order)
        self._kept[call] = None
        call.end(report)

    async def _run(self, order: ToolOrder) -> ToolReport:
        if digest_of_order(order) != order.digest:
            # I9: the call to run is not the one that was granted.
            return ToolReport("failed", kind="not_granted", message="the call was changed")
        began = self._now()
        retry_after = None
        try:
            output = await self._executor.call(order)
        except asyncio.CancelledError:
            kind, message = "cancelled", "it was stopped"
        except ToolFailedError as error:
            kind, message, retry_after = error.kind, error.message, error.retry_after
        except ToolChangedError as error:
            kind, message = "tool_changed", str(error)
        except (ToolImportError, PathEscapeError) as error:
            kind, message = "tool_error", str(error)
        except Exception as error:  # noqa: BLE001 - an executor's bug fails this call only
            kind, message = "tool_error", f"{type(error).__name__}: {error}"
        else:
            if isinstance(output, ToolQuestion):
                return ToolReport("asked", question=output, seconds=self._now() - began)
            if isinstance(output, ToolTask):
                return ToolReport("deferred", task=output, seconds=self._now() - began)
            return ToolReport(
                "returned",
                content=output.content,
                seconds=output.seconds,
                truncated_from=output.truncated_from,
                media_type=output.media_type,
                changes=output.changes,
                text=output.text,
            )
        return ToolReport(
            "failed",
            kind=kind,
            message=message,
            seconds=self._now() - began,
            retry_after=retry_after,
        )


def _turn(key: str) -> int:
    """Return the turn of the call with the idempotency key `<stream>/<turn>.<index>`."""
    return int(key.rpartition("/")[2].partition(".")[0])


def digest_of_order(order: ToolOrder) -> str:
    """Return the digest of the exact call of *order* (I9)."""
    place = order.workspace
    return order_digest(
        session=order.session,
        effect=order.effect,
        tool=order.tool.name,
        tool_digest=order.tool.digest,
        arguments=order.arguments,
        workspace=(place.machine, place.path) if place else None,
    )
