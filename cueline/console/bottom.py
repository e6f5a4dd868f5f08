"""Rows that stay at the bottom of a terminal where nothing is typed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import TracebackType
from typing import Self

from rich.console import Group
from rich.live import Live
from rich.text import Text

from cueline.console.screen import Screen


class Bottom:
    """Stays beneath what is printed while it is entered."""

    def __init__(self, screen: Screen, rows: Callable[[], list[str]]) -> None:
        """Show *rows*, which may have escape codes, and as many as there is room for."""
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
        """Draw what has changed."""
        self._live.refresh()
