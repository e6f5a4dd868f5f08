"""What goes on in the background: for ever, or as long as something else."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress

from cueline.actors.cancellation import isolate_cancellation
from cueline.clock import Clock
from cueline.errors import CuelineError
from cueline.events.stream import shown

AGAIN_SECONDS = 0.5
Step = Callable[[], Awaitable[None]]
Trouble = Callable[[str, CuelineError], None]
"""Is told of what goes wrong, a session or what is done for all of them, and why."""


def trouble_message(what: str, trouble: CuelineError) -> str:
    """Return *trouble* in words, with what it is about in front, once: many errors name that."""
    text = str(trouble)
    named = tuple(f"{name}{mark}" for name in (what, shown(what)) for mark in ":@")
    return text if text.startswith(named) else f"{what}: {text}"


def safe_callback(tell: Trouble) -> Trouble:
    """Return *tell* so that it ends nobody's work where nobody can be told any more."""

    def told(what: str, trouble: CuelineError) -> None:
        with suppress(Exception):  # a terminal that was closed, say
            tell(what, trouble)

    return told


async def repeat_forever(what: str, step: Step, *, clock: Clock, on_trouble: Trouble) -> None:
    """Do *step* again and again; tell the first failure of a row, and wait a little after each."""
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
    """Do each of *steps* `always`, side by side, until it is cancelled."""
    loops = (
        repeat_forever(what, step, clock=clock, on_trouble=on_trouble)
        for what, step in steps.items()
    )
    return [asyncio.create_task(loop) for loop in loops]


@contextmanager
def background_task(work: Coroutine[object, object, None]) -> Iterator[None]:
    """Have *work* go on until this ends."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()


async def shielded(work: Coroutine[object, object, None]) -> None:
    """Do *work* to its end, however often whoever waits for that is cancelled meanwhile.

    What lets go of things has to do that also where it is cancelled twice; a
    cancelled scope of anyio does so at every await.
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
