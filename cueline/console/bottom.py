"""Rows at the bottom of a terminal without input."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import TracebackType
from typing import Self

from rich.console import Group
from rich.live import Live
from rich.text import Text

from cueline.console.screen import Screen


class Bottom:
    """Shows rows below the printed text, inside `with`."""

    def __init__(self, screen: Screen, rows: Callable[[], list[str]]) -> None:
        """Show as many of *rows* as fit; they may have escape codes."""
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
