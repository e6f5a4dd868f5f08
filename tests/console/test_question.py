"""The box in which a person is asked."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from cueline.console.question import box, time_left
from tests.console.told import question


def test_the_box_shows_action_path_and_session():
    """000-053."""
    page = Console(file=io.StringIO(), width=80)
    page.print(box(question()))

    told = page.file.getvalue()
    assert "⚠️  APPROVAL REQUIRED" in told
    assert "│ Action: delete_file" in told
    assert "│ Path: packages/core/src/important.ts" in told
    assert "│ Session: one" in told


def test_a_box_cannot_be_forged_by_an_argument():
    page = Console(file=io.StringIO(), width=80)
    page.print(box(question(path="a\x1b[2K\nSession: two")))

    assert "\x1b" not in page.file.getvalue()
    assert "│   Session: two" in page.file.getvalue()


def test_the_box_says_what_always_would_cover():
    page = Console(file=io.StringIO(), width=90)
    page.print(box(replace(question(), covers="write_file at notes/a.md")))

    assert "always: write_file at notes/a.md" in page.file.getvalue()


def test_the_box_of_a_cut_call_asks_to_see_it_first():
    page = Console(file=io.StringIO(), width=90)
    page.print(box(question(command="x" * 401)))

    assert "d show all of it, then y allow" in page.file.getvalue()


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(300, "5m"), (299, "4m 59s"), (60, "1m"), (9, "9s"), (-1, "0s"), (86_400, "24h 0m")],
)
def test_the_time_left_is_told_shortly(seconds, told):
    assert told == time_left(seconds)


def test_the_box_shows_why_it_is_asked_and_what_it_would_change():
    """000-025, 004-027."""
    page = Console(file=io.StringIO(), width=90)
    asked = replace(
        question(), rule="cost", cost="about $0.75", preview="--- a/x\n+++ b/x\n-old\n+new"
    )
    page.print(box(asked))

    told = page.file.getvalue()
    assert "Rule: cost, about $0.75" in told
    assert "+new" in told
    assert "e change it" in told


def test_the_box_tells_how_much_of_an_argument_it_does_not_show():
    """I9: what comes after many blanks would run, too."""
    page = Console(file=io.StringIO(), width=80)
    page.print(box(question(command="ls" + " " * 500 + "; rm -r ~")))

    assert "… 111 more characters" in page.file.getvalue()
