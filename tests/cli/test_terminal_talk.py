"""A session that is kept open, talked to in a real terminal."""

import pytest

from tests.cli.terminal import RUN, needs_tmux

OPEN = (*RUN, "--open")


@pytest.fixture
def talker(shell):
    shell.agent("".join(f'[[reply]]\ntext = "Reply {n}."\n' for n in (1, 2, 3)))


@needs_tmux
def test_who_keeps_a_session_open_types_the_next_message(shell, tmux, talker):
    tmux.command(*OPEN)
    tmux.sees("idle: it stays open")

    tmux.type("And Éva?", "Enter")
    tmux.sees("Reply 2.")
    tmux.type("C-d")

    seen = tmux.sees("exit 0")
    assert "you: And Éva?" in seen
    assert "session one: idle · 2 turns" in seen
    assert "> " not in seen.replace("$ ", "")
    tmux.type("echo heard", "Enter")
    tmux.sees("\nheard\n")


@needs_tmux
def test_the_terminal_is_left_as_it_was(shell, tmux, talker):
    """It is one open file with the screen, and with whatever else runs in it."""
    mode = "python3 -c 'import os; print([os.get_blocking(n) for n in (0, 1, 2)])'"
    tmux.command(*OPEN)
    tmux.sees("idle: it stays open")

    tmux.type("C-d")
    tmux.sees("exit 0")

    tmux.type(mode, "Enter")
    seen = tmux.sees("[True, True, True]")
    assert "NDELAY" not in seen


def test_a_message_chooses_when_it_counts(shell, terminal, talker):
    terminal.command(*OPEN)
    terminal.sees("idle: it stays open")

    terminal.type("/sheer hurry", "Enter")
    terminal.sees("/sheer is none of /note, /steer, /followup")
    terminal.type("C-u", "/steer hurry", "Enter")

    terminal.sees("you (steer): hurry")


def test_ctrl_c_pauses_a_session_that_waits_for_a_message(shell, terminal, talker):
    terminal.command(*OPEN)
    terminal.sees("idle: it stays open")

    terminal.type("C-c")

    assert "cueline resume one" in terminal.sees("exit 3")


def test_who_resumes_an_open_session_goes_on_talking(shell, terminal, talker):
    shell("run", "Tidy", "--agent", "agent.toml", "--inline", "--id", "one", "--open")
    terminal.command("resume", "one", "--inline")
    terminal.sees("type a message and Enter")

    terminal.type("More", "Enter")

    terminal.sees("Reply 2.")
    terminal.type("C-d")
    terminal.sees("exit 0")


def test_a_message_may_have_several_lines_and_come_back(shell, terminal, talker):
    terminal.command(*OPEN)
    terminal.sees("idle: it stays open")

    terminal.type("one", "M-Enter", "two", "Enter")
    terminal.sees("Reply 2.")
    assert "you: one\n     two" in terminal.screen
    terminal.type("Up", "three", "Enter")

    terminal.sees("     twothree")


def test_a_command_is_not_said_to_the_agent(shell, terminal, talker):
    terminal.command(*OPEN)
    terminal.sees("idle: it stays open")

    terminal.type("/model", "Enter")
    terminal.sees("scripted script.toml; /model PROVIDER/NAME changes it")
    terminal.type("/cost", "Enter")
    terminal.sees("session one: idle · 1 turn")
    terminal.type("/quit", "Enter")

    seen = terminal.sees("exit 0")
    assert "you: /" not in seen
