"""The warm workers of one runner."""

import asyncio
import os
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from cueline.errors import ToolFailedError
from cueline.tools.worker_process import WorkerProcess


class WorkerPool:
    """At most *size* workers; each starts when it is first needed."""

    def __init__(self, size: int, grace_seconds: float) -> None:
        self._size = size
        self._grace_seconds = grace_seconds
        self._slots = asyncio.Semaphore(size)
        self._workers: set[WorkerProcess] = set()
        self._idle: list[WorkerProcess] = []
        self._starting = 0
        self._closed = False

    @asynccontextmanager
    async def worker(
        self, secrets: Collection[str], passed: Collection[str]
    ) -> AsyncIterator[WorkerProcess]:
        """Lend a worker that sees no *secrets*, except variables *passed* on.

        A worker that has not answered is stopped.

        Raises:
            ToolFailedError: no worker starts; no tool has run.
        """
        async with self._slots:
            shown = frozenset(passed).intersection(os.environ)
            hidden = frozenset(secrets).intersection(os.environ) - shown
            worker = await self._take(hidden, shown)
            try:
                yield worker
            finally:
                await self._give_back(worker)

    async def _take(self, hidden: frozenset[str], shown: frozenset[str]) -> WorkerProcess:
        for worker in reversed(self._idle):  # the one used last is the warmest
            if not worker.idle:
                self._forget(worker)
                worker.kill()
            elif hidden <= worker.without and shown == worker.passed:
                self._idle.remove(worker)
                return worker
        self._starting += 1
        try:
            if len(self._workers) + self._starting > self._size:
                # The caller has a slot, so one of the others is idle.
                other = self._idle[0]
                self._forget(other)
                await other.stop(0)
            return await self._start(hidden, shown)
        finally:
            self._starting -= 1

    async def _start(self, hidden: frozenset[str], shown: frozenset[str]) -> WorkerProcess:
        self._refuse_when_closed()
        worker = await WorkerProcess.start(hidden, shown)
        try:
            self._refuse_when_closed()
        except ToolFailedError:
            worker.kill()
            raise
        self._workers.add(worker)
        return worker

    async def _give_back(self, worker: WorkerProcess) -> None:
        if worker.idle:
            self._idle.append(worker)
            return
        try:
            if not worker.gone.is_set():
                await worker.stop(self._grace_seconds)
        finally:
            self._workers.discard(worker)

    def _forget(self, worker: WorkerProcess) -> None:
        self._idle.remove(worker)
        self._workers.discard(worker)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise ToolFailedError("killed", "the runner is closing; the tool did not run")

    async def close(self) -> None:
        """Kill all workers, also lent ones."""
        self._closed = True
        for worker in self._workers:
            worker.let_go()
        while self._idle:
            await self._idle.pop().ended()
        await asyncio.gather(*(worker.gone.wait() for worker in self._workers))
