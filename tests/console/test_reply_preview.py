"""A reply while it comes, at the bottom of a screen or line by line."""

from io import StringIO

import pytest
from rich.console import Console
from rich.text import Text

from cueline.client.live_text import TextDelta
from cueline.console.event_renderer import reply_lines
from cueline.console.reply_preview import BROKE_OFF, ReplyPreview
from cueline.console.screen import Screen
from cueline.events.message import TextBlock, ThinkingBlock
from cueline.events.session import ModelFailed, ModelReplied, ModelStarted, SessionTakenOver
from tests.session_example import NOW

DIM = "\x1b[2;3m"


@pytest.fixture
def screen():
    """A terminal of 40 by 12."""
    screen = Screen(StringIO())
    screen.console = Console(
        file=screen.console.file, force_terminal=True, color_system="standard", width=40, height=12
    )
    return screen


@pytest.fixture
def preview(screen):
    return ReplyPreview(screen, whole_past=False)


def piece(text, kind="text", attempt=1):
    return TextDelta(text, kind, "1.m", attempt)


def replied(*content, attempt=1):
    return ModelReplied(effect="1.m", attempt=attempt, content=content, stop_reason="end_turn")


def written(screen):
    """Return what was written, on one line and without escape codes."""
    return " ".join(Text.from_ansi(screen.console.file.getvalue()).plain.split())


def trimmed(preview):
    return [row.rstrip() for row in preview.rows()]


def test_nothing_comes_at_first(preview):
    assert [] == preview.rows()


def test_text_is_rendered_while_it_comes(preview):
    preview.add(piece("Some **bold"))
    before = trimmed(preview)
    preview.add(piece("** words"))

    assert ["Some **bold"] == before
    assert ["Some \x1b[1mbold\x1b[0m words"] == trimmed(preview)


def test_thoughts_are_dim_and_wrapped(preview):
    preview.add(piece("A thought that is too long for one row of this screen.", "thinking"))

    first, second = preview.rows()
    assert first.startswith(f"{DIM}A thought")
    assert second.startswith(f"{DIM}  ")


def test_thoughts_can_be_hidden_and_shown_again(preview):
    preview.add(piece("A secret thought", "thinking"))
    preview.toggle_thinking()
    hidden = preview.rows()
    preview.toggle_thinking()

    assert [f"{DIM}thinking …\x1b[0m"] == hidden
    assert [f"{DIM}A secret thought\x1b[0m"] == preview.rows()


def test_of_a_long_reply_the_end_is_shown(preview):
    preview.add(piece("\n\n".join(f"line {n}" for n in range(100))))

    rows = preview.rows()
    assert "…" == rows[0]
    assert "line 99" == rows[-1].rstrip()
    assert len(rows) == 6


def test_code_of_which_the_end_is_shown_is_code_still(preview):
    preview.add(piece("```\n" + "\n".join(f"**{n}**" for n in range(200))))

    assert "**199**" in preview.rows()[-1]


def test_nothing_in_a_piece_moves_the_cursor(preview):
    preview.add(piece("a\x1b[2Jb"))

    assert ["a\\x1b[2Jb"] == trimmed(preview)


def test_a_recorded_reply_is_not_previewed_any_more(preview, screen):
    preview.add(piece("Good"))
    preview.learn(replied(TextBlock(text="Good day.")))
    preview.add(piece(" day."))

    assert [] == preview.rows()
    assert "" == written(screen)


def test_a_reply_that_broke_off_is_taken_away_and_said(preview, screen):
    preview.add(piece("Good"))
    preview.learn(ModelFailed(effect="1.m", attempt=1, kind="network", message="away"))

    assert [] == preview.rows()
    assert BROKE_OFF.text == written(screen)


def test_a_failure_before_the_first_piece_broke_nothing_off(preview, screen):
    preview.learn(ModelFailed(effect="1.m", attempt=1, kind="network", message="away"))

    assert "" == written(screen)


def test_a_takeover_and_a_piece_of_another_attempt_end_the_reply_before(preview, screen):
    preview.add(piece("Good"))
    preview.add(piece("Well", attempt=2))
    preview.learn(SessionTakenOver(epoch=2, at=NOW))
    preview.add(piece("Hm", attempt=3))

    assert ["Hm"] == trimmed(preview)
    assert 2 == written(screen).count("broke")


@pytest.fixture
def plain():
    return ReplyPreview(Screen(StringIO(), plain=True), whole_past=False)


def lines_of(plain, *pieces):
    for each in pieces:
        plain.add(piece(each))
        plain.show_lines()
    return plain._screen.console.file.getvalue()


def test_without_a_terminal_each_line_is_written_when_it_is_whole(plain):
    assert "One\n" == lines_of(plain, "On", "e\nTw")
    assert "One\nTwo\n" == lines_of(plain, "o\n\n\n")
    assert "One\nTwo\n\n\nThree\n" == lines_of(plain, "Three\n")


# The lines are those of the record, so that none is there twice.
@pytest.mark.parametrize("text", ["\n\nOne\n\nTwo\n", "One\nTwo", "One", "a\tb\r\nc"])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_only_the_rest_of_a_recorded_reply_is_written(plain, text, size):
    out = lines_of(plain, *(text[at : at + size] for at in range(0, len(text), size)))
    lines = list(reply_lines(replied(TextBlock(text=text)), thinking=False))

    rest = plain.not_shown(lines)

    assert [line.text for line in lines] == [*out.splitlines(), *(line.text for line in rest)]


def test_a_record_that_differs_is_written_whole(plain):
    lines_of(plain, "Oen\nTwo")
    lines = list(reply_lines(replied(TextBlock(text="One\nTwo")), thinking=False))

    assert lines == plain.not_shown(lines)


def test_thoughts_are_lines_of_their_own_if_they_are_wanted():
    fact = replied(ThinkingBlock(text="Hm."), TextBlock(text="Yes."))

    assert ["thinking", "agent"] == [line.tone for line in reply_lines(fact, thinking=True)]
    assert ["agent"] == [line.tone for line in reply_lines(fact, thinking=False)]


def test_pieces_wait_for_what_came_before_their_call(screen):
    preview = ReplyPreview(screen)
    preview.learn(ModelStarted(effect="1.m", attempt=1))
    preview.add(piece("One.\n"))
    preview.add(TextDelta("Two.\n", "text", "2.m", 1))
    before = trimmed(preview)
    preview.learn(replied(TextBlock(text="One.\n")))
    between = trimmed(preview)
    preview.learn(ModelStarted(effect="2.m", attempt=1))

    assert (["One."], [], ["Two."]) == (before, between, trimmed(preview))
    assert written(screen) == ""


def test_pieces_of_a_start_that_is_not_in_the_shown_past_are_shown(screen):
    preview = ReplyPreview(screen, whole_past=False)
    preview.add(piece("One."))

    assert trimmed(preview) == ["One."]
