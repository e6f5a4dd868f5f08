"""The line for messages, without a terminal."""

import io

import pytest

from cueline.console.entry import Entry, Keys
from cueline.console.screen import Screen


class Typist:
    """Somebody who types, and what came of it."""

    def __init__(self):
        self.out = io.StringIO()
        self.said = []
        self.ended = False
        self.entry = Entry(Screen(self.out), self._say, self._end)
        self.entry.offer()

    def _say(self, lane, text):
        self.said.append((lane, text))

    def _end(self):
        self.ended = True

    def press(self, keys):
        for key in keys:
            self.entry.press(key)


@pytest.fixture
def typist():
    return Typist()


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("hello\r", [("note", "hello")]),
        ("/note hello\n", [("note", "hello")]),
        ("/steer stop it\r", [("steer", "stop it")]),
        ("/followup and then\r", [("followup", "and then")]),
        ("/etc/hosts is old\r", [("note", "/etc/hosts is old")]),
        (" /tmp is full\r", [("note", "/tmp is full")]),
        ("hallo\x7f\x7f\x7fllo there\x17you\r", [("note", "hallo you")]),
        ("nonsense\x15sense\r", [("note", "sense")]),
        ("\r", []),
        ("/steer \r", []),
        ("one\rtwo\r", [("note", "one"), ("note", "two")]),
    ],
)
def test_what_is_typed_is_said(typist, keys, said):
    typist.press(keys)

    assert said == typist.said


def test_a_lane_that_does_not_exist_is_kept_to_be_mended(typist):
    typist.press("/stear left\r")

    assert [] == typist.said
    assert "/stear is none of /note, /steer, /followup" in typist.out.getvalue()
    assert typist.entry.begun


def test_ctrl_d_ends_on_an_empty_line_only(typist):
    typist.press("a\x04")
    assert not typist.ended

    typist.press("\x7f\x04")
    assert typist.ended
    assert not typist.entry.open


def test_the_end_of_a_long_line_is_seen():
    entry = Typist().entry
    for letter in "a" * 500 + "z":
        entry.press(letter)

    assert entry.line.startswith("> …a")
    assert entry.line.endswith("az")
    assert len(entry.line) < 80


def test_a_letter_in_two_halves_and_arrows_are_understood():
    keys = Keys()

    assert "aé" == keys.of(b"a\xc3") + keys.of(b"\xa9")
    assert "ab" == keys.of(b"a\x1b[A\x1b[1;5C\x1bOHb\x1b")
