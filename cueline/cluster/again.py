"""What is done for ever, whatever becomes of it."""

from collections.abc import Awaitable, Callable

from cueline.clock import Clock
from cueline.cluster.site import Trouble
from cueline.errors import ClusterError, CuelineError

AGAIN_SECONDS = 0.5
Step = Callable[[], Awaitable[None]]


async def always(what: str, step: Step, *, clock: Clock, on_trouble: Trouble) -> None:
    """Do *step* again and again; tell the first failure of a row, and wait a little after each."""
    failed = False
    while True:
        try:
            await step()
            failed = False
            continue
        except CuelineError as error:
            trouble = error
        except Exception as error:  # noqa: BLE001 - a loop that ended would leave its work to nobody
            trouble = ClusterError(what, f"{type(error).__name__}: {error}")
        if not failed:
            on_trouble(what, trouble)
        failed = True
        await clock.sleep(AGAIN_SECONDS)
