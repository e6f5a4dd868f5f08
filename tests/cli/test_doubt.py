"""A call in doubt, and the three answers to it (I5)."""

import asyncio
import json

import pytest

from cueline import open_runtime
from cueline.errors import RejectedError
from cueline.events.event_text import RESOLUTIONS
from tests.cli.test_crashes import typed

SENDER = '''
import os
import signal
from pathlib import Path

from cueline import tool


@tool
def send(text: str) -> str:
    """Send a letter; the first time the power fails after it."""
    with Path("sent.txt").open("a") as file:
        file.write(f"{text}\\n")
    if Path("sent.txt").read_text().count("\\n") == 1:
        os.kill(HOST, signal.SIGKILL)
    return "sent as no. 8"
'''
SENDS = """
[[reply]]
calls = [{ name = "send", arguments = { text = "Dear Ada" } }]

[[reply]]
text = "Done."
"""
QUESTION = "one.1.0.1"
ANSWERS = {
    "happened": ("approve", QUESTION, "--happened", "--result", "no. 8, says the book"),
    "run_again": ("approve", QUESTION, "--run-again"),
    "do_not_run": ("deny", QUESTION),
}


def host_dies(shell):
    sender = SENDER.replace("HOST", 'int(Path("host.pid").read_text())')
    (shell.folder / "sender.py").write_text(sender)
    agent = shell.agent(SENDS, tools=("sender.py:send",), more=shell.reachable)
    (shell.folder / "host.pid").write_text("0")
    process = shell.start("run", "Write", "--agent", agent, "--inline", "--id", "one")
    (shell.folder / "host.pid").write_text(str(process.pid))
    process.wait(60)
    rests = shell("resume", "one", "--inline")
    assert rests.exit_code == 3, rests.output


@pytest.fixture
def doubt(begin):
    """A session whose host died under a call that must not be repeated."""
    return begin(host_dies)


def sent(shell):
    return (shell.folder / "sent.txt").read_text().count("Dear Ada")


def told(shell):
    return json.dumps(shell.json("export", "one")["messages"])


@pytest.mark.parametrize(
    ("resolution", "letters", "hears"),
    [
        ("happened", 1, "no. 8, says the book"),
        ("run_again", 2, "sent as no. 8"),
        ("do_not_run", 1, "The outcome of this call is unknown"),
    ],
)
def test_each_answer_does_what_it_says(doubt, resolution, letters, hears):
    given = doubt(*ANSWERS[resolution])
    waits = doubt.json("pending")[0]
    done = doubt("resume", "one", "--inline")

    assert (0, 0) == (given.exit_code, done.exit_code), given.output + done.output
    assert resolution == waits["resolution"]
    assert letters == sent(doubt)
    assert hears in told(doubt)


def test_a_bare_approval_of_a_call_in_doubt_loses_nothing(doubt):
    bare = doubt("approve", QUESTION)

    assert 2 == bare.exit_code
    assert doubt.json("pending")[0]["given"] is None
    for then in RESOLUTIONS.values():
        assert then in bare.stderr


# Each answer is offered with what follows from it.
@pytest.mark.parametrize("words", [("pending",), ("show", "one"), ("resume", "one", "--inline")])
def test_the_consequence_is_shown_where_an_answer_is_offered(doubt, words):
    shown, document = doubt(*words).stdout, doubt(*words, "--json").stdout

    for (resolution, then), flag in zip(
        RESOLUTIONS.items(), ("--happened", "--run-again", "deny"), strict=True
    ):
        assert any(flag in line and then in line for line in shown.splitlines()), shown
        assert then in document
        assert f'"{resolution}"' in document


def test_python_has_the_same_answers(doubt):
    async def answer():
        async with open_runtime(doubt.log, on="inline") as runtime:
            session = runtime.session("one")
            async for _, event, _ in session.follow():
                if event.type == "ApprovalRequested":
                    break
            with pytest.raises(RejectedError, match="does not run again"):
                await session.approve(event)
            with pytest.raises(RejectedError, match="only a call that happened"):
                await session.approve(event, resolution="run_again", result="sent")
            await session.approve(event, resolution="happened", result="no. 9")

    asyncio.run(answer())
    typed(doubt, "resume", "one", "--inline")

    assert "no. 9" in told(doubt)
    assert 1 == sent(doubt)


@pytest.mark.parametrize(
    "words", [("--happened", "--run-again"), ("--result", "sent"), ("--happened",)]
)
def test_what_became_of_a_call_is_said_where_it_is_asked_and_once(asking, words):
    assert 2 == asking("approve", "one.1.0.1", *words).exit_code


def test_the_terminal_takes_an_answer_with_its_result(doubt, terminal):
    terminal.command("resume", "one", "--inline")
    asked = terminal.sees("What became of it? [h/r/n]")

    assert "OUTCOME UNKNOWN" in asked
    terminal.type("h no. 9", "Enter")

    assert "answered (it happened) by" in terminal.sees("exit 0")
    assert "no. 9" in told(doubt)
    assert 1 == sent(doubt)
