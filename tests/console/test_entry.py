"""The line for messages, without a terminal."""

import io

import pytest

from cueline.console.entry import Entry
from cueline.console.screen import Screen


class Typist:
    """Somebody who types, and what came of it."""

    def __init__(self):
        self.out = io.StringIO()
        self.said = []
        self.done = []
        commands = {"/quit": lambda: self.done.append("quit")}
        self.entry = Entry(
            Screen(self.out), self._say, commands, lambda name: self.done.append(f"model {name}")
        )
        self.entry.offer()

    def _say(self, lane, text):
        self.said.append((lane, text))


@pytest.fixture
def typist():
    return Typist()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("hello", [("note", "hello")]),
        ("one\ntwo", [("note", "one\ntwo")]),
        ("/note hello", [("note", "hello")]),
        ("/steer stop it", [("steer", "stop it")]),
        ("/followup and then", [("followup", "and then")]),
        ("/etc/hosts is old", [("note", "/etc/hosts is old")]),
        (" /tmp is full", [("note", "/tmp is full")]),
        (" ", []),
        ("/steer ", []),
    ],
)
def test_what_is_typed_is_said(typist, line, said):
    assert typist.entry.send(line)

    assert said == typist.said


def test_a_command_that_does_not_exist_is_kept_to_be_mended(typist):
    assert not typist.entry.send("/stear left")

    assert [] == typist.said
    assert "/stear is none of /note, /steer, /followup, /help, /quit" in typist.out.getvalue()


def test_a_model_that_is_named_is_taken(typist):
    assert typist.entry.send("/model scripted/b.toml")

    assert (["model scripted/b.toml"], []) == (typist.done, typist.said)


def test_a_command_is_done_and_said_to_nobody(typist):
    assert typist.entry.send("/quit")

    assert (["quit"], []) == (typist.done, typist.said)


def test_help_names_every_command(typist):
    typist.entry.send("/help")

    told = typist.out.getvalue()
    for command in ("/note", "/steer", "/followup", "/cost", "/model", "/pause", "/quit"):
        assert f"  {command} " in told
