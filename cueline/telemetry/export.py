"""Exports spans of a log, and remembers in the log how far a back-end has them.

The cursor moves only after the back-end has accepted the spans, so each span is sent at least
once. After a crash in between the same spans are sent again: with the same ids, times and values.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final
from uuid import uuid4

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from cueline.clock import Clock
from cueline.errors import RejectedError, TelemetryError, WrongExpectedVersionError
from cueline.events.journal import FactWrite, Journal
from cueline.events.session import SessionCompleted, SessionFailed, SessionStarted, SessionStopped
from cueline.events.store import NO_STREAM, RecordedEvent
from cueline.events.telemetry import SpansExported, cursor_stream
from cueline.telemetry import conventions as names
from cueline.telemetry.session_spans import SessionSpans, SpanSettings

_SESSIONS: Final = frozenset({"session"})
_MOST_SESSIONS: Final = 2_000
"""The most sessions that are kept in memory; the rest are read again."""
_BATCH: Final = 512
"""The most spans that are sent at once."""
GATHER_SECONDS: Final = 5.0
"""How long new events are gathered before they are exported."""
RETRY_SECONDS: Final = 30.0
"""The wait after a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReceipt:
    """What an export sent."""

    cursor: str
    spans: int
    """The number of spans that the back-end accepted."""
    position: int
    """The position up to which the back-end has the spans."""


class SpanExport:
    """An export of the spans of a log by a cursor."""

    def __init__(
        self,
        journal: Journal,
        exporter: SpanExporter,
        cursor: str,
        *,
        content: bool = False,
        actor: str = "user",
    ) -> None:
        """Prepare the export; *content*: also what people, models and tools said.

        Raises:
            InvalidNameError: the name of the cursor is invalid.
        """
        self._journal, self._exporter, self._actor = journal, exporter, actor
        self._cursor, self._stream = cursor, cursor_stream(cursor)
        about = {"service.name": "cueline", names.LOG: journal.store.log_id}
        self._settings = SpanSettings(
            journal.store.log_id,
            Resource(about).merge(OTELResourceDetector().detect()),  # OTEL_SERVICE_NAME …
            InstrumentationScope("cueline", version("cueline")),
            content,
        )
        self._sessions: OrderedDict[str, SessionSpans] = OrderedDict()
        self._version = NO_STREAM
        self._position = self._sent = 0
        self._failed = False

    async def begin(self, position: int | None = None) -> None:
        """Read the cursor; with a *position*, set it there.

        Raises:
            RejectedError: another process exports by this cursor, or the log has no such position.
        """
        last = await self._journal.store.last_position()
        if position is not None and position > last:
            why = f"the log ends at event {last:,}: the later events would never be sent"
            raise RejectedError(f"{position}", why)
        self._version = (await self._journal.store.head(self._stream)).version
        self._sessions.clear()  # after a failure, they are ahead of it
        if position is not None:
            await self._move(position, 0)
        elif self._version:
            async for _, fact in self._journal.read(self._stream, self._version - 1):
                assert isinstance(fact, SpansExported), "a cursor has no other facts"
                self._position = fact.position

    async def catch_up(self) -> ExportReceipt:
        """Export the spans of the events since the cursor.

        Raises:
            TelemetryError: the back-end did not accept the spans; try again.
            RejectedError: another process exports by this cursor.
            LogUnavailableError: the log cannot be written.
        """
        spans: list[ReadableSpan] = []
        position = self._position
        async for recorded, fact in self._journal.read_all(self._position, _SESSIONS):
            session = await self._session(recorded, fact)
            spans += session.after(recorded, fact)
            if isinstance(fact, SessionCompleted | SessionFailed | SessionStopped):
                del self._sessions[recorded.stream]
            position = recorded.position
            if len(spans) >= _BATCH:
                await self._send(spans, position)
                spans = []
        if spans:
            await self._send(spans, position)
        self._position = position
        return ExportReceipt(cursor=self._cursor, spans=self._sent, position=position)

    async def step(self, clock: Clock) -> None:
        """Export new spans, and wait for more events; after a failure, read the cursor again.

        Raises:
            CuelineError: see `catch_up`; the next step begins with a wait.
        """
        if self._failed:
            await clock.sleep(RETRY_SECONDS)
            await self.begin()
        self._failed = True
        await self.catch_up()
        self._failed = False
        await anext(self._journal.store.follow(self._position, _SESSIONS))
        await clock.sleep(GATHER_SECONDS)

    async def _session(self, recorded: RecordedEvent, fact: object) -> SessionSpans:
        """Return the session of an event; its earlier events are read if it is not known."""
        found = self._sessions.get(recorded.stream)
        if found is None:
            found = SessionSpans(self._settings, recorded.stream)
            if not isinstance(fact, SessionStarted):
                earlier = self._journal.store.read(recorded.stream, until=recorded.version - 1)
                async for each in earlier:
                    for _ in found.after(each, await self._journal.fact_of(each)):
                        pass
            self._sessions[recorded.stream] = found
            if len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)
        self._sessions.move_to_end(recorded.stream)
        return found

    async def _send(self, spans: Sequence[ReadableSpan], position: int) -> None:
        """Send *spans*; when the back-end has accepted them, move the cursor to *position*."""
        try:
            result = await asyncio.to_thread(self._exporter.export, spans)
        except asyncio.CancelledError:
            self._exporter.shutdown()  # otherwise its thread tries for 10 s, and holds up the exit
            raise
        if result is not SpanExportResult.SUCCESS:
            raise TelemetryError(self._cursor, "the back-end did not accept the spans")
        await self._move(position, len(spans))

    async def _move(self, position: int, spans: int) -> None:
        """Record that the back-end has the spans up to *position*, of which *spans* are new."""
        fact = SpansExported(position=position, spans=spans)
        write = FactWrite(self._stream, [[fact]], self._version, actor=self._actor)
        try:
            await self._journal.append([write], key=uuid4().hex)
        except WrongExpectedVersionError:
            why = "another process exports by this cursor; stop it, or name another by --cursor"
            raise RejectedError(f"cursor {self._cursor}", why) from None
        self._version += 1
        self._position, self._sent = position, self._sent + spans
