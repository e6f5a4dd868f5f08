"""Ports that go dead at a chosen point, like the parts of a killed process.

A `CrashPoint` chooses the point. A call of a dead port waits without end, so code of the
killed side that still runs, a `finally` too, has no effect.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence

from cueline.actors.model_port import (
    DeltaSink,
    Model,
    ModelReply,
    ModelRequest,
    TokenCounter,
    drop_delta,
)
from cueline.actors.runner import CallName, RunnerPort, ToolReport
from cueline.actors.tool_port import (
    ReconcileFinding,
    ToolExecutor,
    ToolOrder,
    ToolOutput,
    ToolQuestion,
    ToolTask,
)
from cueline.errors import CorruptEventError
from cueline.events.store import NO_STREAM, Appended, EventStore, Head, RecordedEvent, Write
from cueline.events.stream import category_of


class CrashPoint:
    """The lifetime of a process: up to the point with a number, counted from 0, or without end."""

    def __init__(self, dies_at: int | None = None) -> None:
        self.points: list[str] = []
        """The passed points, by name."""
        self.dead = False
        self._dies_at = dies_at

    async def reach(self, point: str) -> None:
        """Pass *point*, or die at it."""
        await self.go_on()
        self.points.append(point)
        if len(self.points) - 1 == self._dies_at:
            self.dead = True
            await self.go_on()

    async def go_on(self) -> None:
        """Return if the process lives; if it is dead, wait without end."""
        if self.dead:
            await asyncio.get_running_loop().create_future()


class CrashingStore:
    """The log for one process, while it lives; see `EventStore`."""

    def __init__(self, store: EventStore, life: CrashPoint) -> None:
        self._store = store
        self._life = life

    @property
    def log_id(self) -> str:
        return self._store.log_id

    async def faults(self) -> Sequence[CorruptEventError]:
        await self._life.go_on()
        return await self._store.faults()

    async def head(self, stream: str) -> Head:
        await self._life.go_on()
        return await self._store.head(stream)

    async def heads(self, streams: Collection[str]) -> dict[str, Head]:
        await self._life.go_on()
        return await self._store.heads(streams)

    async def acquire(self, stream: str, owner: str, seen_epoch: int) -> int:
        await self._life.reach(f"before acquiring {category_of(stream)}")
        epoch = await self._store.acquire(stream, owner, seen_epoch)
        await self._life.reach(f"after acquiring {category_of(stream)}")
        return epoch

    async def append(self, writes: Sequence[Write], key: str | None) -> Appended:
        what = ", ".join(draft.type for write in writes for draft in write.events)
        await self._life.reach(f"before {what}")
        appended = await self._store.append(writes, key)
        await self._life.reach(f"after {what}")
        return appended

    async def read(
        self,
        stream: str,
        after: int = NO_STREAM,
        until: int | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[RecordedEvent]:
        async for event in self._store.read(stream, after, until, limit):
            await self._life.go_on()
            yield event

    async def read_back(
        self, stream: str, until: int | None = None, limit: int | None = None
    ) -> AsyncIterator[RecordedEvent]:
        async for event in self._store.read_back(stream, until, limit):
            await self._life.go_on()
            yield event

    async def read_all(
        self, after: int = 0, categories: Collection[str] | None = None, limit: int | None = None
    ) -> AsyncIterator[RecordedEvent]:
        async for event in self._store.read_all(after, categories, limit):
            await self._life.go_on()
            yield event

    async def follow(
        self, after: int, categories: Collection[str] | None = None
    ) -> AsyncIterator[RecordedEvent]:
        async for event in self._store.follow(after, categories):
            await self._life.go_on()
            yield event

    async def last_position(self) -> int:
        await self._life.go_on()
        return await self._store.last_position()

    async def put_blob(self, content: bytes) -> str:
        await self._life.reach("before a blob")
        blob = await self._store.put_blob(content)
        await self._life.reach("after a blob")
        return blob

    async def get_blob(self, blob: str) -> bytes:
        await self._life.go_on()
        return await self._store.get_blob(blob)

    async def close(self) -> None:
        """See `EventStore.close`; the log itself outlives the process."""


class CrashingExecutor:
    """Tools for one process, while it lives; see `ToolExecutor`."""

    def __init__(self, executor: ToolExecutor, life: CrashPoint) -> None:
        self._executor = executor
        self._life = life

    async def call(self, order: ToolOrder) -> ToolOutput | ToolQuestion | ToolTask:
        await self._life.reach(f"before the tool {order.tool.name}")
        output = await self._executor.call(order)
        await self._life.reach(f"after the tool {order.tool.name}")
        return output

    async def reconcile(self, order: ToolOrder) -> ReconcileFinding:
        await self._life.reach(f"before asking {order.tool.name}")
        finding = await self._executor.reconcile(order)
        await self._life.reach(f"after asking {order.tool.name}")
        return finding

    async def close(self) -> None:
        if not self._life.dead:
            await self._executor.close()


class CrashingModel:
    """A model for one process, while it lives; see `Model`."""

    def __init__(self, model: Model, life: CrashPoint) -> None:
        self._model = model
        self._life = life

    async def reply(self, request: ModelRequest, deltas: DeltaSink = drop_delta) -> ModelReply:
        await self._life.reach("before the model")
        reply = await self._model.reply(request, deltas)
        await self._life.reach("after the model")
        return reply

    async def count(self, request: ModelRequest) -> int | None:
        """See `TokenCounter.count`; None if the model cannot count."""
        if not isinstance(self._model, TokenCounter):
            return None
        await self._life.reach("before a count")
        counted = await self._model.count(request)
        await self._life.reach("after a count")
        return counted

    async def close(self) -> None:
        if not self._life.dead:
            await self._model.close()


class CrashingRunner:
    """Another process's runner for one process, while it lives; see `RunnerPort`."""

    def __init__(self, runner: RunnerPort, life: CrashPoint) -> None:
        self._runner = runner
        self._life = life

    async def execute(self, order: ToolOrder) -> ToolReport:
        await self._life.reach("before an order")
        # Sent, it arrives, whatever becomes of the sender.
        report = await asyncio.shield(asyncio.ensure_future(self._runner.execute(order)))
        await self._life.reach("after a report")
        return report

    async def outcome(self, name: CallName) -> ToolReport | None:
        await self._life.go_on()
        report = await self._runner.outcome(name)
        await self._life.go_on()
        return report

    async def cancel(self, name: CallName) -> None:
        await self._life.go_on()
        await self._runner.cancel(name)

    def forget(self, name: CallName) -> None:
        if not self._life.dead:
            self._runner.forget(name)

    async def reconcile(self, order: ToolOrder) -> ReconcileFinding:
        await self._life.go_on()
        return await self._runner.reconcile(order)
