"""Whether a person is there to watch and to answer, and what was piped in."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import BufferedWriter, RawIOBase, TextIOWrapper
from pathlib import Path
from typing import TextIO

import typer

from cueline.console.foreground import is_foreground
from cueline.errors import ConfigError
from cueline.files import read_to_end

_answers: ContextVar[TextIO | None] = ContextVar("answers", default=None)
"""Where `print_json` writes, if stdout takes nothing else."""


@contextmanager
def only_json_on_stdout() -> Iterator[None]:
    """Send to stderr what tools, and the processes that they start, print to stdout."""
    out = sys.stdout
    try:
        number = out.fileno()
    except OSError:  # a test's
        yield
        return
    out.flush()
    with os.fdopen(os.dup(number), "w", encoding=out.encoding, errors="replace") as answers:
        token = _answers.set(answers)
        os.dup2(sys.stderr.fileno(), number)
        sys.stdout = sys.stderr
        try:
            yield
        finally:
            sys.stdout.flush()
            os.dup2(answers.fileno(), number)
            sys.stdout = out
            _answers.reset(token)


def print_json(text: str) -> None:
    """Print *text* to stdout, as the answer of a command to a program."""
    typer.echo(text, file=_answers.get())


def is_attended() -> bool:
    """Whether this process has a terminal for itself, to show and to ask.

    One that cannot move its cursor is taken for none.
    """
    moves = os.environ.get("TERM", "dumb") not in {"", "dumb", "unknown"}
    return moves and is_foreground() and sys.stdout.isatty()


def settle_streams() -> None:
    """Have all three streams be open, and able to print anything.

    Where one is closed, its number would be given to the next file that is
    opened: the log's, or the event loop's own, which ends the process for it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # In this order, it gets the number that is free, also for what this process starts.
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
    """Return *stream* so that it writes everything it is given.

    With PYTHONUNBUFFERED set, Python makes one write and drops what the pipe did not take;
    after uvloop has run, Linux interrupts a write to a full pipe.
    """
    raw = getattr(stream, "buffer", None)
    if not isinstance(raw, RawIOBase):
        return stream
    return TextIOWrapper(BufferedWriter(raw), encoding=stream.encoding, line_buffering=True)


def text_or_stdin(text: str) -> str:
    """Return *text*, or what was piped in for `-`.

    Raises:
        ConfigError: there is no text, or no end of it; say something, and less.
    """
    said = read_to_end(sys.stdin, "the text").strip() if text == "-" else text
    if not said.strip():
        raise ConfigError("the text", "is empty; say something")
    return said
