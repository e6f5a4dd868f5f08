"""The bottom of the screen: the input line, and the status line with the effects in flight."""

import asyncio
import os
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from types import TracebackType
from typing import Self

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.containers import VerticalAlign
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from cueline.console.foreground import is_foreground
from cueline.console.prompt import Prompts
from cueline.console.screen import Screen


class Keyboard(Vt100Input):
    """Reads each key at once; the terminal still handles Ctrl-C, Ctrl-Z and Enter.

    In the background the shell has the keyboard: the system stops a background process that
    reads from the terminal or changes its mode.
    """

    def __init__(self) -> None:
        super().__init__(sys.stdin)
        self._loop = asyncio.get_running_loop()
        self._before = termios.tcgetattr(self.fileno())
        self._pressed: Callable[[], None] | None = None
        self._reads = False

    def take(self) -> None:
        """Start reading keys; call this repeatedly in the foreground."""
        # Each time: a shell that had it meanwhile has set it as it likes it.
        mode = termios.tcgetattr(self.fileno())
        wanted = [*mode[: tty.LFLAG], mode[tty.LFLAG] & ~(termios.ECHO | termios.ICANON)]
        if wanted != mode[: tty.LFLAG + 1]:
            mode[: tty.LFLAG + 1] = wanted
            mode[tty.CC][termios.VMIN], mode[tty.CC][termios.VTIME] = 1, 0
            termios.tcsetattr(self.fileno(), termios.TCSANOW, mode)
        if not self._reads and self._pressed is not None:
            self._reads = True
            self._loop.add_reader(self.fileno(), self._pressed)
            # A terminal is one open file: uvloop makes it non-blocking for the screen and for the
            # shell that started us, too. A reader that is called for each key can block.
            os.set_blocking(self.fileno(), True)

    def leave(self) -> None:
        """Stop reading keys."""
        if self._reads:
            self._reads = False
            self._loop.remove_reader(self.fileno())

    def forget(self) -> None:
        """Drop unread keys."""
        if is_foreground():
            termios.tcflush(self.fileno(), termios.TCIFLUSH)

    def restore(self) -> None:
        """Restore the terminal mode, if this process is in the foreground."""
        if is_foreground():
            termios.tcsetattr(self.fileno(), termios.TCSADRAIN, self._before)

    @contextmanager
    def attach(self, input_ready_callback: Callable[[], None]) -> Iterator[None]:
        """See `Vt100Input.attach`."""
        self._pressed = input_ready_callback
        try:
            yield
        finally:
            self.leave()

    @contextmanager
    def raw_mode(self) -> Iterator[None]:
        """See `Vt100Input.raw_mode`; `take` has set the mode."""
        try:
            yield
        finally:
            self.restore()


