"""The terminal of a command: standard streams, the person at it, and signals."""

import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from io import BufferedWriter, RawIOBase, TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import Any, Self, TextIO

import typer

from cueline.cli.failure import Exit
from cueline.console.foreground import is_foreground
from cueline.errors import ConfigError
from cueline.files import read_to_end

_answers: ContextVar[TextIO | None] = ContextVar("answers", default=None)
"""The stream of `print_json`, if stdout is for JSON only."""


@contextmanager
def only_json_on_stdout() -> Iterator[TextIO]:
    """Redirect to stderr the stdout of tools and the processes that they start.

    Yields the real stdout.
    """
    out = sys.stdout
    try:
        number = out.fileno()
    except OSError:  # a test's
        yield out
        return
    out.flush()
    with os.fdopen(os.dup(number), "w", encoding=out.encoding, errors="replace") as answers:
        token = _answers.set(answers)
        os.dup2(sys.stderr.fileno(), number)
        sys.stdout = sys.stderr
        try:
            yield answers
        finally:
            sys.stdout.flush()
            os.dup2(answers.fileno(), number)
            sys.stdout = out
            _answers.reset(token)


def print_json(text: str) -> None:
    """Print *text* to stdout, as the answer for a program."""
    typer.echo(text, file=_answers.get())


def is_attended() -> bool:
    """Whether this process has a terminal for output and questions.

    A terminal that cannot move its cursor does not count.
    """
    moves = os.environ.get("TERM", "dumb") not in {"", "dumb", "unknown"}
    return moves and is_foreground() and sys.stdout.isatty()


def settle_streams() -> None:
    """Open closed standard streams, and let them print any character.

    The next opened file would get the number of a closed stream: the log's, or the event
    loop's own, which would end the process.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # In this order, the file gets the free number, also in processes that this one starts.
            nothing = Path(os.devnull).open(mode)  # noqa: SIM115 - it stays
            os.set_inheritable(nothing.fileno(), True)  # noqa: FBT003 - it has no other name
            setattr(sys, name, nothing)
    for name in ("stdout", "stderr"):
        setattr(sys, name, _buffered(getattr(sys, name)))
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Not every locale has a check mark, nor is all that is piped in of it.
            stream.reconfigure(errors="replace")


def _buffered(stream: TextIO) -> TextIO:
    """Return *stream*, changed so that each write writes the whole text.

    With PYTHONUNBUFFERED set, Python makes one write and drops what the pipe did not take;
    after uvloop has run, Linux interrupts a write to a full pipe.
    """
    raw = getattr(stream, "buffer", None)
    if not isinstance(raw, RawIOBase):
        return stream
    return TextIOWrapper(BufferedWriter(raw), encoding=stream.encoding, line_buffering=True)


def text_or_stdin(text: str) -> str:
    """Return *text*, or the standard input for `-`.

    Raises:
        ConfigError: the text is empty or too long.
    """
    said = read_to_end(sys.stdin, "the text").strip() if text == "-" else text
    if not said.strip():
        raise ConfigError("the text", "is empty; say something")
    return said


SHOW_CURSOR = "\x1b[?25h"


class Interrupts:
    """The effects of signals while a session runs."""

    def __init__(
        self, once: Callable[[], object], leave: Callable[[], str], *, goes_on: bool
    ) -> None:
        """Call *once* at the first signal; at the second call *leave*, and print its result.

        If the session *goes_on* without this process, the terminal's end ends only this process.
        """
        self._once = once
        self._leave = leave
        self._goes_on = goes_on
        self._asked = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        heard = ending_signals() - ({signal.SIGHUP} if self._goes_on else set())
        self._before = {number: signal.signal(number, self._caught) for number in heard}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _caught(self, number: int, _frame: FrameType | None) -> None:
        hung_up = number == signal.SIGHUP
        if hung_up:
            leave_terminal()
        if not self._asked:
            self._asked = True
            self._once()
            return
        if hung_up:
            return  # both the system and the shell send SIGHUP
        # Not sys.exit: neither a lock nor an effect may delay the exit. Recorded facts stay, and
        # the next owner finds the rest again.
        words = f"{SHOW_CURSOR if sys.stderr.isatty() else ''}\n{self._leave()}\n"
        with suppress(OSError):  # not sys.stderr: the signal may have come while that writes
            os.write(sys.stderr.fileno(), words.encode(errors="replace"))
        os._exit(Exit.LEFT)


def ending_signals() -> set[signal.Signals]:
    """Return the signals that end a command; with `nohup`, without SIGHUP."""
    endings = {signal.SIGINT, signal.SIGTERM}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        endings.add(signal.SIGHUP)
    return endings


def show_cursor() -> None:
    """Show the cursor again, which a redrawn display has hidden."""
    if sys.stderr.isatty():
        sys.stderr.write(SHOW_CURSOR)


def leave_terminal() -> None:
    """Drop further output if the terminal is gone, because failed writes end the process."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        with suppress(OSError):  # the parent process may have closed it
            if stat.S_ISCHR(os.fstat(number).st_mode) and not os.isatty(number):
                os.dup2(nowhere, number)
    os.close(nowhere)
