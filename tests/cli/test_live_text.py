"""A reply is seen in another process while it comes, and a crash leaves nothing of it."""

import asyncio
import signal
from threading import Event

import pytest

import cueline
from cueline.client.client import open_client
from cueline.testing.wait import PATIENCE_SECONDS
from tests.local_server import local_server, says

WORDS = "Nobody ever wrote that down"


def escaped(text):
    """Return *text* as TOML that does not show it: the script is recorded with the agent."""
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


SPEAKS = f"""
[[reply]]
text = "I will look."
calls = [{{ name = "list_files", arguments = {{}} }}]

[[reply]]
turn = 2
attempt = 1
text = "{escaped(WORDS)}{escaped(" and on") * 200}"
delay_seconds = 0.5
chunk_seconds = 0.05

[[reply]]
turn = 2
text = "There is nothing."
delay_seconds = 0.5
chunk_seconds = 0.01
"""


@pytest.fixture
def speaks(shell):
    """Return an agent that says something long, unless it is asked again."""
    return shell.agent(SPEAKS, tools=("list_files",))


async def first(pieces):
    """Return the pieces that hold the first words; who is slow gets several in one."""
    came = []
    while not "".join(piece.text for piece in came).startswith(WORDS):
        came.append(await anext(pieces))
    return came


async def pieces_of(session):
    async for each in session.stream():
        if isinstance(each, cueline.TextDelta):
            yield each


@pytest.fixture
async def following(shell, speaks):
    """Return a run in another process, and the pieces that this process sees of it."""
    process = shell.start("run", "Go", "--agent", speaks, "--inline", "--id", "one")
    await asyncio.to_thread(shell.wait_for, "one", "SessionStarted")
    async with asyncio.timeout(PATIENCE_SECONDS), open_client(shell.log) as client:
        pieces = pieces_of(client.session("one"))
        yield process, pieces
        await pieces.aclose()


async def test_a_reply_is_seen_in_another_process_while_it_comes(shell, following):
    _, pieces = following

    came = await first(pieces)

    assert {("2.m", 1, "text")} == {(piece.effect, piece.attempt, piece.kind) for piece in came}
    assert 1 == shell.types("one").count("ModelReplied")


async def test_a_call_that_died_in_the_middle_of_its_reply_is_made_again(shell, following):
    process, pieces = following
    await first(pieces)

    process.send_signal(signal.SIGKILL)
    await asyncio.to_thread(process.wait)
    resumed = shell.start("resume", "one", "--inline")
    came = [piece async for piece in pieces if piece.attempt > 1]

    assert "There is nothing." == "".join(piece.text for piece in came)
    assert {("2.m", 2)} == {(piece.effect, piece.attempt) for piece in came}
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
            came.append(process.stdout.readline().rstrip("\n"))
        types = shell.types("one")
        seen.set()
        rest = process.stdout.read()

    assert ["One", "", "Two"] == came[-3:]
    assert "ModelReplied" not in types
    assert rest.startswith("Three\n  turn 1")
    assert "\x1b" not in rest
