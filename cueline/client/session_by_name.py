"""Sends wishes to sessions by name: by id, by approval, or with all descendants."""

from collections.abc import Awaitable, Callable
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from cueline.actors.session_tree import with_descendants
from cueline.client.context import Connection
from cueline.client.decide import decision_of, question_of
from cueline.client.session import Session
from cueline.errors import RejectedError, SessionFinishedError, SessionOwnedError
from cueline.events.session import ApprovalRequested
from cueline.events.stream import shown

C = TypeVar("C", bound=Connection)
T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


def of_named(
    method: Callable[Concatenate[Session, P], Awaitable[R]],
) -> Callable[Concatenate[C, str, P], Awaitable[R]]:
    """Return *method* for a session given by id, unique prefix, or stream."""

    async def call(client: C, session: str, *args: Any, **given: Any) -> R:
        return await method(Session(client, await client.find(session)), *args, **given)

    # The name may be given as a keyword, too, which this type cannot express.
    return cast("Callable[Concatenate[C, str, P], Awaitable[R]]", update_wrapper(call, method))


def of_asking(
    method: Callable[Concatenate[Session, str | ApprovalRequested, P], Awaitable[R]],
) -> Callable[Concatenate[C, str | ApprovalRequested, P], Awaitable[R]]:
    """Return *method* for the session of an approval, given by id or event."""

    async def call(client: C, approval: str | ApprovalRequested, *args: Any, **given: Any) -> R:
        name = decision_of("deny", approval).approval
        stream = (await question_of(client, name)).session
        return await method(Session(client, stream), approval, *args, **given)

    # The name may be given as a keyword, too, which this type cannot express.
    return cast(
        "Callable[Concatenate[C, str | ApprovalRequested, P], Awaitable[R]]",
        update_wrapper(call, method),
    )


async def over_tree(
    client: Connection, session: str, wish: Callable[[str], Awaitable[T]], *, tree: bool
) -> list[T]:
    """Send *wish*, a function of an id, to each session that can accept it; return the receipts.

    Without *tree* only the session itself gets the wish. Descendants that have ended, are
    stopping or do not need it are left out.

    Raises:
        UnknownSessionError: there is no such session.
        CuelineError: as *wish* raises it for the session itself.
    """
    if not tree:
        return [await wish(session)]
    top, *below = await with_descendants(client.log.journal(), await client.find(session))
    said = [await wish(shown(top))]
    for stream in below:
        try:
            said.append(await wish(shown(stream)))
        except (RejectedError, SessionFinishedError, SessionOwnedError):
            continue
    return said
