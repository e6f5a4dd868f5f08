"""Ends a failed command with a message, a hint and an exit code.

Secrets in texts from the log were removed before they were recorded.

No other module prints errors. A mistake of a user is never a traceback.
"""

import errno
import re
import sys
import traceback
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from cueline.cli.settings_context import (
    SettingsContext,
    named_log,
    naming,
    set_settings_context,
)
from cueline.config.config_file import DEFAULT_LOG
from cueline.console.text import visible
from cueline.errors import (
    ClusterError,
    CorruptEventError,
    CuelineError,
    LogFormatError,
    LogIndexLostError,
    LogLostError,
    LogUnavailableError,
    RejectedError,
    SessionFinishedError,
    SessionOwnedError,
    UnknownEventTypeError,
    UnknownOutcomeError,
    UnknownSessionError,
)
from cueline.errors.suggestion import closest
from cueline.events.log_url import LogUrl
from cueline.files import shortage_of

if TYPE_CHECKING:
    from cueline.cli.settings_context import SettingsContext


def redact_stderr(text: str, outside: "SettingsContext | None") -> str:
    """Return *text* without the providers' keys and the other secrets that are known here."""
    from cueline.agents.secret import secret_names, secret_values
    from cueline.config.environment import HERE
    from cueline.events.sanitize import Redactor
    from cueline.providers.key_store import KeyStore

    named = secret_names(None) | (set() if outside is None else outside.secrets)
    known = [*secret_values(named, HERE), *KeyStore(HERE).secrets()]
    return Redactor(known).redact(text)[0]


def print_redacted(text: str, outside: "SettingsContext | None") -> None:
    """Print a text to stderr, without secrets and control characters."""
    typer.echo(visible(redact_stderr(text, outside)), err=True)


class Exit(IntEnum):
    """The exit code of a command."""

    DONE = 0
    """The session is completed, idle or detached."""
    FAILED = 1
    """The session failed or was stopped, or a check failed."""
    REFUSED = 2
    """The command line is wrong, or the request was refused."""
    WAITING = 3
    """The session waits for a person, or is paused."""
    LEFT = 130
    """The user typed Ctrl-C a second time."""


_HINTS: tuple[tuple[type[CuelineError], str], ...] = (
    (
        UnknownSessionError,
        "`cueline list{1}` shows the sessions of this log; --log names another log",
    ),
    (
        SessionFinishedError,
        "go on from its past with `cueline fork {0} --at VERSION{1}`, or start another",
    ),
    (
        SessionOwnedError,
        "watch it with `cueline tail -f {0}{1}`, or have it rest with `cueline pause {0}{1}`",
    ),
    (LogIndexLostError, "end every process that has the log open, then go on with it"),
    (LogLostError, "put it back if it was moved; else restore a backup, or begin anew"),
    (CorruptEventError, "restore the log from a backup; what is before this event still loads"),
    (UnknownEventTypeError, "a newer cueline wrote it; upgrade this one"),
    (UnknownOutcomeError, "see that the disk works and has room, then look before you ask again"),
)
_NO_LOG = "--log or CUELINE_LOG names one; `cueline run` makes one"
_NO_FORK = "it follows a plan, which has no forks: start another session"
_NO_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
_TYPED: type[Exception] = typer.BadParameter.__mro__[2]
"""Typer's error for wrong words, which has no public name."""
_CHOICE = re.compile(r"'(.*)' is not one of (.*)\.$", re.DOTALL)
"""Typer's message for a value that is not one of an option's choices."""
_REFUSALS = (RejectedError, LogUnavailableError, LogFormatError, ClusterError)


def exit_of(error: CuelineError) -> Exit:
    """Return the exit code for *error*."""
    return Exit.REFUSED if isinstance(error, _REFUSALS) else Exit.FAILED


def hint_of(error: CuelineError, log: LogUrl) -> str | None:
    """Return the hint about *error* on *log*; None if there is no hint beside its message."""
    if isinstance(error, LogUnavailableError) and error.reason.startswith("there is no log"):
        return _NO_LOG
    if isinstance(error, SessionFinishedError) and error.has_plan:
        return _NO_FORK
    told = (error.args[0] if error.args else "", naming(log))
    return next((hint.format(*told) for kind, hint in _HINTS if isinstance(error, kind)), None)


def print_error(
    error: CuelineError, outside: SettingsContext | None = None, log: LogUrl = DEFAULT_LOG
) -> None:
    """Print the error and the hint to stderr."""
    print_redacted(f"error: {error}", outside)
    if (hint := hint_of(error, log)) is not None:
        print_redacted(f"hint: {hint}", outside)


class Commands(TyperGroup):
    """Commands whose errors end in a message and the right exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command.

        Raises:
            Exit: with the code for the error.
        """
        try:
            set_settings_context(ctx, ctx.args)
            return super().invoke(ctx)
        except CuelineError as error:
            if (said := shortage_of(error)) is not None:
                raise _out_of_files(said) from error
            print_error(error, ctx.obj, named_log(ctx))
            raise typer.Exit(exit_of(error)) from error
        except KeyboardInterrupt:
            raise typer.Exit(Exit.LEFT) from None
        except BrokenPipeError:
            # The reader of the output has closed it, as in `cueline list | head`.
            sys.stdout = None
            raise typer.Exit(Exit.DONE) from None
        except _TYPED as error:
            _say_in_our_words(error)
            raise
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:  # noqa: BLE001 - a bug, whose traceback may quote anything
            raise _unforeseen(error, ctx.obj) from None


def _unforeseen(error: Exception, outside: SettingsContext | None) -> typer.Exit:
    """Print an unexpected error: an error of the system as a message, a bug with its traceback."""
    if isinstance(error, OSError) and error.errno in _NO_OUTPUT and not error.filename:
        sys.stdout = None  # else it is tried once more at the end
        typer.echo(f"error: the output cannot be written: {error.strerror}", err=True)
        return typer.Exit(Exit.FAILED)
    if (said := shortage_of(error)) is not None:
        return _out_of_files(said)
    if isinstance(error, OSError) and isinstance(error.filename, str):
        print_error(CuelineError(f"{error.filename}: {error.strerror}"), outside)
        return typer.Exit(Exit.REFUSED)
    print_redacted(traceback.format_exc(), outside)
    return typer.Exit(Exit.FAILED)


def _out_of_files(said: str) -> typer.Exit:
    typer.echo(f"error: {said}; what was recorded is kept", err=True)
    return typer.Exit(Exit.FAILED)


def _say_in_our_words(typed: Any) -> None:
    """Give a value that typer refuses the same message as a wrong setting, with a suggestion."""
    from pydantic import ValidationError

    from cueline.config.problem import error_text

    if isinstance(typed.__cause__, ValidationError):
        typed.message = error_text(typed.__cause__.errors(include_url=False)[0])
    if (choice := _CHOICE.match(typed.message)) is not None:
        word, choices = choice.groups()
        if near := closest(word, re.findall("'(.*?)'", choices)):
            typed.message += f" Did you mean {near[0]!r}?"
