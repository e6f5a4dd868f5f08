"""A log that both a program and the command line ask."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cueline.client.document import document
from cueline.client.open_read_models import Page
from cueline.client.open_reader import open_reader
from cueline.client.reader import Reader
from cueline.errors import CuelineError
from cueline.runtime import loop
from tests.cli.conftest import Shell, asking, finished, one_finished, shell
from tests.client.twice import twice
from tests.stores.conftest import one_server, servers

__all__ = ["asking", "finished", "one_finished", "one_server", "servers", "shell", "twice"]

Question = Callable[[Reader], Awaitable[Any]]


class Both:
    """The same question from Python and from the command line: each gives the same."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell

    def __call__(self, question: Question, *words: str) -> Any:
        """Return the answer in its JSON form, or the error as `error: …`."""
        python, typed = self.python(question), self.typed(*words)
        assert python == typed
        return typed

    def python(self, question: Question) -> Any:
        """Ask in Python."""

        async def ask() -> Any:
            async with open_reader(".cueline/log.db") as reader:
                return await question(reader)

        try:
            found = loop.run(ask())
        except CuelineError as error:
            return f"error: {error}"
        return document(found.rows if isinstance(found, Page) else found)

    def typed(self, *words: str) -> Any:
        """Ask on the command line."""
        done = self.shell(*words, "--json")
        if done.stderr.startswith("error: "):
            assert done.exit_code in {1, 2}
            return done.stderr.splitlines()[0]
        if words[0] == "audit" and "verify" not in words:
            return [json.loads(line) for line in done.stdout.splitlines()]
        return json.loads(done.stdout)


@pytest.fixture
def both(finished: Shell) -> Both:
    """Ask about a log with a session `one` that has completed."""
    return Both(finished)


@pytest.fixture
def both_asking(asking: Shell) -> Both:
    """Ask about a log with a session `one` that waits for `one.1.0.1`."""
    return Both(asking)
