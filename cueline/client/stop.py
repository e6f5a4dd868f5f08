"""Ends a session, also one that nobody drives."""

from typing import TYPE_CHECKING

from cueline.client.current import CurrentSession, current_session
from cueline.client.message import post
from cueline.client.receipt import StopReceipt, reader_of, where
from cueline.client.value import make_value
from cueline.events.inbox import StopAsked
from cueline.events.stream import shown
from cueline.inline import drive_to_end

if TYPE_CHECKING:
    from cueline.client.client import Client


async def stop(client: "Client", stream: str, reason: str) -> StopReceipt:
    """Ask for the end of a session; where nobody would read that, end it here.

    Raises:
        UnknownSessionError: there is no such session.
        CuelineError: nobody drives it, and it cannot be driven here; the message says why.
    """
    message = make_value(StopAsked, reason=reason)
    now = await current_session(client.cache, stream)
    ended = now.state.finished
    at = None if ended or now.stopping else await post(client, now, message)
    read_by = await reader_of(client, stream)
    if not ended and read_by == "nobody":
        client.context.tries_again(stream)
        await drive_to_end(client.log, stream)
        now = await current_session(client.cache, stream)
        read_by = "here"
    return StopReceipt(
        session=shown(stream),
        message=message.type,
        recorded=at is not None,
        read_by=read_by,
        status=str(now.state.status),
        ended_before=ended,
        in_doubt=_in_doubt(now),
        **where(at),
    )


def _in_doubt(now: CurrentSession) -> dict[str, str]:
    return {call.effect: call.tool for call in now.state.turn.calls if call.phase == "in_doubt"}
