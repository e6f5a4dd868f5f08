"""Requests the next session of a series, in the append that starts the current session."""

from datetime import datetime

from cueline.deciders.session import SessionState
from cueline.deciders.session.run import next_in_series
from cueline.events.fact import shared_fields
from cueline.events.inbox import InboxMessage, SecretsWaived, StartAsked
from cueline.events.journal import FactWrite, Journal
from cueline.events.session import SessionStarted
from cueline.events.start import stream_at
from cueline.events.store import ANY
from cueline.events.stream import sibling


async def next_start(
    journal: Journal, before: SessionState, after: SessionState, now: datetime
) -> list[FactWrite]:
    """Return the start request of the next session, if *before* became *after* by a start.

    It has the values of this session's first fact, which holds no secrets, and the model and
    tools that a person has chosen since.
    """
    schedule = next_in_series(before, after, now)
    if schedule is None:
        return []
    (started,) = [fact async for _, fact in journal.read(before.stream, until=1)]
    assert isinstance(started, SessionStarted), "a session with a schedule is no fork"
    here = {"agent": after.agent, "schedule": schedule, "attached": False, "asked_at": now}
    here |= {"traceparent": ""}  # each session of a series is a trace of its own
    asked = StartAsked(**shared_fields(started, StartAsked) | here)
    steps: list[list[InboxMessage]] = [[asked]]
    if after.setup is not None and after.setup.waived:
        steps.append([SecretsWaived(names=after.setup.waived, by=started.asked_by)])
    # A session that already has this name refuses the request, and loses nothing.
    inbox = sibling(stream_at(schedule.first, schedule.at), "inbox")
    return [FactWrite(stream=inbox, steps=steps, expected_version=ANY, actor="system")]
