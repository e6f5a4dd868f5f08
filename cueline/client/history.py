"""Reads the history of a session, up to damage."""

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import cast

from cueline.actors.session_reader import Past, SessionReader
from cueline.actors.stream_end import last_of
from cueline.deciders.prompt import Prompt
from cueline.deciders.session import SessionState
from cueline.deciders.session.state import Wait
from cueline.deciders.session.turn import CallApproval
from cueline.errors import CorruptEventError, CuelineError, RejectedError, UnknownEventTypeError
from cueline.events.agent import AgentSpec
from cueline.events.codec import Redacted
from cueline.events.session import ContextCompacted, ModelRequested, SessionEvent, ToolReturned
from cueline.events.store import RecordedEvent
from cueline.events.stream import shown
from cueline.runtime.open_log import OpenLog

OpenQuestion = CallApproval
"""An open question."""


@dataclass(frozen=True, slots=True)
class SessionView:
    """The state of a session at one version."""

    state: SessionState

    @property
    def id(self) -> str:
        """The id for users."""
        return shown(self.state.stream)

    @property
    def status(self) -> str:
        """The shown status; a session that only a person can continue is `paused`."""
        paused = self.waiting is not None and self.waiting.is_pause
        return "paused" if paused else str(self.state.status)

    @property
    def finished(self) -> bool:
        """Whether the session has ended."""
        return self.state.finished

    @property
    def agent(self) -> AgentSpec | None:
        """The session's agent; None until the session has begun."""
        return None if self.state.setup is None else self.state.agent

    @property
    def automatic(self) -> bool:
        """Whether the session's questions are granted at once."""
        return self.agent is not None and self.agent.policy.auto_approve

    @property
    def open(self) -> bool:
        """Whether the session accepts further messages after its goal."""
        return self.state.setup is not None and self.state.setup.open and not self.finished

    @property
    def waiting(self) -> Wait | None:
        """The reason and the deadline of the session's wait; None if it does not wait."""
        return self.state.waiting

    @property
    def questions(self) -> tuple[OpenQuestion, ...]:
        """The open questions."""
        calls = self.state.open_calls
        return tuple(call.approval for call in calls if call.approval and call.asking)

    @property
    def too_long(self) -> bool:
        """Whether the conversation was too long for the model, so that a resume does not help."""
        model = self.state.turn.model
        if model is None or model.phase != "given_up" or model.error is None:
            return False
        return model.error.failure == "context_too_long"


LAST = 100
"""The number of events that are read of a session with more than twice as many."""


@dataclass(frozen=True, slots=True)
class History:
    """Events of a session in order, and the state after the last of them."""

    followed: SessionReader
    events: Past
    """The events; None for an emptied one."""
    whole: bool = True
    """Whether all events before the last one are included."""
    damage: CuelineError | None = None
    """The reason why the session cannot be read further."""

    @property
    def stream(self) -> str:
        """The session's stream."""
        return self.followed.stream

    @property
    def id(self) -> str:
        """The id of the session for users."""
        return shown(self.stream)

    @property
    def version(self) -> int:
        """The version of the last readable event."""
        return self.followed.version

    @property
    def state(self) -> SessionState:
        """The session at that version."""
        return self.followed.state

    @property
    def view(self) -> SessionView:
        """The status of the session at that version."""
        return SessionView(self.state)

    @property
    def turn(self) -> str:
        """The number of the last turn; the state's own number counts from the first read event."""
        asked = (
            fact.effect for _, fact in reversed(self.events) if isinstance(fact, ModelRequested)
        )
        return next(asked, "0").partition(".")[0]

    @property
    def status(self) -> str:
        """The status as lists show it; `damaged` if the session cannot be read to its end."""
        if self.damage is not None:
            return "damaged"
        return self.view.status


async def read_history(
    log: OpenLog,
    stream: str,
    *,
    until: int | None = None,
    last: int | None = None,
    outputs: bool = False,
) -> History:
    """Return the history of a session; each event is checked against the previous one.

    Args:
        log: the open log.
        stream: the session's stream.
        until: the last version to read.
        last: the number of kept events; the state is that after all events.
        outputs: keep the whole output of each tool, also if the model got a part of it.

    Raises:
        RejectedError: the session has fewer versions than *until*.
        LogUnavailableError: the log cannot be read.
    """
    session_reader = SessionReader(stream, log.journal())
    past: deque[tuple[RecordedEvent, SessionEvent | None]] = deque(maxlen=last)
    try:
        async for pair in _events(session_reader, until, outputs=outputs):
            past.append(pair)
    except (CorruptEventError, UnknownEventTypeError) as error:
        return History(session_reader, list(past), last is None, error)
    if until is not None and session_reader.version < until:
        last_there = f"there is no version {until}; its last is {session_reader.version}"
        raise RejectedError(shown(stream), last_there)
    return History(session_reader, list(past), last is None)


