"""The question to a person, without a terminal."""

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from cueline.console.entry import Entry
from cueline.console.prompt import Prompts
from cueline.console.question import Question, box, time_left
from cueline.console.screen import Screen
from cueline.deciders.approval import RESOLUTIONS

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def question(approval="one.1.0.1", *, happened=False, **arguments):
    return Question(
        approval=approval,
        digest="d",
        session="one",
        tool="delete_file",
        arguments=arguments or {"path": "packages/core/src/important.ts"},
        deadline_at=NOW + timedelta(seconds=300),
        resolutions=RESOLUTIONS if happened else {},
    )


class Person:
    """Somebody at a keyboard, and what came of their answers."""

    def __init__(self):
        self.out = io.StringIO()
        self.given = []
        self.answered = []
        self.said = []
        screen = Screen(self.out)
        self.entry = Entry(screen, lambda lane, text: self.said.append(text), lambda: None)
        self.prompts = Prompts(screen, lambda: NOW, self._answer, self.entry, self._edit)

    def _answer(self, answered):
        self.given.append((answered.question.approval, answered.verdict))
        self.answered.append(answered)

    def _edit(self, asked, change):
        if change == "nonsense":
            return
        self.prompts.change(replace(asked, arguments={"path": change}, edited=True))

    async def press(self, keys):
        for key in keys:
            self.prompts._press(key)


@pytest.fixture
def person():
    return Person()


class Terminal(io.StringIO):
    """Somewhere that a line can be written over."""

    def isatty(self):
        return True


def test_how_many_questions_wait_behind_this_one_is_told():
    terminal = Terminal()
    screen = Screen(terminal)
    prompts = Prompts(screen, lambda: NOW, None, Entry(screen, None, None), None)

    for name in ("one.1.0.1", "one.1.1.1", "one.1.2.1"):
        prompts.ask(replace(question(), approval=name))

    told = terminal.getvalue()
    assert "(timeout: 5m) (1 more after this)" in told
    assert "(timeout: 5m) (2 more after this)" in told


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


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(300, "5m"), (299, "4m 59s"), (60, "1m"), (9, "9s"), (-1, "0s"), (86_400, "24h 0m")],
)
def test_the_time_left_is_told_shortly(seconds, told):
    assert told == time_left(seconds)


@pytest.mark.parametrize(
    ("keys", "verdict"),
    [
        ("y\r", "grant"),
        ("YES\n", "grant"),
        ("n\r", "deny"),
        ("\r", "deny"),
        ("maybe\r", "deny"),
        ("nx\x7f\x7fy\r", "grant"),
    ],
)
async def test_only_yes_is_yes(person, keys, verdict):
    """000-053: the default is no."""
    person.prompts.ask(question())

    await person.press(keys)

    assert [("one.1.0.1", verdict)] == person.given
    assert {} == person.prompts._waiting


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("h\r", ("grant", "happened", "")),
        ("h no. 8, Sent\r", ("grant", "happened", "no. 8, Sent")),
        ("r\r", ("grant", "run_again", "")),
        ("n\r", ("deny", "do_not_run", "")),
    ],
)
async def test_what_became_of_a_call_has_three_answers_and_none_is_guessed(person, keys, said):
    person.prompts.ask(question(happened=True))

    await person.press("\rwhat?\ry\rr now\r")
    assert [] == person.given

    await person.press(keys)
    (answered,) = person.answered
    assert said == (answered.verdict, answered.resolution, answered.result)


async def test_the_box_shows_what_follows_from_each_answer(person):
    person.prompts.ask(question(happened=True))

    shown = " ".join(person.out.getvalue().replace("│", " ").split())
    for key, then in zip(("h", "r", "n"), RESOLUTIONS.values(), strict=True):
        assert f"{key}: {then}" in shown


async def test_a_call_may_be_changed_before_it_is_allowed(person):
    person.prompts.ask(question())

    await person.press("e\rother.ts\r")
    assert [] == person.given
    assert "other.ts" in person.out.getvalue()
    await person.press("y\r")

    (answered,) = person.answered
    assert ("grant", True, {"path": "other.ts"}) == (
        answered.verdict,
        answered.question.edited,
        answered.question.arguments,
    )


