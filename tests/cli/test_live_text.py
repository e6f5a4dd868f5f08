"""A reply is seen in another process while it comes, and a crash leaves nothing of it."""

import asyncio
import signal
from contextlib import aclosing
from functools import partial
from threading import Event

import pytest

import cueline
from cueline.client.client import open_client
from cueline.client.live_text import live_text, with_live_text
from cueline.events.session import SessionCompleted
from cueline.testing.wait import PATIENCE_SECONDS, await_until
from tests.cli.processes import holding, text_in, told_of
from tests.local_server import local_server, says

STREAM = "session-default/one"
WORDS = "Nobody ever wrote that down"


def escaped(text):
    """Return *text* as TOML that does not show it: the script is recorded with the agent."""
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


SPEAKS = f"""
[[reply]]
text = "I will look."
calls = [{{ name = "hold", arguments = {{ name = "first" }} }}]

[[reply]]
turn = 2
attempt = 1
text = "{escaped(WORDS)}{escaped(" and on") * 200}"
chunk_seconds = 0.05

[[reply]]
turn = 2
text = "I look again."
calls = [{{ name = "hold", arguments = {{ name = "second" }} }}]

[[reply]]
text = "There is nothing."
calls = [{{ name = "hold", arguments = {{ name = "third" }} }}]
chunk_seconds = 0.01

[[reply]]
text = "Done."
"""


class Watcher:
    """A watcher of a session in another process: a reply begins once it is connected."""

    def __init__(self, folder, pieces, happening):
        self._folder = folder
        self._pieces = pieces
        self.happening = happening

    async def let_go_on(self, call, name):
        """End a call that holds the next reply back, once its progress has come here."""
        await await_until(lambda: told_of(call, self._pieces))
        (self._folder / name).touch()

    async def first(self):
        """Return the pieces with the first words; a slow watcher gets several in one."""
        came = []
        while not "".join(piece.text for piece in came).startswith(WORDS):
            each = await anext(self.happening)
            if isinstance(each, cueline.TextDelta) and each.effect == "2.m":
                came.append(each)
        return came

    async def rest(self):
        """Return the other pieces, to the end of the session."""
        came = []
        async for each in self.happening:
            if isinstance(each, cueline.TextDelta):
                came.append(each)
            elif isinstance(each[1], SessionCompleted):
                break
        return came


@pytest.fixture
async def following(shell):
    """Return a run in another process, and what watches it in this one."""
    speaks = shell.agent(SPEAKS, tools=(holding(shell),))
    process = shell.start("run", "Go", "--agent", speaks, "--inline", "--id", "one")
    await asyncio.to_thread(shell.wait_for, "one", "SessionStarted")
    async with asyncio.timeout(2 * PATIENCE_SECONDS), open_client(shell.log) as client:
        with live_text(client.log, STREAM) as pieces:
            happening = with_live_text(client.session("one").watch().follow(), pieces)
            async with aclosing(happening):
                yield process, client.log, Watcher(shell.folder, pieces, happening)


async def test_a_reply_is_seen_in_another_process_while_it_comes(shell, following):
    _, _, watcher = following

    await watcher.let_go_on("1.0", "first")
    came = await watcher.first()

    assert {("2.m", 1, "text")} == {(piece.effect, piece.attempt, piece.kind) for piece in came}
    assert 1 == shell.types("one").count("ModelReplied")


async def test_a_call_that_died_in_the_middle_of_its_reply_is_made_again(shell, following):
    process, log, watcher = following
    await watcher.let_go_on("1.0", "first")
    await watcher.first()

    process.send_signal(signal.SIGKILL)
    await asyncio.to_thread(process.wait)
    resumed = shell.start("resume", "one", "--inline")
    came = []
    with live_text(log, STREAM) as pieces:
        await await_until(partial(told_of, "2.0", pieces))
        await watcher.let_go_on("2.0", "second")
        while "There is nothing." != text_in(came, "3.m"):
            came += await pieces.take()
    (shell.folder / "third").touch()
    rest = [piece for piece in await watcher.rest() if piece.call != ("2.m", 1)]

    assert {("2.m", 2), ("3.m", 1)} >= {piece.call for piece in came}
    # An event may come before the last pieces of its reply, which are left out then.
    assert "There is nothing.".startswith(text_in(rest, "3.m"))
    assert {("2.m", 2), ("3.m", 1), ("4.m", 1)} >= {piece.call for piece in rest}
    said = await asyncio.to_thread(resumed.stdout.read)
    assert 0 == await asyncio.to_thread(resumed.wait)
    assert "taken over by a new owner, epoch 2; 1 lost attempt" in said
    kept = b"".join(path.read_bytes() for path in shell.log.parent.rglob("*") if path.is_file())
    assert b"There is nothing." in kept
    assert b"Nobody" not in kept


def test_without_a_terminal_a_reply_comes_line_by_line(shell, monkeypatch):
    seen = Event()

    def reply():
        yield says("One\n\nTwo\nThr")
        assert seen.wait(PATIENCE_SECONDS)
        yield says("ee")

    with local_server("tiny", replies=[reply()]) as server:
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{server.server_port}")
        process = shell.start("run", "Go", "--inline", "--id", "one")
        came = []
        while not came or came[-1] != "Two":
            line = process.stdout.readline()
            assert line, came
            came.append(line.rstrip("\n"))
        types = shell.types("one")
        seen.set()
        rest = process.stdout.read()

    assert ["One", "", "Two"] == came[-3:]
    assert "ModelReplied" not in types
    assert rest.startswith("Three\n  turn 1")
    assert "\x1b" not in rest
