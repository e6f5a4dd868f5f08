"""Starts worker processes, sends requests to them, and ends them, for a runner."""

import asyncio
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import chain
from pathlib import Path

from cueline.errors import ToolFailedError
from cueline.events.codes import NOT_STARTED
from cueline.events.sanitize import CUT
from cueline.tools import guardian
from cueline.tools.progress import Report, drop_progress, share_of
from cueline.tools.result import said_by
from cueline.tools.worker_protocol import CHUNK, SIZES, Head, pack, scrub_environment

START_SECONDS = 60
DEATH_SECONDS = 10
COMPLAINT = 1000
WORKER = "cueline.tools.worker"
"""The module that a guardian becomes; a name, since the guardian imports little."""
HEAD_LIMIT = 1 << 28
BODY_LIMIT = 1 << 30


class WorkerProcess:
    """A worker and its guardian; they and all processes below them die with this process."""

    def __init__(self, without: frozenset[str], passed: frozenset[str]) -> None:
        """Start the worker and its guardian. This takes some milliseconds; see `start`."""
        self.without = without
        """Variables that are hidden from this worker, beside the variables that no tool sees."""
        self.passed = passed
        """Variables that look like credentials, but that the agent passes on to this worker."""
        self._asked = False
        self._unread = bytearray()
        """What was read after the last frame."""
        self.gone = asyncio.Event()
        """Set when all descriptors of the worker are closed."""
        theirs, ours = pipes()
        self._control, self._requests, self._replies, self._status = ours
        try:
            environment = scrub_environment(os.environ, without, passed)
            self._fault = launch(theirs, environment)
        except BaseException:
            self.kill()
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)

    @staticmethod
    async def start(without: frozenset[str], passed: frozenset[str]) -> "WorkerProcess":
        """Start a worker, and wait until it is ready.

        Raises:
            ToolFailedError: the worker does not start; no tool has run.
        """
        starting = asyncio.ensure_future(asyncio.to_thread(WorkerProcess, without, passed))
        try:
            worker = await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(discard)
            raise
        except (OSError, RuntimeError) as error:  # files, processes or threads have run out
            raise ToolFailedError(
                NOT_STARTED, f"no worker can be started: {said_by(error)}"
            ) from error
        try:
            async with asyncio.timeout(START_SECONDS):
                reply = await worker.receive()
        except BaseException:
            worker.kill()
            raise
        if reply is None or reply[0].get("kind") != "ready":
            worker.kill()
            raise ToolFailedError(NOT_STARTED, f"no worker can be started: {worker.fault(reply)}")
        return worker

    def fault(self, reply: tuple[Head, bytes] | None) -> str:
        """Return why the worker did not start."""
        return str(reply[0].get("reason")) if reply else self._fault or "it died"

    @property
    def idle(self) -> bool:
        """Whether the worker is alive, has answered its request, and sends no more data."""
        if self._asked or self._unread or self._control < 0:
            return False
        try:
            os.read(self._replies, 1)
        except BlockingIOError:
            return True
        return False

    async def exchange(
        self, request: Mapping[str, object], report: Report = drop_progress
    ) -> tuple[Head, bytes] | None:
        """Send *request* and return the reply; None if the worker died.

        The progress that comes before the reply goes to *report*.
        """
        self._asked = True
        try:
            for part in pack(request):
                await self.send(part)
        except BrokenPipeError:
            return None
        while (reply := await self.receive()) is not None and reply[0].get("kind") == "progress":
            report(share_of(reply[0].get("share")), str(reply[0].get("text")))
        # A worker whose limits stay changed takes no other request.
        self._asked = reply is None or reply[0].get("spent", True)
        return reply

    async def send(self, part: bytes) -> None:
        """Write all of *part*."""
        view = memoryview(part)
        while view:
            try:
                view = view[os.write(self._requests, view) :]
            except BlockingIOError:
                await writable(self._requests)

    async def receive(self) -> tuple[Head, bytes] | None:
        """Return the next frame; None at the end, or for an invalid frame."""
        buffer, head_size, size = self._unread, 0, SIZES.size
        while True:
            if size == SIZES.size <= len(buffer):
                head_size, body_size = SIZES.unpack_from(buffer)
                size += head_size + body_size
                if head_size > HEAD_LIMIT or body_size > BODY_LIMIT:
                    return None
            if size <= len(buffer):
                break
            await readable(self._replies)
            chunk = os.read(self._replies, CHUNK)
            if not chunk:
                return None
            buffer += chunk
        frame = parse(buffer, SIZES.size + head_size, size)
        del buffer[:size]
        return frame

    async def stop(self, grace_seconds: float) -> int | None:
        """Terminate all processes of the worker, kill the rest, and return the worker's exit code.

        Returns None if the exit code is unknown.
        """
        try:
            if self._control >= 0:
                with suppress(BrokenPipeError):
                    os.write(self._control, b"t")
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_seconds):
                    await readable(self._status)
        except BaseException:
            self.kill()  # no task waits for the end of the worker any more
            raise
        self.let_go()
        return await self.ended()

    async def ended(self) -> int | None:
        """Wait for the end of all processes; return the worker's exit code, or None if unknown."""
        try:
            # A process that the system cannot kill is not awaited longer.
            async with asyncio.timeout(DEATH_SECONDS):
                told = await self._told()
        except TimeoutError:
            return None
        finally:
            self.kill()
        code: int | None = json.loads(told)["code"] if told else None
        return code

    async def _told(self) -> bytes:
        told = b""
        while True:
            await readable(self._status)
            chunk = os.read(self._status, CHUNK)
            if not chunk:  # the guardian itself is gone
                return told
            told += chunk

    def let_go(self) -> None:
        """Kill all processes, without a wait."""
        if self._control >= 0:
            os.close(self._control)
            self._control = -1

    def kill(self) -> None:
        """Kill all processes, and close the descriptors."""
        self.let_go()
        if not self.gone.is_set():
            for descriptor in (self._requests, self._replies, self._status):
                os.close(descriptor)
            self.gone.set()


