"""What a terminal shows as it came, and what it folds."""

import io
from types import SimpleNamespace

import pytest
from rich.text import Text

from cueline.console.event_renderer import EventRenderer
from cueline.console.screen import Screen
from cueline.console.text import Line
from cueline.events.session import ToolReturned

LISTED = "a very long line · which goes on with other words · and a third"


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


def test_a_long_line_is_wrapped_at_words_beneath_its_indent(terminal):
    rows = ["    a very long line · which", "    goes on with other words ·", "    and a third"]

    assert rows == shown(terminal, Line("output", f"    {LISTED}"))


def test_a_command_stays_in_one_piece(terminal):
    command = f"  cueline resume one --log {'a/' * 20}log.db"

    assert [command] == shown(terminal, Line("note", command))


def test_a_reply_is_rendered_as_markdown(terminal):
    assert ["Hello there", "", " • one"] == [
        row.rstrip()
        for row in shown(
            terminal, Line("agent", "Hello **there**"), Line("agent", ""), Line("agent", "- one")
        )
    ]


@pytest.mark.parametrize("reply", ["List<String> it is", "<b>so</b>"])
def test_a_reply_of_which_markdown_would_hide_a_part_is_shown_as_it_is(terminal, reply):
    assert [reply] == shown(terminal, Line("agent", reply))


def test_a_difference_has_its_colours(terminal):
    rows = ["    @@ -1 +1 @@", "    -old", "    +new"]
    Screen(terminal).show([Line("output", row) for row in rows])

    cyan, red, green = terminal.getvalue().splitlines()
    assert ("\x1b[36m" in cyan, "\x1b[31m" in red, "\x1b[32m" in green) == (True, True, True)


@pytest.mark.parametrize("off", ["plain", "NO_COLOR"])
def test_colours_can_be_left_out(terminal, monkeypatch, off):
    monkeypatch.setenv(off, "1")
    Screen(terminal, plain=off == "plain").show([Line("bad", "+new"), Line("agent", "a `b`")])

    assert "\x1b[3" not in terminal.getvalue()


def test_plain_text_is_neither_wrapped_nor_rendered(terminal):
    Screen(terminal, plain=True).show([Line("agent", f"**{LISTED}**")])

    assert f"**{LISTED}**\n" == terminal.getvalue()


def test_whatever_is_shown_moves_no_cursor(terminal):
    assert ["\\x1b[2J"] == shown(terminal, Line("bad", "\x1b[2J"))


def test_a_file_is_no_screen():
    page = io.StringIO()

    assert [LISTED] == shown(page, Line("note", LISTED))


def test_the_output_of_a_tool_is_what_others_wrote():
    returned = ToolReturned(effect="1.0", attempt=1, output=LISTED)

    _, output = EventRenderer().render(
        SimpleNamespace(stream="session-default/one", recorded_at=None), returned
    )

    assert Line("output", f"    {LISTED}") == output
