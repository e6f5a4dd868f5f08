"""What a terminal shows as it came, and what it folds."""

import io
from types import SimpleNamespace

import pytest
from rich.text import Text

from cueline.console.screen import Screen
from cueline.console.telling import Line, Telling
from cueline.events.session import ToolReturned

LISTED = "a very long name · another very long name · a third"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    return Terminal()


def shown(terminal, *lines):
    Screen(terminal).show(lines)
    return [Text.from_ansi(row).plain for row in terminal.getvalue().splitlines()]


def test_a_list_of_facts_that_is_too_wide_is_folded(terminal):
    rows = ["a very long name", "    another very long name", "    a third"]

    assert rows == shown(terminal, Line("note", LISTED))


@pytest.mark.parametrize("tone", ["said", "agent", "output", "doing"])
def test_what_others_wrote_stays_as_it_is(terminal, tone):
    assert [LISTED] == shown(terminal, Line(tone, LISTED))


def test_a_dumb_terminal_is_written_over_in_plain_text(terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    screen = Screen(terminal)

    screen.keep_last("Approve?")
    screen.keep_last("")

    assert "\x1b" not in terminal.getvalue()
    assert terminal.getvalue().startswith("Approve?\r        ")
    assert terminal.getvalue().endswith(" \r")


def test_whatever_is_shown_moves_no_cursor(terminal):
    assert ["\\x1b[2J"] == shown(terminal, Line("bad", "\x1b[2J"))


def test_a_file_is_no_screen():
    page = io.StringIO()

    assert [LISTED] == shown(page, Line("note", LISTED))


def test_the_output_of_a_tool_is_what_others_wrote():
    returned = ToolReturned(effect="1.0", attempt=1, output=LISTED)

    _, output = Telling().tell(
        SimpleNamespace(stream="session-default/one", recorded_at=None), returned
    )

    assert Line("output", f"    {LISTED}") == output
