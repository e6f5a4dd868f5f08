"""Resets a circuit breaker for a person."""

from datetime import datetime
from uuid import uuid4

from cueline.actors.fold import fold
from cueline.deciders.breaker import BREAKER, Reset
from cueline.errors import InvalidNameError, RejectedError, WrongExpectedVersionError
from cueline.events.journal import FactWrite, Journal
from cueline.events.store import NO_STREAM
from cueline.events.stream import stream_name

_UNKNOWN = "there is no such breaker; `cueline breakers` lists those of the log"


async def reset_breaker(journal: Journal, name: str, by: str, now: datetime) -> bool:
    """Close the breaker *name*; return whether it was blocking calls.

    Raises:
        RejectedError: there is no such breaker.
    """
    stream = _stream_of(name)
    while True:
        state, version = await fold(journal, stream, BREAKER, BREAKER.initial_state)
        if version == NO_STREAM:
            raise RejectedError(name, _UNKNOWN)
        events = BREAKER.decide(Reset(now, by), state)
        if not events:
            return False
        write = FactWrite(
            stream=stream, steps=[events], expected_version=version, actor=f"user:{by}"
        )
        try:
            await journal.append([write], key=uuid4().hex)
        except WrongExpectedVersionError:
            continue
        return True


def _stream_of(name: str) -> str:
    tenant, slash, rest = name.rpartition("/")
    try:
        return stream_name("breaker", rest, tenant) if slash else stream_name("breaker", name)
    except InvalidNameError as error:
        raise RejectedError(name, _UNKNOWN) from error