_TICK_SECONDS = 0.1
_REST_SECONDS = 0.5
_REDRAW_SECONDS = 0.05
_ROWS_TYPED = 10
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Live:
    """The input line at the bottom of the terminal, shown inside `async with`."""

    def __init__(
        self,
        screen: Screen,
        prompts: Prompts,
        status: Callable[[datetime], str],
        said: Iterable[str],
        *,
        reply: Callable[[], list[str]],
        ended: Callable[[asyncio.Task[None]], None],
    ) -> None:
        """Show *status* below the prompt; the arrow keys bring back earlier messages, *said*.

        *reply* returns the rows of the current reply, which are above the prompt.
        *ended* is called with the task of the prompt when it ends, also after an error.
        """
        self._screen = screen
        self._prompts = prompts
        self._in_flight = status
        self._reply = reply
        self._ended = ended
        self._ticks = 0
        self._was_stopped = False
        self._keyboard = Keyboard()
        self._buffer = Buffer(
            history=InMemoryHistory([*said]),
            multiline=True,
            read_only=Condition(lambda: not prompts.label),
            on_text_changed=self._changed,
        )
        self._app: Application[None] = self._application()
        prompts.on_other = self._begin_anew

    async def __aenter__(self) -> Self:
        self._screen.above = self._above
        self._before = signal.signal(signal.SIGCONT, self._go_on)
        self._running = asyncio.create_task(self._run())
        self._running.add_done_callback(self._ended)
        self._tick()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._ticking.cancel()
        signal.signal(signal.SIGCONT, self._before)
        self._screen.above = nullcontext
        if self._app.is_running:
            self._app.exit()
        else:
            self._running.cancel()
        await asyncio.wait([self._running])

    async def _run(self) -> None:
        with suppress(EOFError):  # the terminal has gone
            # Signals and errors are the command's own.
            await self._app.run_async(handle_sigint=False, set_exception_handler=False)

    def refresh(self) -> None:
        """Request a redraw, which happens soon."""
        if self._app.is_running and self._is_ours():
            self._app.invalidate()

    def restore(self) -> None:
        """Restore the terminal at once."""
        if is_foreground():
            self._app.renderer.erase()
        self._keyboard.restore()

    def _status(self) -> str:
        return self._in_flight(self._prompts.now()) if self._screen.live else ""

    def _application(self) -> Application[None]:
        typing = Window(
            BufferControl(self._buffer),
            get_line_prefix=self._prefix,
            wrap_lines=True,
            dont_extend_height=True,
            height=lambda: min(_ROWS_TYPED, self._buffer.document.line_count) or 1,
        )
        asks = Condition(lambda: bool(self._prompts.label))
        status = Window(FormattedTextControl(self._status_text), height=1, style="class:status")
        says = Condition(lambda: bool(self._status()) or not self._prompts.label)
        reply = Window(
            FormattedTextControl(lambda: ANSI("\n".join(self._reply()))), dont_extend_height=True
        )
        rows = [
            ConditionalContainer(reply, Condition(lambda: bool(self._reply()))),
            ConditionalContainer(typing, asks),
            ConditionalContainer(status, says),
        ]
        return Application(
            layout=Layout(HSplit(rows, align=VerticalAlign.TOP), focused_element=typing),
            key_bindings=self._keys(),
            erase_when_done=True,
            min_redraw_interval=_REDRAW_SECONDS,
            input=self._keyboard,
            # The terminal is not asked for the cursor's position: the answer would count as keys.
            output=Vt100_Output(
                sys.stdout,
                _size,
                term=os.environ.get("TERM"),
                default_color_depth=ColorDepth.from_env(),
                enable_cpr=False,
            ),
        )

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter")
        @keys.add("c-j")
        def _send(_: KeyPressEvent) -> None:
            typed = self._buffer.text
            if typed.endswith("\\") and self._prompts.talks:
                self._buffer.delete_before_cursor()
                self._buffer.insert_text("\n")
            elif self._prompts.enter(typed):
                self._buffer.reset(append_to_history=bool(typed.strip()))
                # Not at the next redraw: an arrow key may come before it.
                self._buffer.load_history_if_not_yet_loaded()

        @keys.add("escape", "enter")
        @keys.add("escape", "c-j")
        def _break_line(_: KeyPressEvent) -> None:
            self._buffer.insert_text("\n")

        @keys.add("c-d", filter=Condition(lambda: not self._buffer.text))
        def _end(_: KeyPressEvent) -> None:
            self._prompts.end()

        return keys

    def _prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        first = line == 0 and wrapped == 0
        return [("bold", f"{self._prompts.label} ")] if first else [("", "  ")]

    def _status_text(self) -> StyleAndTextTuples:
        status = self._status()
        if not status:
            return []
        room = self._screen.console.width - 3
        shown = status if len(status) <= room else f"{status[: room - 1]}…"
        spinner = _SPINNER[self._ticks % len(_SPINNER)]
        return [("ansicyan", spinner), ("ansibrightblack", f" {shown}")]

    def _changed(self, buffer: Buffer) -> None:
        self._prompts.typed = buffer.text

    def _begin_anew(self) -> None:
        """Drop the input that was typed before the question was visible."""
        self._buffer.reset()
        self._keyboard.forget()

    def _go_on(self, *_: object) -> None:
        self._was_stopped = True

    def _is_ours(self) -> bool:
        """Whether the terminal is ours; after a stop, the cursor is where the shell left it."""
        if self._was_stopped:
            self._was_stopped = False
            self._app.renderer.reset()
        return is_foreground()

    def _tick(self) -> None:
        self._ticks += 1
        if self._is_ours():
            self._keyboard.take()
            self._prompts.refresh()
            self._app.invalidate()
        else:
            self._keyboard.leave()
            self._app.renderer.reset()  # it is the shell's now where the cursor is
        after = _TICK_SECONDS if self._status() else _REST_SECONDS
        self._ticking = asyncio.get_running_loop().call_later(after, self._tick)

    @contextmanager
    def _above(self) -> Iterator[None]:
        if not (self._app.is_running and self._is_ours()):
            yield
            return
        self._app.renderer.erase()
        try:
            yield
        finally:
            sys.stdout.flush()
            self._app.invalidate()


def _size() -> Size:
    columns, rows = os.get_terminal_size(sys.stdout.fileno())
    return Size(rows=rows, columns=columns)