def pipes() -> tuple[list[int], list[int]]:
    """Return the worker's and the runner's ends of control, requests, replies and status."""
    made: list[tuple[int, int]] = []
    try:
        made.extend(os.pipe() for _ in range(4))
    except OSError:
        for descriptor in chain.from_iterable(made):
            os.close(descriptor)
        raise
    downward, upward = made[:2], made[2:]
    ours = [target for _, target in downward] + [source for source, _ in upward]
    for descriptor in ours:
        os.set_blocking(descriptor, False)
    with suppress(OSError, AttributeError):  # Linux only, and up to a limit of the machine
        fcntl.fcntl(ours[2], fcntl.F_SETPIPE_SZ, CHUNK)
    return [source for source, _ in downward] + [target for _, target in upward], ours


def launch(theirs: list[int], environment: Mapping[str, str]) -> str:
    """Start a guardian, which starts a worker; return its error text.

    The guardian is no fork of this process, which may be a Ray worker with many threads.
    """
    names = ("control", "requests", "replies", "status")
    config: dict[str, object] = dict(zip(names, theirs, strict=True))
    config["path"] = [str(Path(entry).absolute()) for entry in sys.path]
    config["worker"] = WORKER
    # Run as a file, because `-m` would import the package; `-P` keeps the folder of that file from
    # hiding other modules.
    done = subprocess.run(  # noqa: S603 - our own file
        [sys.executable, "-P", guardian.__file__, json.dumps(config)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=theirs,
        start_new_session=True,
        check=False,
    )
    told = done.stderr.decode(errors="replace")
    return told if len(told) <= COMPLAINT else CUT + told[-COMPLAINT:]


def discard(starting: asyncio.Future[WorkerProcess]) -> None:
    """Kill a worker that has no waiter."""
    if not starting.cancelled() and starting.exception() is None:
        starting.result().kill()


def parse(buffer: bytearray, body: int, end: int) -> tuple[Head, bytes] | None:
    """Return head and body of a frame; None if a tool has written into the frame."""
    try:
        head = json.loads(buffer[SIZES.size : body])
    except ValueError:
        return None
    return (head, bytes(memoryview(buffer)[body:end])) if isinstance(head, dict) else None


async def readable(descriptor: int) -> None:
    """Wait until *descriptor* is readable, or at its end."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(descriptor, notice, ready)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


async def writable(descriptor: int) -> None:
    """Wait until *descriptor* is writable, or broken."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_writer(descriptor, notice, ready)
    try:
        await ready
    finally:
        loop.remove_writer(descriptor)


def notice(ready: asyncio.Future[None]) -> None:
    """Resolve *ready*, unless it was resolved or cancelled earlier."""
    if not ready.done():
        ready.set_result(None)


class WorkerPool:
    """A pool of at most *size* workers, which start when they are first needed."""

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

        A worker that has not answered by the end of the block is stopped.

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
        for worker in reversed(self._idle):  # the last used worker is the warmest
            if not worker.idle:
                self._forget(worker)
                worker.kill()
            elif hidden <= worker.without and shown == worker.passed:
                self._idle.remove(worker)
                return worker
        self._starting += 1
        try:
            if len(self._workers) + self._starting > self._size:
                # The caller has a slot, so another worker is idle.
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
        """Kill all workers, including workers in use."""
        self._closed = True
        for worker in self._workers:
            worker.let_go()
        while self._idle:
            await self._idle.pop().ended()
        await asyncio.gather(*(worker.gone.wait() for worker in self._workers))
