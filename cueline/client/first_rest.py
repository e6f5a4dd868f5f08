"""Finds the first time after a version at which a session had ended or was idle."""

from cueline.client.context import Connection
from cueline.client.session import Result
from cueline.deciders.session import Status
from cueline.events.event_text import end_text
from cueline.events.session import SessionCompleted, SessionFailed, SessionIdle, SessionStopped


async def first_rest(client: Connection, stream: str, after: int) -> Result | None:
    """Return the first result of the session *stream* after a version; None if it has none yet.

    A result stays the same: what the session does later is not part of it.
    """
    async for _, fact in client.log.journal().read(stream, after):
        match fact:
            case SessionCompleted(result=text, partial=partial, value=value):
                return Result(Status.COMPLETED, text, partial, value=value)
            case SessionIdle(result=text, partial=partial):
                return Result(Status.IDLE, text, partial)
            case SessionFailed():
                return Result(Status.FAILED, end_text(fact))
            case SessionStopped():
                return Result(Status.STOPPED, "")
    return None
