"""Checks that this cueline reads the sessions of a log as the cueline that wrote them did."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, cast

from cueline.actors.stream_end import last_of
from cueline.deciders.prompt import Prompt
from cueline.deciders.session import SessionState, evolve, session_of
from cueline.deciders.session.state_codec import FOLDS, unpacked
from cueline.errors import ConfigError, CorruptEventError, UnknownEventTypeError
from cueline.events.codec import not_redacted
from cueline.events.log_url import LogName
from cueline.events.session import ModelRequested, SessionEvent
from cueline.events.snapshot import Snapshot, is_intact, unsealed
from cueline.events.store import RecordedEvent
from cueline.events.stream import shown, sibling
from cueline.runtime.open_log import OpenLog, open_log

SAMPLE: Final = 100
"""The number of sessions that are checked without another number."""
_SESSIONS = "SELECT name FROM streams WHERE category IN ('session', 'inbox') ORDER BY id"


@dataclass(frozen=True, slots=True)
class SessionDifference:
    """A place at which this cueline reads a session in another way, or not at all."""

    session: str
    version: int
    reason: str


@dataclass(frozen=True, slots=True)
class LogCheck:
    """The result of a check of the sessions of a log."""

    sessions: int
    """The number of checked sessions."""
    of: int
    """The number of all sessions of the log."""
    events: int
    """The number of events that were decoded, of sessions and of their inboxes."""
    compared: int
    """The number of states that were compared with a snapshot."""
    other_rules: int
    """The number of sessions whose snapshot was folded by other rules, and not compared."""
    differences: tuple[SessionDifference, ...]


async def check_log(
    log: LogName,
    *,
    sample: int | None = SAMPLE,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> LogCheck:
    """Decode and fold sessions of a log, and compare the states with the log's snapshots.

    The prompt of each session's newest request is compared with its recorded digest. The log
    is not changed.

    Args:
        log: the URL or path of the log, which this process has to be able to open.
        sample: the number of sessions, spread over the log, with the newest; None: all.
        progress: called after each session with the number of checked sessions, and of all.

    Raises:
        ConfigError: *sample* is less than 1.
        LogUnavailableError: the log does not exist, or cannot be read.
        LogFormatError: another format wrote it.
        RejectedError: the log is behind a server.
    """
    if sample is not None and sample < 1:
        raise ConfigError("sample", f"{sample} is no number of sessions")
    async with open_log(log, must_exist=True, read_only=True) as opened:
        with closing(opened.backend.open_rows()) as rows:
            named = [sibling(name, "session") for (name,) in rows.ask(_SESSIONS)]
        every = list(dict.fromkeys(named))
        chosen = _spread(every, sample or len(every))
        checker = _SessionChecker(opened)
        for done, stream in enumerate(chosen, start=1):
            await checker.check(stream)
            progress(done, len(chosen))
    return LogCheck(
        len(chosen),
        len(every),
        checker.events,
        checker.compared,
        checker.other_rules,
        tuple(checker.differences),
    )


def _spread(streams: Sequence[str], most: int) -> list[str]:
    """Return *most* of the streams, at equal distances, with the last one."""
    there = len(streams)
    most = min(most, there)
    return [streams[there - 1 - place * there // most] for place in reversed(range(most))]


class _SessionChecker:
    """Checks sessions one by one; the rest of a session that cannot be folded is skipped."""

    def __init__(self, log: OpenLog) -> None:
        self.events = 0
        self.compared = 0
        self.other_rules = 0
        self.differences: list[SessionDifference] = []
        self._store = log.store
        self._journal = log.journal()

    async def check(self, stream: str) -> None:
        """Check one session and its inbox."""
        try:
            async for _ in self._journal.read(sibling(stream, "inbox")):
                self.events += 1
            await self._fold(stream)
        except (CorruptEventError, UnknownEventTypeError) as error:
            self._add(stream, error.version, _reason(stream, error))

    async def _fold(self, stream: str) -> None:
        length = (await self._store.head(stream)).version
        asked = await last_of(self._store, stream, {"ModelRequested"}, length)
        snapshot = await self._snapshot(stream, length)
        state, prompt = session_of(stream), Prompt()
        async for recorded, fact in self._journal.read(stream):
            event = cast("SessionEvent", not_redacted(recorded, fact))
            self.events += 1
            try:
                state = evolve(state, event)
                prompt.add(event)
            except Exception as error:  # noqa: BLE001 - whatever the rules raise
                told = f"the rules cannot fold {event.type}: {type(error).__name__}: {error}"
                self._add(stream, recorded.version, told)
                return
            if recorded.version == asked and cast("ModelRequested", event).digest != prompt.digest:
                self._add(stream, asked, "the prompt is not the one that was sent")
            if snapshot is not None and _is_of(snapshot, self._store.log_id, stream, recorded):
                self._compare(snapshot, state, prompt)

    async def _snapshot(self, stream: str, length: int) -> Snapshot | None:
        """Return the newest snapshot, if these rules folded it; otherwise note the cause."""
        content = await self._journal.snapshots.newest(stream, length)
        if content is None:
            return None
        if not is_intact(content):
            self._add(stream, length, "the snapshot of its state is damaged")
            return None
        found = unsealed(content)
        if found is None or found.folds != FOLDS:
            self.other_rules += 1
            return None
        return found

    def _compare(self, snapshot: Snapshot, state: SessionState, prompt: Prompt) -> None:
        try:
            kept, kept_prompt = unpacked(snapshot.state)
        except (ValueError, TypeError, KeyError):
            self.other_rules += 1  # a state with other fields needs no other number
            return
        self.compared += 1
        names = state.__struct_fields__
        other = [name for name in names if getattr(state, name) != getattr(kept, name)]
        if prompt.rest != kept_prompt.rest:
            other.append("prompt")
        if other:
            told = f"the state is not that of its snapshot: {', '.join(other)}"
            self._add(snapshot.stream, snapshot.version, told)

    def _add(self, stream: str, version: int, reason: str) -> None:
        self.differences.append(SessionDifference(shown(stream), version, reason))


def _reason(stream: str, error: CorruptEventError | UnknownEventTypeError) -> str:
    if isinstance(error, UnknownEventTypeError):
        told = f"this cueline does not know the event {error.type}, schema {error.schema}"
    else:
        told = f"the event is damaged: {error.reason}"
    return told if error.stream == stream else f"in {error.stream}: {told}"


def _is_of(snapshot: Snapshot, log_id: str, stream: str, recorded: RecordedEvent) -> bool:
    """Whether *snapshot* was folded from this log up to *recorded*, and not from a lost one."""
    there = log_id, stream, recorded.version, recorded.hash
    return there == (snapshot.log_id, snapshot.stream, snapshot.version, snapshot.hash)
