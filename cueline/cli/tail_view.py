"""A session that somebody follows at a terminal: its events, and its replies while they come."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import datetime

from cueline.client.live_text import TextDelta, live_text
from cueline.client.reader import Reader
from cueline.console.bottom import Bottom
from cueline.console.event_renderer import EventRenderer, reply_lines
from cueline.console.reply_preview import ReplyPreview
from cueline.console.screen import Screen
from cueline.console.status_line import StatusLine
from cueline.events.session import ModelReplied, SessionEvent
from cueline.events.store import RecordedEvent

_TICK_SECONDS = 0.2


class TailView:
    """The bottom of the screen of somebody who follows a session."""

    def __init__(self, screen: Screen, now: Callable[[], datetime], *, hide_thinking: bool) -> None:
        self._screen = screen
        self._now = now
        self._telling = EventRenderer(whole_past=False)
        self._status = StatusLine(self._telling, ways="")
        self._preview = ReplyPreview(screen, hide_thinking=hide_thinking, whole_past=False)
        self._bottom = Bottom(screen, self._rows)

    def above(self) -> AbstractContextManager[None]:
        """Return what is entered while something else writes on the screen."""
        return self._screen.above()

    def learn(self, recorded: RecordedEvent, fact: SessionEvent | None) -> None:
        """Take in an event that is shown next."""
        if fact is not None:
            self._preview.learn(fact)
            self._telling.learn(fact, recorded.recorded_at)
            self._status.learn(fact, recorded.recorded_at)

    def show_reply(self, fact: SessionEvent | None) -> None:
        """Show the whole of a reply, of which its line has the beginning."""
        if isinstance(fact, ModelReplied):
            thinking = not self._preview.hide_thinking
            self._screen.show(reply_lines(fact, thinking=thinking))

    def _rows(self) -> list[str]:
        status = self._status.text(self._now())
        return [*self._preview.rows(), *([f"\x1b[2m{status}\x1b[m"] if status else [])]

    @asynccontextmanager
    async def watching(self, reader: Reader, stream: str) -> AsyncIterator[None]:
        """Show what comes of *stream* at the bottom while this is entered."""
        with live_text(reader.log, stream) as pieces, self._bottom:
            work = (self._preview_replies(pieces.take), self._tick(reader))
            tasks = [asyncio.create_task(each) for each in work]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

    async def _preview_replies(self, take: Callable[[], Awaitable[Sequence[TextDelta]]]) -> None:
        while True:
            for piece in await take():
                self._preview.add(piece)
            self._bottom.refresh()

    async def _tick(self, reader: Reader) -> None:
        while True:
            await reader.log.clock.sleep(_TICK_SECONDS)
            self._bottom.refresh()
