"""A reply while it comes, in a real terminal."""

import os
import signal

from cueline.testing.wait import wait_until
from tests.cli.terminal import RUN, needs_tmux

SPEAKS = """
[[reply]]
thinking = "What a question."
text = "Some **bold** words. And many more words that take a while to come."
delay_seconds = 1.5
chunk_seconds = 0.25
"""
SOON = SPEAKS.replace("delay_seconds = 1.5", "").replace("0.25", "0.05")
BREAKS_OFF = """
[[reply]]
turn = 1
attempt = 1
text = "I was about to say"
chunk_seconds = 0.1
cut = true

[[reply]]
turn = 1
text = "Here I am."
chunk_seconds = 0.1
"""


@needs_tmux
def test_run_shows_a_reply_while_it_comes_and_then_the_recorded_one(shell, tmux):
    shell.agent(SPEAKS)
    tmux.command(*RUN)

    assert "ModelReplied" not in shell.types("one")
    coming = tmux.sees("Some bold words")
    assert "What a question." in coming
    assert "Ctrl-C pauses" in coming
    assert "ModelReplied" not in shell.types("one")

    seen = tmux.sees("exit 0")
    assert 1 == seen.count("Some bold words. And many more words")
    assert 1 == seen.count("What a question.")
    assert "Ctrl-C pauses" not in seen


def test_thoughts_are_hidden_where_a_person_wants_that(shell, terminal):
    shell.agent(SPEAKS)
    terminal.command(*RUN, "--hide-thinking")

    terminal.sees("thinking …")
    seen = terminal.sees("exit 0")
    assert "What a question." not in seen
    assert "And many more words" in seen


def test_thoughts_are_hidden_by_a_setting_and_shown_by_a_command(shell, terminal):
    shell.agent(SOON + SOON)
    (shell.folder / "cueline.toml").write_text("hide_thinking = true\n")
    terminal.command(*RUN, "--open")
    before = terminal.sees("idle: it stays open")
    terminal.type("/thinking", "Enter")
    terminal.sees("the model's thoughts are shown")
    terminal.type("And?", "Enter")

    terminal.sees("What a question.")
    assert "What a question." not in before
    terminal.type("/quit", "Enter")
    terminal.sees("exit 0")


def test_a_reply_that_breaks_off_is_taken_away_and_asked_for_again(shell, terminal):
    shell.agent(BREAKS_OFF)
    terminal.command(*RUN)
    terminal.sees("I was about")

    terminal.sees("the reply broke off; what had come of it is not recorded")
    seen = terminal.sees("exit 0")
    assert "retry 1/3" in seen
    assert "I was about" not in seen
    assert "Here I am." in seen


def test_tail_shows_the_reply_of_another_process_and_that_the_process_died(shell, terminal):
    first = SPEAKS.replace("delay_seconds = 1.5", "delay_seconds = 4\nturn = 1\nattempt = 1")
    shell.agent(f"{first}{SOON}turn = 1\n")
    process = shell.start(*RUN)
    shell.wait_for("one", "ModelStarted")
    terminal.command("tail", "-f", "one")
    terminal.sees("script.toml · ")
    terminal.sees("Some bold words")

    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    shell.start("resume", "one", "--inline")

    terminal.sees("the reply broke off; what had come of it is not recorded")
    terminal.sees("SessionTakenOver")
    seen = terminal.sees("exit 0")
    assert "Some bold words. And many more words" in seen
    wait_until(lambda: "script.toml · " not in terminal.screen)


TELLS = """
from pathlib import Path

from cueline import ToolContext, tool


@tool(read_only=True)
def convert(context: ToolContext) -> str:
    \"\"\"Convert files.\"\"\"
    context.progress(0.4, "half of the files")
    while not Path("go").exists():
        pass
    return "converted"
"""


@needs_tmux
def test_run_shows_how_far_a_call_is_while_it_runs(shell, tmux):
    (shell.folder / "ours.py").write_text(TELLS.replace('"go"', repr(str(shell.folder / "go"))))
    script = 'reply = [{ calls = [{ name = "convert" }] }, { text = "Done." }]\n'
    shell.agent(script, tools=("ours.py:convert",))
    tmux.command(*RUN)

    tmux.sees("convert · 40% half of the files · ")
    assert "ToolReturned" not in shell.types("one")
    (shell.folder / "go").touch()

    assert "half of the files" not in tmux.sees("exit 0")
    assert b"half of the files" not in shell.log.read_bytes()
