"""What `up` says while it keeps a log up."""

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from types import SimpleNamespace

import pytest
import typer

from cueline.cli import up
from cueline.cli.settings_context import SettingsContext
from cueline.cli.up_process import keep
from cueline.config.settings import Settings
from cueline.errors import ClusterError
from cueline.events.log_url import LogUrl
from cueline.runtime.up import UpPlan
from cueline.stores.backend import backend_of
from cueline.testing.wait import await_until


class Troubled:
    """Tells one thing, then loses its cluster."""

    record = SimpleNamespace(
        keeper=SimpleNamespace(pid=7), kept_by="process", address="10.0.0.5:6379", version="0.1.0"
    )
    found = 0
    url = None

    def __init__(self):
        self._lines = [["\x1b[2Jtold \u202etxt"]]

    async def watch(self):
        if not self._lines:
            raise ClusterError("ray", "\x1b[2Jgone \u202etxt")
        return self._lines.pop()

    async def look(self):
        await asyncio.Event().wait()


class Quiet(Troubled):
    """Has nothing to tell."""

    async def watch(self):
        await asyncio.Event().wait()


PLAN = UpPlan(
    log=LogUrl.of("log.db"),
    address=None,
    hosts=1,
    runners=1,
    recover=True,
    settings=Settings(),
)


async def test_what_up_repeats_moves_no_cursor(monkeypatch, capsys):
    @asynccontextmanager
    async def keep_up(*_, **__):
        yield Troubled()

    monkeypatch.setattr("cueline.cli.up_process.run_up", keep_up)

    with pytest.raises(ClusterError):
        await keep(PLAN, None, as_json=False)

    said = capsys.readouterr().err.splitlines()
    assert ["\\x1b[2Jtold \\x202etxt", "ray: \\x1b[2Jgone \\x202etxt"] == said[1:3]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
async def test_an_up_ends_in_order_however_often_it_is_told_to(monkeypatch, capsys, number):
    # Of the end of a terminal the system and the shell tell, and of `down` each one that waits.
    before = signal.signal(number, signal.SIG_DFL)  # `nohup` has it ignored
    ended = []

    @asynccontextmanager
    async def keep_up(*_, **__):
        try:
            yield Quiet()
        finally:
            ended.append("in order")

    monkeypatch.setattr("cueline.cli.up_process.run_up", keep_up)
    keeping = asyncio.create_task(keep(PLAN, None, as_json=False))
    await await_until(lambda: "no session was left" in capsys.readouterr().out)

    for _ in range(2):
        os.kill(os.getpid(), number)
    await keeping
    signal.signal(number, before)

    assert ["in order"] == ended


def test_what_a_detached_up_said_moves_no_cursor(monkeypatch, capsys, tmp_path):
    keeper = tmp_path / "keeper"
    keeper.write_text("#!/bin/sh\nprintf '\\033[2Jgone \\377'; exit 3\n")
    keeper.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(keeper))

    with pytest.raises(typer.Exit) as ended:
        up._detach(replace(PLAN, log=LogUrl.of(tmp_path / "log.db")), SettingsContext())

    assert (3, "\\x1b[2Jgone \ufffd\n") == (ended.value.exit_code, capsys.readouterr().err)


def test_a_detached_up_writes_through_no_link(shell):
    shell.log.parent.mkdir()
    other = shell.folder / "other.txt"
    other.write_text("of somebody else")
    shell.log.with_name("log.db-up.log").symlink_to(other)

    done = shell("up", "--detach", "--log", ".cueline/log.db")

    assert "of somebody else" == other.read_text()
    assert 2 == done.exit_code
    assert f"{shell.log.name}-up.log: Too many levels of symbolic links" in done.stderr


def test_who_interrupts_a_detached_up_before_it_is_ready_ends_it(monkeypatch, tmp_path):
    ended = []

    def interrupted(_):
        raise KeyboardInterrupt

    keeper = SimpleNamespace(wait=interrupted, terminate=lambda: ended.append("the keeper"))
    monkeypatch.setattr(up.subprocess, "Popen", lambda *_, **__: keeper)

    with pytest.raises(KeyboardInterrupt):
        up._detach(replace(PLAN, log=LogUrl.of(tmp_path / "log.db")), SettingsContext())

    assert ["the keeper"] == ended


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("file:x/log.db", "no kind of log has the scheme 'file'"),
        (":memory:", "name a path, or `memory:`"),
        ("memory:one", "memory:one: no other process reaches this one's memory"),
    ],
)
def test_a_log_that_can_be_none_leaves_no_folder_behind(shell, name, told):
    before = sorted(shell.folder.iterdir())

    done = shell("up", "--detach", "--log", name)

    assert (2, True) == (done.exit_code, told in done.stderr), done.output
    assert before == sorted(shell.folder.iterdir())


def test_a_long_log_is_read_before_the_time_to_start_begins(finished, monkeypatch):
    read = []

    @asynccontextmanager
    async def keep_up(plan):
        with closing(backend_of(plan.log).open_views()) as views:
            read.append(views.checkpoint.position)
        raise ClusterError("the cluster", "there is none")
        yield

    monkeypatch.setattr("cueline.cli.up_process.run_up", keep_up)

    finished("up")

    assert read == [len(finished.types("one")) + 1]
