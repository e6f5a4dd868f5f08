"""Background tasks: endless loops, tasks bound to a block, and foreign cancellation."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TypeVar

from cueline.clock import Clock
from cueline.errors import CuelineError

T = TypeVar("T")
GRACE_SECONDS = 5.0
"""Time that running effects have to finish before they are cancelled."""


async def isolate_cancellation(work: Awaitable[T]) -> T:
    """Await *work*; turn its own `CancelledError` into an error.

    A call that the host cancelled is started again and is no failure. A `CancelledError` from
    the foreign code is a failure.

    Raises:
        RuntimeError: the work raised `CancelledError` without being cancelled.
    """
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("it raised CancelledError without being cancelled") from error


AGAIN_SECONDS = 0.5
Step = Callable[[], Awaitable[None]]
Trouble = Callable[[str, CuelineError], None]
"""The callback for errors: gets the name of the failed work, and the error."""


def safe_callback(tell: Trouble) -> Trouble:
    """Return *tell* as a callback that ignores output errors."""

    def told(what: str, trouble: CuelineError) -> None:
        with suppress(Exception):  # for example, the terminal was closed
            tell(what, trouble)

    return told


async def repeat_forever(what: str, step: Step, *, clock: Clock, on_trouble: Trouble) -> None:
    """Repeat *step* without end; wait after each failure; report the first of several in a row."""
    failed, tell = False, safe_callback(on_trouble)
    while True:
        try:
            await isolate_cancellation(step())
            failed = False
            continue
        except CuelineError as error:
            trouble = error
        except Exception as error:  # noqa: BLE001 - a loop that ended would leave its work to nobody
            trouble = CuelineError(f"{type(error).__name__}: {error}")
        if not failed:
            tell(what, trouble)
        failed = True
        await clock.sleep(AGAIN_SECONDS)


def start_loops(
    steps: Mapping[str, Step], *, clock: Clock, on_trouble: Trouble
) -> list[asyncio.Task[None]]:
    """Start one endless loop for each of *steps*."""
    loops = (
        repeat_forever(what, step, clock=clock, on_trouble=on_trouble)
        for what, step in steps.items()
    )
    return [asyncio.create_task(loop) for loop in loops]


@contextmanager
def background_task(work: Coroutine[object, object, None]) -> Iterator[None]:
    """Run *work* in a task until the block ends; then cancel it."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()


async def shielded(work: Coroutine[object, object, None]) -> None:
    """Await *work* to its end, even if the caller is cancelled, once or several times.

    Cleanup code needs this: a cancelled scope of anyio cancels at every await.
    """
    doing = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not doing.done():
        try:
            await asyncio.wait([doing])
        except asyncio.CancelledError as error:
            cancelled = error
    doing.result()
    if cancelled is not None:
        raise cancelled
