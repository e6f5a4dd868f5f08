"""Where the HTTP server of a log listens: told on the presence board, while it lives."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Final

from cueline.actors.background_task import background_task
from cueline.actors.presence import beat_always, living, presence_of, runs_here
from cueline.runtime.open_log import OpenLog

_ROLE: Final = "server"
_OF_ONE_MACHINE: Final = re.compile(r"//(127\.|localhost|0\.0\.0\.0|\[::1?\])")


@asynccontextmanager
async def announced(log: OpenLog, url: str) -> AsyncIterator[None]:
    """Tell other processes of the log, until the block ends, that this one serves it at *url*."""
    presence = replace(presence_of(_ROLE), address=url)
    await log.board.beat(presence)
    try:
        with background_task(beat_always(log.board, presence, log.clock)):
            yield
    finally:
        with suppress(Exception):  # without it, others notice the silence
            await log.board.leave(presence.incarnation)


async def server_of(log: OpenLog) -> str | None:
    """Return the URL of a living server of the log; None if there is none."""
    present = await living(log.board, log.clock.now())
    servers = (each for each in present if each.role == _ROLE)
    # A loopback address is of the machine that told it.
    fitting = (e for e in servers if runs_here(e) or not _OF_ONE_MACHINE.search(e.address))
    return next((each.address for each in fitting), None)