async def test_a_change_that_does_not_fit_may_be_left(person):
    person.prompts.ask(question())

    await person.press("e\rnonsense\r\ry\r")

    assert [False] == [answered.question.edited for answered in person.answered]


async def test_a_change_that_was_left_before_it_was_looked_at_is_not_made(person):
    """I9: what the person saw last is what runs."""
    asked = question()
    person.prompts.ask(asked)

    await person.press("e\rnonsense\r\ry")
    person.prompts.change(replace(asked, arguments={"path": "late"}, edited=True))
    await person.press("\r")

    assert [False] == [answered.question.edited for answered in person.answered]
    assert "late" not in person.out.getvalue()


async def test_a_call_may_be_allowed_for_good(person):
    person.prompts.ask(question())

    await person.press("a\r")

    assert [("grant", True)] == [(each.verdict, each.always) for each in person.answered]


async def test_whether_something_happened_is_neither_changed_nor_allowed_for_good(person):
    person.prompts.ask(question(happened=True))

    await person.press("e\ra\r")

    assert [] == person.answered


async def test_who_may_not_allow_it_can_only_say_no_and_not_by_a_slip(person):
    """C17."""
    asked = replace(question(), barred="ann asked for the session, and may not allow it")
    person.prompts.ask(asked)

    await person.press("y\r\ra\re\r")
    assert [] == person.answered
    assert "y allows it" not in person.out.getvalue()
    assert "may not allow it; n denies it" in person.out.getvalue()

    await person.press("n\r")
    assert [("one.1.0.1", "deny")] == person.given


@pytest.mark.parametrize("key", ["a", "e"])
async def test_who_is_one_of_several_can_neither_change_nor_extend_it(person, key):
    person.prompts.ask(replace(question(), votes=2, fixed="it takes 2 people, so one alone"))

    await person.press(f"{key}\r")
    assert [] == person.answered
    told = person.out.getvalue()
    assert "e changes it" not in told
    assert "it takes 2 people, so one alone" in told

    await person.press("y\r")
    assert [("grant", False)] == [(each.verdict, each.always) for each in person.answered]


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
    assert "e changes it; anything else denies it" in told


def test_the_box_tells_how_much_of_an_argument_it_does_not_show():
    """I9: what comes after many blanks would run, too."""
    page = Console(file=io.StringIO(), width=80)
    page.print(box(question(command="ls" + " " * 500 + "; rm -r ~")))

    assert "… 111 more characters" in page.file.getvalue()


async def test_questions_are_asked_in_their_order(person):
    person.prompts.ask(question("one.1.0.1"))
    person.prompts.ask(question("one.1.1.1"))

    await person.press("y\rn\r")

    assert [("one.1.0.1", "grant"), ("one.1.1.1", "deny")] == person.given


@pytest.mark.parametrize(
    ("elsewhere", "given"),
    [("one.1.0.1", ("one.1.1.1", "deny")), ("one.1.1.1", ("one.1.0.1", "grant"))],
)
async def test_what_is_typed_is_for_its_question_whichever_is_answered_elsewhere(
    person, elsewhere, given
):
    person.prompts.ask(question("one.1.0.1"))
    person.prompts.ask(question("one.1.1.1"))
    await person.press("y")

    person.prompts.withdraw(elsewhere)
    await person.press("\r")

    assert [given] == person.given


async def test_keys_without_a_question_do_nothing(person):
    await person.press("y\r")

    assert [] == person.given


async def test_keys_without_a_question_are_for_the_message(person):
    person.entry.offer()

    await person.press("hello\r")

    assert ["hello"] == person.said


async def test_a_question_has_the_keyboard(person):
    person.entry.offer()
    person.prompts.ask(question())

    await person.press("y\rhello\r")

    assert [("one.1.0.1", "grant")] == person.given
    assert ["hello"] == person.said


async def test_a_message_that_was_begun_is_no_answer_to_a_question(person):
    person.entry.offer()
    await person.press("ye")
    person.prompts.ask(question())

    await person.press("s\r")
    assert ([], ["yes"]) == (person.given, person.said)

    await person.press("y\r")
    assert [("one.1.0.1", "grant")] == person.given
