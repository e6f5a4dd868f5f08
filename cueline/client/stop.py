"""Ends a session, also one that nobody drives."""

from cueline.client.context import Connection
from cueline.client.current import current_session
from cueline.client.message import post
from cueline.client.receipt import StopReceipt, receipt_fields
from cueline.client.value import make_value
from cueline.events.inbox import StopAsked
from cueline.inline import drive_to_end


async def stop(client: Connection, stream: str, reason: str) -> StopReceipt:
    """Ask for the end of a session; where nobody would read that, end it here.

    Raises:
        UnknownSessionError: there is no such session.
        CuelineError: nobody drives it, and it cannot be driven here; the message says why.
    """
    message = make_value(StopAsked, reason=reason)
    now = await current_session(client.cache, stream)
    ended = now.state.finished
    at = None if ended or now.stopping else await post(client, now, message)
    told = await receipt_fields(client, stream, message.type, at)
    if not ended and told["read_by"] == "nobody":
        client.context.tries_again(stream)
        await drive_to_end(client.log, stream)
        now = await current_session(client.cache, stream)
        told["read_by"] = "here"
    calls = now.state.turn.calls
    return StopReceipt(
        **told,
        status=str(now.state.status),
        ended_before=ended,
        in_doubt={call.effect: call.tool for call in calls if call.phase == "in_doubt"},
    )
