"""Opens the log for a command, and prints the answers.

Reading needs neither Ray nor an agent, and does not change the log.
"""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from cueline.console.text import json_of, visible
from cueline.errors import CuelineError
from cueline.events.log_url import LogName

if TYPE_CHECKING:
    from cueline.cli.failure import Exit
    from cueline.client.client import Client
    from cueline.client.history import History
    from cueline.client.open_read_models import Page
    from cueline.client.reader import Reader
    from cueline.client.rows import SqlRows

T = TypeVar("T")
R = TypeVar("R")


def run(work: Coroutine[object, object, T]) -> T:
    """Run *work* in a new event loop, and return its result."""
    from cueline.runtime import loop

    return loop.run(work)


@asynccontextmanager
async def reader(path: LogName, *, must_exist: bool = True) -> AsyncIterator["Reader"]:
    """Open the log at *path* for reading; see `open_reader`."""
    from cueline.client.open_reader import open_reader

    async with open_reader(path, must_exist=must_exist, notice=_notice) as opened:
        yield opened


def ask(path: LogName, question: Callable[["Reader"], Awaitable[T]]) -> T:
    """Return the answer to *question* about the log at *path*."""

    async def answer() -> T:
        async with reader(path) as opened:
            return await question(opened)

    return run(answer())


def wish(path: LogName, asked: Callable[["Client"], Awaitable[T]]) -> T:
    """Send a wish to the log at *path*, and return the receipt."""

    async def submit() -> T:
        from cueline.client.client import open_client

        async with open_client(path) as client:
            return await asked(client)

    return run(submit())


def wish_of_tree(
    path: LogName, session: str, asked: Callable[["Client", str], Awaitable[T]], *, tree: bool
) -> list[T]:
    """Send a wish to a session and, with *tree*, to its descendants; return the receipts."""
    from cueline.client.session_by_name import over_tree

    def submit(client: "Client") -> Awaitable[list[T]]:
        return over_tree(client, session, lambda each: asked(client, each), tree=tree)

    return wish(path, submit)


async def history(path: LogName, name: str, **how: Any) -> "History":
    """Return the history of the session with that *name*; see `Reader.history`."""
    async with reader(path) as opened:
        return await opened.history(name, **how)


def rows(page: "Page[Any]") -> Any:
    """Return the rows of a page in their JSON form."""
    from cueline.client.document import document

    return document(page.rows)


def print_answer(
    found: T, show: Callable[[T], None], *, as_json: bool, empty: str | None = None
) -> None:
    """Print *found*, as JSON or with *show*.

    If *found* is empty and *as_json* is false, print *empty* instead.
    """
    from cueline.client.document import document

    if as_json:
        typer.echo(json_of(document(found), indent=2))
    elif empty is not None and not found:
        typer.echo(visible(empty))
    else:
        show(found)


def print_page(
    page: "Page[R]", show: "Callable[[Page[R]], None]", empty: str, *, as_json: bool
) -> None:
    """Print the rows of a page like `print_answer`, and exit like `end_of`."""
    if as_json:
        typer.echo(json_of(rows(page), indent=2))
    else:
        print_answer(page, show, as_json=False, empty=empty)
    end_of(page)


def end_of(page: "Page[Any] | SqlRows") -> None:
    """Print to stderr if a page is incomplete, because an audit must not seem complete.

    Raises:
        CorruptEventError: the log is damaged; the page has the rows before the damage.
    """
    if page.more:
        typer.echo("there are more; --limit shows them", err=True)
    if page.damage is not None:
        raise page.damage


def exit_of_damage(damage: CuelineError | None) -> "Exit":
    """Return the exit code of a command that read until damage, and print the damage."""
    from cueline.cli.failure import Exit, print_error

    if damage is None:
        return Exit.DONE
    print_error(damage)
    return Exit.FAILED


def _notice(text: str) -> None:
    from cueline.client.open_read_models import FILLING

    if not text.startswith(FILLING):
        typer.echo(visible(text), err=True)
    elif sys.stderr.isatty():
        # One line, which stays when it is full.
        typer.echo(f"\r{text}", nl=" 100 % " in text, err=True)
