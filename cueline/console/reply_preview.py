"""Shows the end of a reply while it arrives, above the bottom of the screen."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import groupby
from types import TracebackType
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from cueline.client.live_text import TextDelta
from cueline.console.screen import THINKING, Screen
from cueline.console.text import Line, visible, wrapped
from cueline.events.session import (
    ModelFailed,
    ModelReplied,
    ModelStarted,
    SessionEvent,
    SessionTakenOver,
)

BROKE_OFF = Line("note", "the reply broke off; what had come of it is not recorded")
_FENCE = "```"
_MARGIN = 6
"""Rows of the screen that the reply does not use."""
_FEWEST = 3


class ReplyPreview:
    """The pieces of one reply, until it is recorded.

    Pieces may arrive before the fact that starts their call, and then wait for it; without
    *whole_past*, this fact may never be read.
    """

    def __init__(
        self, screen: Screen, *, hide_thinking: bool = False, whole_past: bool = True
    ) -> None:
        self.hide_thinking = hide_thinking
        self._screen = screen
        self._whole_past = whole_past
        self._started: tuple[str, int] | None = None
        """The last started call."""
        self._early: list[TextDelta] = []
        """Pieces of calls whose start was not read."""
        self._pieces: list[TextDelta] = []
        self._rows: list[str] | None = None
        """The last rendering; None: a piece has arrived since."""
        self._size = (0, 0)
        self._unshown = ""
        """The text that follows the last line written by `show_lines`."""
        self._shown: list[Line] = []
        self._ended: set[tuple[str, int]] = set()
        """The recorded calls, whose pieces are late."""

    def learn(self, fact: SessionEvent) -> None:
        """Apply a fact before its lines are shown, because the fact may end the reply."""
        match fact:
            case ModelStarted():
                self._started = (fact.effect, fact.attempt)
                early, self._early = self._early, []
                for piece in early:
                    self.add(piece)
            case ModelReplied() | ModelFailed():
                self._ended.add((fact.effect, fact.attempt))
                if isinstance(fact, ModelReplied):
                    self._clear()
                else:
                    self._break_off()
            case SessionTakenOver():
                self._break_off()
            case _:
                pass

    def add(self, piece: TextDelta) -> None:
        """Add *piece*, which may be the first piece of another reply."""
        if piece.call in self._ended:
            return
        if piece.call != self._started and (self._whole_past or self._started is not None):
            self._early.append(piece)
            return
        if self._pieces and self._pieces[0].call != piece.call:
            self._break_off()
        self._pieces.append(piece)
        self._rows = None
        if piece.kind == "text":
            self._unshown += piece.text

    def _break_off(self) -> None:
        """Drop the reply; if pieces of it had arrived, show that the reply broke off."""
        begun = bool(self._pieces)
        self._clear()
        if begun:
            self._screen.show([BROKE_OFF])

    def _clear(self) -> None:
        """Drop the reply, because it is recorded."""
        self._pieces.clear()
        self._unshown, self._shown, self._rows = "", [], None

    def toggle_thinking(self) -> None:
        """Hide the model's thoughts, or show them again."""
        self.hide_thinking = not self.hide_thinking
        self._rows = None

    def rows(self) -> list[str]:
        """Return the last rows of the reply, for the bottom of a screen, with escape codes."""
        size = (self._screen.console.width, self._screen.console.height)
        if self._rows is None or size != self._size:
            self._size = size
            self._rows = self._rendered()
        return self._rows

    def show_lines(self) -> None:
        """Write each complete line of the text, for output without a bottom of the screen."""
        whole, end, rest = self._unshown.rpartition("\n")
        text = whole.rstrip("\n")  # empty lines are written when something follows
        if text:
            self._unshown = whole[len(text) :] + end + rest
            text = text.removeprefix("\n") if self._shown else text.lstrip("\n")
            *rows, _ = visible(f"{text}\n").split("\n")
            lines = [Line("agent", row) for row in rows]
            self._shown += lines
            self._screen.show(lines)

    def not_shown(self, lines: list[Line]) -> list[Line]:
        """Return the *lines* of the recorded reply that `show_lines` has not written."""
        count = len(self._shown)
        return lines[count:] if lines[:count] == self._shown else lines

    def _rendered(self) -> list[str]:
        if not self._pieces:
            return []
        width, height = self._size
        room = max(height - _MARGIN, _FEWEST)
        rows = self._screen.rows_of(self._parts(room * width))
        while rows and not rows[-1].strip():
            rows.pop()  # of code that has not ended
        return rows if len(rows) <= room else ["…", *rows[len(rows) - room + 1 :]]

    def _parts(self, most: int) -> Iterator[RenderableType]:
        """Yield the visible part of thoughts and text."""
        for kind, pieces in groupby(self._pieces, key=lambda piece: piece.kind):
            text = _end("".join(piece.text for piece in pieces).strip("\n"), most)
            if kind == "text":
                yield self._screen.reply(visible(text))
            elif self.hide_thinking:
                yield Text("thinking …", THINKING)
            else:
                for line in visible(text).split("\n"):
                    yield from (Text(row, THINKING) for row in wrapped(line, self._size[0]))


def _end(text: str, most: int) -> str:
    """Return the end of *text*, from the start of a line; code blocks stay code."""
    if len(text) <= most:
        return text
    at = text.find("\n", len(text) - most) + 1 or len(text) - most
    open_fence = text[:at].count(f"\n{_FENCE}") + text.startswith(_FENCE)
    return f"{_FENCE}\n{text[at:]}" if open_fence % 2 else text[at:]


class Bottom:
    """Shows rows below the printed text, inside `with`."""

    def __init__(self, screen: Screen, rows: Callable[[], list[str]]) -> None:
        """Show as many of *rows* as fit on the screen; the rows may have escape codes."""
        self._screen = screen
        self._live = Live(
            console=screen.console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            get_renderable=lambda: Group(*map(Text.from_ansi, rows())),
        )

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        self._screen.above = self._above
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._screen.above = nullcontext
        self._live.stop()

    @contextmanager
    def _above(self) -> Iterator[None]:
        self._live.stop()
        try:
            yield
        finally:
            self._live.start(refresh=True)

    def refresh(self) -> None:
        """Draw the changes."""
        self._live.refresh()
