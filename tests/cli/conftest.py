"""A shell in a folder of its own: commands in this process, or as processes."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cueline.cli import app
from cueline.files import Trust
from cueline.sqlite_library import sqlite_library
from cueline.stores.backend import backend_of
from cueline.testing.wait import wait_until
from tests.cli.quick_terminal import QuickTerminal
from tests.cli.terminal import Terminal
from tests.damage import change

HELLO = '[[reply]]\ntext = "Good evening."\n'
TWO_TURNS = """
[[reply]]
text = "I will look."
calls = [{ name = "list_files", arguments = {} }]
usage = { input = 100, output = 20 }

[[reply]]
text = "There is nothing."
usage = { input = 150, output = 10 }
"""
DELETES = """
[[reply]]
text = "The list is old."
calls = [{ name = "delete_file", arguments = { path = "list.txt" } }]

[[reply]]
text = "Done."
"""
REACHABLE = '[[policy.hooks]]\non = "asked"\ncommand = ["true"]\n'
"""Of an agent that asks though nobody is at a terminal."""
SLOW = """
[[reply]]
turn = 1
attempt = 1
text = "First."
calls = [{ name = "list_files", arguments = {} }]

[[reply]]
turn = 2
attempt = 1
delay_seconds = 120
text = "Too late."

