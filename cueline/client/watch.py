"""Tells whoever watches a session when watching it has become vain."""

from collections.abc import Callable
from contextlib import suppress

from cueline.actors.session_owner import LOOK_SECONDS, OrphanDetector, next_owner
from cueline.deciders.session import SessionState
from cueline.errors import CuelineError
from cueline.up_record import find_up
from cueline.wiring import OpenLog


async def until_up_is_over(log: OpenLog, stream: str) -> str:
    """Return why nobody drives *stream* any more: the `cueline up` has gone, or set it aside."""
    orphan_detector = OrphanDetector(stream, log.store, log.board, log.clock, taken_up=lambda: True)
    why = None
    while why is None and find_up(log.url) is not None:
        await log.clock.sleep(LOOK_SECONDS)
        with suppress(CuelineError):  # looked at again
            why = await orphan_detector.orphan_reason(idle=False)
    ended = "the `cueline up` of this log has ended"
    return ended if why is None else f"nobody drives it now ({why})"


async def until_taken_over(
    log: OpenLog, state: Callable[[], SessionState], has: Callable[[str | None], bool]
) -> None:
    """Return when another process has the session, and waits for a call that is still with us."""
    while True:
        await log.clock.sleep(LOOK_SECONDS)
        with suppress(CuelineError):  # looked at again
            if await next_owner(state(), log.store, log.board, log.clock.now(), has) is not None:
                return
