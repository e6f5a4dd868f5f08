"""The runner: executes tool calls on one machine, and fences its owners' past selves."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol

from msgspec import Struct

from cueline.actors.tool_port import ReconcileFinding, ToolExecutor, ToolOrder
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
    """What became of a call; the content is not cleaned yet."""

    outcome: Literal["returned", "failed"]
    content: bytes = b""
    kind: str = ""
    """Of a failure: tool_error, timeout, invalid_arguments, killed, cancelled …"""
    message: str = ""
    seconds: float = 0.0
    truncated_from: int | None = None
    retry_after: float | None = None
    """What a tool whose failure passes asked for, in seconds."""


NOT_BEGUN = ToolReport("failed", kind="not_started", message="it was stopped before it began")


class CallName(Struct, frozen=True):
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

    def forget(self, name: CallName) -> None:
        """Drop the result: the owner has recorded it. And all that is of an earlier turn.

        Best effort, and nobody waits for it: what is not forgotten goes with the
        session's next turn.
        """
        ...

    async def reconcile(self, order: ToolOrder) -> ReconcileFinding:
        """Ask the tool what became of the call with this key."""
        ...


class _Call:
    """A call that was begun, and who waits for its report; it goes on when they go away."""

    __slots__ = ("report", "task", "waiting")

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.report: ToolReport | None = None
        self.waiting: list[asyncio.Future[None]] = []

    def end(self, report: ToolReport) -> None:
        """Tell everybody who waits: at once, for a callback of the task comes a pass later."""
        self.report = report
        for waiting in self.waiting:
            if not waiting.done():
                waiting.set_result(None)

    async def reported(self) -> ToolReport:
        """Wait for the report; who waits may go away, and ask again by the call's key."""
        if self.report is None:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.waiting.append(waiting)
            await waiting
        assert self.report is not None, "a call that ended has a report"
        return self.report


@dataclass(slots=True)
class _Served:
    """What the runner remembers of one session."""

    epoch: int = 0
    """The highest it has seen."""
    turn: int = 0
    """The latest; whatever belongs to an earlier one is over."""
    calls: dict[tuple[str, int], _Call | None] = field(default_factory=dict)
    """Of that turn, by key and attempt; None: its result is recorded, or it is barred."""


class Runner:
    """Runs calls for many sessions.

    Only the incarnation that `ToolStarted` names may be sent the call, and no
    epoch below the highest one seen for its session. So "never seen" also
    promises "and never will".

    It remembers an epoch for each session while it lives, and the calls of its
    turn until that is over: a session begins a turn when all calls of the one
    before have an outcome in the log.
    """

    def __init__(self, incarnation: str, executor: ToolExecutor, now: Callable[[], float]) -> None:
        self.incarnation = incarnation
        self._executor = executor
        self._now = now
        self._served: dict[str, _Served] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def busy(self) -> int:
        """How many calls run."""
        return len(self._running)

    async def execute(self, order: ToolOrder) -> ToolReport:
        """See `RunnerPort.execute`."""
        calls = self._check(order).calls
        key = (order.key, order.attempt)
        if key not in calls:
            if self._closed:
                raise RunnerBusyError(self.incarnation)
            calls[key] = self._begin(order)
        call = calls[key]
        if call is None:
            # Barred by `outcome`, or forgotten because its result is recorded.
            raise StaleOrderError(self.incarnation, order.session, order.epoch, order.epoch)
        return await call.reported()

    async def outcome(self, name: CallName) -> ToolReport | None:
        """See `RunnerPort.outcome`."""
        call = self._check(name).calls.setdefault((name.key, name.attempt), None)
        return None if call is None else await call.reported()

    async def cancel(self, name: CallName) -> None:
        """See `RunnerPort.cancel`."""
        call = self._check(name).calls.get((name.key, name.attempt))
        if call is not None and call.task is not None:
            call.task.cancel()

    def forget(self, name: CallName) -> None:
        """See `RunnerPort.forget`."""
        try:
            calls = self._check(name).calls
        except StaleOrderError:
            return
        call = calls.get((name.key, name.attempt))
        if call is not None and call.report is not None:
            calls[name.key, name.attempt] = None

    async def reconcile(self, order: ToolOrder) -> ReconcileFinding:
        """See `RunnerPort.reconcile`."""
        # Any runner may be asked, so the order names none.
        self._check(CallName(order.session, order.key, 0, self.incarnation, order.epoch))
        try:
            return await self._executor.reconcile(order)
        except CuelineError as error:
            return ReconcileFinding("unknown", str(error))

    async def close(self) -> None:
        """Begin nothing new, kill what runs, and end."""
        self._closed = True
        for task in self._running:
            task.cancel()
        await self._executor.close()

    def _check(self, name: CallName | ToolOrder) -> _Served:
        """Refuse another incarnation's orders, those of a former owner, and those of the past."""
        served = self._served.get(name.session)
        if served is None:
            served = self._served[name.session] = _Served()
        turn = _turn(name.key)
        if name.runner != self.incarnation or name.epoch < served.epoch or turn < served.turn:
            raise StaleOrderError(self.incarnation, name.session, name.epoch, served.epoch)
        served.epoch = name.epoch
        if turn > served.turn:
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
        if task.cancelled():
            # Before its first step: it never came to say so itself.
            call.end(NOT_BEGUN)
        else:
            why = f"the runner failed ({type(task.exception()).__name__}); it may have had effects"
            call.end(ToolReport("failed", kind="killed", message=why))

    async def _carry_out(self, call: _Call, order: ToolOrder) -> None:
        call.end(await self._run(order))

    async def _run(self, order: ToolOrder) -> ToolReport:
        if digest_of_order(order) != order.digest:
            # I9: what would run is not what was asked for.
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
        except Exception as error:  # noqa: BLE001 - an executor's bug is this call's failure
            kind, message = "tool_error", f"{type(error).__name__}: {error}"
        else:
            return ToolReport(
                "returned",
                content=output.content,
                seconds=output.seconds,
                truncated_from=output.truncated_from,
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
    """Return the digest of exactly what *order* would run (I9)."""
    place = order.workspace
    return order_digest(
        session=order.session,
        effect=order.effect,
        tool=order.tool.name,
        tool_digest=order.tool.digest,
        arguments=order.arguments,
        workspace=(place.machine, place.path) if place else None,
    )