async def read_ends(log: OpenLog, stream: str, *, outputs: bool = False) -> History:
    """Return the first event and the last turns of a long session, or all events of a short one.

    The current state is correct, except for sums. If the end of a session cannot be read
    alone, the whole session is read.

    Raises:
        LogUnavailableError: the log cannot be read.
    """
    session_reader, past = SessionReader(stream, log.journal()), Past()
    try:
        length = (await log.store.head(stream)).version
        begins = await last_of(log.store, stream, {"ModelRequested"}, length - LAST)
        if begins > LAST:
            past += [pair async for pair in session_reader.read(until=1)]
            await session_reader.skip(begins - 1)
            past += [pair async for pair in _events(session_reader, outputs=outputs)]
            return History(session_reader, past, whole=False)
    except (CorruptEventError, UnknownEventTypeError):
        pass
    return await read_history(log, stream, outputs=outputs)


async def read_part(
    log: OpenLog, stream: str, *, before: int, most: int = LAST
) -> list[tuple[RecordedEvent, SessionEvent | None]]:
    """Return some *most* events of a session before version *before*, from a turn's beginning on.

    Raises:
        CorruptEventError: an event is damaged.
    """
    begins = await last_of(log.store, stream, {"ModelRequested"}, before - most)
    past = Past()
    async for recorded, fact in log.journal().read(stream, max(begins - 1, 0), before - 1):
        past.append((recorded, None if isinstance(fact, Redacted) else cast("SessionEvent", fact)))
    return past


async def follow_facts(
    log: OpenLog, stream: str, after: int
) -> AsyncGenerator[tuple[RecordedEvent, SessionEvent]]:
    """Yield the events of a session after version *after*, past and new, to its end.

    Nothing is folded, so a long session costs no more than a short one.

    Raises:
        CorruptEventError: an event is damaged.
    """
    async for recorded in log.store.read_back(stream, limit=1):
        if recorded.version <= after and recorded.type in _ENDS:
            return
    async with aclosing(log.notifier.changes(stream)) as growing:
        async for heard in growing:
            async for recorded, fact in log.journal().read(stream, after, None, heard):
                after = recorded.version
                if not isinstance(fact, Redacted):
                    yield recorded, cast("SessionEvent", fact)
                if recorded.type in _ENDS:
                    return


_ENDS = frozenset({"SessionCompleted", "SessionFailed", "SessionStopped"})
"""The types of the last event of a session."""


def compacted(history: History) -> History:
    """Return the part of a session that the model gets: its newest summary, and later events.

    The summary comes directly after the first event. Without a compaction, this is *history*.
    """
    prompt, first, place = Prompt(), 0, -1
    lengths = []
    for n, (_, fact) in enumerate(history.events):
        if fact is not None:
            prompt.add(fact)
        if isinstance(fact, ContextCompacted):
            first, place = fact.cut.messages, n - 1
        lengths.append(len(prompt.transcript))
    if place < 0:
        return history
    kept = next(n for n, length in enumerate(lengths) if length > first)
    newest = [e for n, e in enumerate(history.events) if n >= kept and n != place]
    events = [history.events[0], history.events[place], *newest]
    return replace(history, events=events, whole=False)


async def _events(
    session_reader: SessionReader, until: int | None = None, *, outputs: bool
) -> AsyncIterator[tuple[RecordedEvent, SessionEvent | None]]:
    """Yield the events up to a version, if requested with their whole *outputs*.

    Raises:
        CorruptEventError: an event is damaged, or an output is gone.
    """
    async for recorded, fact in session_reader.read(until):
        if outputs and isinstance(fact, ToolReturned) and fact.whole is not None:
            whole = await session_reader.journal.get_blob(recorded, fact.whole)
            # The log keeps the beginning of a very long output, which may end within a character.
            text = whole.decode(errors="replace")
            yield recorded, fact.model_copy(update={"output": text})
        else:
            yield recorded, fact