[[reply]]
turn = 2
text = "Here I am."
"""

KEYS = {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "RAY_ADDRESS"}
CUELINE = [sys.executable, "-m", "cueline.cli"]


class Shell:
    """Somebody who types commands in *folder*."""

    hello, two_turns, deletes, slow = HELLO, TWO_TURNS, DELETES, SLOW
    reachable = REACHABLE
    brisk = SLOW.replace("delay_seconds = 120", "delay_seconds = 2").replace(
        "Too late.", "In time."
    )

    text = ""
    """What a tool said, where that is long."""

    def __init__(self, folder: Path) -> None:
        self._processes: list[subprocess.Popen[str]] = []
        self.enter(folder)

    def enter(self, folder: Path) -> None:
        """Type what follows in *folder*."""
        self.folder = folder
        self.log = folder / ".cueline" / "log.db"
        self.trust = Trust(folder / "config" / "cueline")

    def agent(self, script: str, *, tools: tuple[str, ...] = (), more: str = "") -> str:
        """Write an agent that follows *script*, and return its file."""
        (self.folder / "script.toml").write_text(script)
        (self.folder / "work").mkdir(exist_ok=True)
        (self.folder / "agent.toml").write_text(
            'name = "clerk"\nprovider = "scripted"\nmodel = "script.toml"\n'
            f'workspace = "work"\ntools = {json.dumps(tools)}\n{more}'
        )
        return "agent.toml"

    def know_log(self) -> None:
        """Have used the log that was copied here."""
        log_id = backend_of(str(self.log)).found()[1]
        self.trust.add(self.log, log_id.encode())

    def own_settings(self, text: str) -> None:
        """Write the settings of this person."""
        file = self.folder / "config" / "cueline" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def __call__(self, *words: str, typed: str | None = None):
        """Run a command in this process."""
        return CliRunner().invoke(app, list(words), input=typed)

    def json(self, *words: str) -> Any:
        """Run a command with `--json`, and return what it prints."""
        done = self(*words, "--json")
        assert done.exit_code in {0, 1, 3}, done.output
        return json.loads(done.stdout)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Run a command as a process, in a session of its own."""
        process = subprocess.Popen(
            [*CUELINE, *words],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            pipesize=1 << 20,  # nobody reads it before the end, and the process writes on
        )
        self._processes.append(process)
        return process

    def types(self, session: str) -> list[str]:
        """Return the types of a session's events, as another process sees them."""
        if not self.log.exists():
            return []
        db = sqlite_library().connect(self.log)
        try:
            rows = db.execute(
                "SELECT type FROM events JOIN streams ON streams.id = events.stream "
                "WHERE name = ? ORDER BY events.version",
                [f"session-default/{session}"],
            )
            return [row[0] for row in rows]
        except sqlite_library().Error:
            return []  # it is being made
        finally:
            db.close()

    def wait_for(self, session: str, type_: str, times: int = 1) -> None:
        """Wait until a session has recorded a fact."""
        wait_until(lambda: self.types(session).count(type_) >= times)

    def change(self, sql: str, *values: object) -> None:
        """Change the log behind its back."""
        change(self.log, sql, *values)

    def close(self) -> None:
        """Leave no process behind."""
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name in KEYS or name.startswith("CUELINE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("CUELINE_SEAL_EVERY_SECONDS", "0")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    at_work = Shell(tmp_path)
    yield at_work
    at_work.close()


@pytest.fixture(scope="module")
def beginnings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for what the tests of a module begin with."""
    return tmp_path_factory.mktemp("beginnings")


@pytest.fixture
def begin(
    shell: Shell, beginnings: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[Shell], None]], Shell]:
    """Return what brings the shell where a function leaves it, which runs once in a module.

    Each test has the folder as it was then, at the same place: sessions remember where that is.
    """

    def begin(make: Callable[[Shell], None]) -> Shell:
        folder, kept = beginnings / make.__name__, beginnings / f"{make.__name__}.kept"
        known = kept.exists()
        shutil.rmtree(folder, ignore_errors=True)
        if known:
            shutil.copytree(kept, folder)
        else:
            folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        shell.enter(folder)
        if not known:
            make(shell)
            shutil.copytree(folder, kept)
        return shell

    return begin


@pytest.fixture(scope="session")
def one_finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder whose log holds a session `one` of two turns that has completed."""
    folder = tmp_path_factory.mktemp("finished")
    at_work = Shell(folder)
    with contextlib.chdir(folder):
        agent = at_work.agent(TWO_TURNS, tools=("list_files",))
        done = at_work("run", "Look around", "--agent", agent, "--inline", "--id", "one")
    assert done.exit_code == 0, done.output
    for part in at_work.log.parent.glob("log.db-views*"):
        part.unlink()  # how far they were filled depends on how fast the run was
    return folder


@pytest.fixture
def finished(shell: Shell, one_finished: Path) -> Shell:
    """A shell in a copy of that folder."""
    shutil.copytree(one_finished, shell.folder, dirs_exist_ok=True)
    shell.know_log()
    return shell


@pytest.fixture
def long_result(shell: Shell) -> Shell:
    """A shell whose log holds a session `one`, the result of which is longer than an event."""
    script = shell.two_turns.replace(
        'name = "list_files", arguments = {}',
        'name = "run_command", arguments = { command = "cat long" }',
    )
    shell.text = "a" * 60_000
    agent = shell.agent(script, tools=("run_command",), more='[policy]\napproval = "off"\n')
    (shell.folder / "work" / "long").write_text(shell.text)
    done = shell("run", "Look around", "--agent", agent, "--inline", "--id", "one")
    assert done.exit_code == 0, done.output
    return shell


@pytest.fixture
def asking(shell: Shell) -> Shell:
    """A shell whose log holds a session `one` that waits for `one.1.0.1`."""
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=shell.reachable)
    (shell.folder / "work" / "list.txt").write_text("Ada\n")
    done = shell("run", "Tidy up", "--agent", agent, "--inline", "--id", "one")
    assert done.exit_code == 3, done.output
    return shell


@pytest.fixture
def terminal(shell: Shell) -> Iterator[QuickTerminal]:
    """A terminal without a shell, in the shell's folder."""
    opened = QuickTerminal()
    yield opened
    opened.close()


@pytest.fixture
def tmux(shell: Shell, request: pytest.FixtureRequest) -> Iterator[Terminal]:
    """A terminal with a shell, in the shell's folder."""
    opened = Terminal(shell.folder, f"cueline-{os.getpid()}-{abs(hash(request.node.name))}")
    yield opened
    opened.close()
