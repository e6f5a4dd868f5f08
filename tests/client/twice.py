"""One log twice: a wish is said at the command line to the one, and in Python to the other."""

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cueline.client.client import Client, open_client
from cueline.client.receipt import Receipt
from cueline.errors import CuelineError
from tests.cli.conftest import Shell

Wish = Callable[[Client], Awaitable[Receipt]]


@dataclass
class Twice:
    """A shell, and a copy of its log for Python."""

    shell: Shell
    copy: Path

    def __call__(self, *words: str, wish: Wish) -> dict[str, object]:
        """Return the receipt as JSON, once both said the same."""
        typed, said = self.shell(*words, "--json"), self.in_python(wish)

        assert typed.exit_code == 0, typed.output
        assert json.loads(typed.stdout) == said.to_json()
        return said.to_json()

    def refused(self, *words: str, wish: Wish) -> CuelineError:
        """Return the error, once both raised the same."""
        typed = self.shell(*words)
        with pytest.raises(CuelineError) as raised:
            self.in_python(wish)

        assert 2 == typed.exit_code, typed.output
        assert str(raised.value) in typed.stderr
        return raised.value

    def in_python(self, wish: Wish) -> Receipt:
        async def said() -> Receipt:
            async with open_client(self.copy) as client:
                return await wish(client)

        return asyncio.run(said())


def begin(shell: Shell) -> Twice:
    copy = shell.folder / f"copy{len(list(shell.folder.glob('copy*')))}"
    shutil.copytree(shell.log.parent, copy)
    return Twice(shell, copy / shell.log.name)


@pytest.fixture
def twice(asking: Shell) -> Twice:
    """A log whose session `one` waits for `one.1.0.1`."""
    return begin(asking)
