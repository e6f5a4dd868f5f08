"""The question to a person, without a terminal."""

import io
from dataclasses import replace

import pytest

from cueline.console.entry import Entry
from cueline.console.prompt import Prompts
from cueline.console.screen import Screen
from cueline.events.event_text import RESOLUTIONS
from tests.console.told import NOW, question


class Person:
    """Somebody at a keyboard, and what came of their answers."""

    def __init__(self):
        self.out = io.StringIO()
        self.given = []
        self.answered = []
        self.said = []
        screen = Screen(self.out)
        self.entry = Entry(screen, lambda lane, text: self.said.append(text), {}, print)
        self.prompts = Prompts(screen, lambda: NOW, self._answer, self.entry, self._edit)

    def _answer(self, answered):
        self.given.append((answered.question.approval, answered.verdict))
        self.answered.append(answered)

    def _edit(self, asked, change):
        if change == "nonsense":
            return
        self.prompts.change(replace(asked, arguments={"path": change}, edited=True))

    def enter(self, *lines):
        for line in lines:
            self.prompts.enter(line)


@pytest.fixture
def person():
    return Person()


def test_how_many_questions_wait_behind_this_one_is_told(person):
    for name in ("one.1.0.1", "one.1.1.1", "one.1.2.1"):
        person.prompts.ask(replace(question(), approval=name))

    assert "Approve? [y/N] (timeout: 5m) (2 more after this)" == person.prompts.label
    person.enter("y")
    assert "Approve? [y/N] (timeout: 5m) (1 more after this)" == person.prompts.label


@pytest.mark.parametrize(
    ("typed", "verdict"),
    [("y", "grant"), ("YES", "grant"), (" n ", "deny"), ("No", "deny"), ("", "deny")],
)
def test_only_yes_is_yes(person, typed, verdict):
    """000-053: the default is no."""
    person.prompts.ask(question())

    person.enter(typed)

    assert [("one.1.0.1", verdict)] == person.given
    assert {} == person.prompts._waiting


@pytest.mark.parametrize("typed", ["maybe", "yx", "y please", "nope", "always so"])
def test_a_slip_is_asked_again(person, typed):
    person.prompts.ask(question())

    person.enter(typed)

    assert [] == person.given
    assert f"{typed} is no answer: y, n, a, e, d or ?" in person.out.getvalue()
    assert person.prompts.label.startswith("Approve?")


def test_a_denial_says_why(person):
    person.prompts.ask(question())

    person.enter("n because the list is used")

    (answered,) = person.answered
    assert ("deny", "because the list is used") == (answered.verdict, answered.note)


def test_a_question_mark_explains_and_answers_nothing(person):
    person.prompts.ask(question())

    person.enter("?")

    assert [] == person.given
    assert "n TEXT denies it, and tells the agent why" in person.out.getvalue()
    assert "cueline approve one.1.0.1" in person.out.getvalue()


def test_what_is_cut_in_the_box_can_be_shown_whole(person):
    change = "".join(f"+line {number}\n" for number in range(100))
    person.prompts.ask(replace(question(content="x" * 900), preview=change))
    assert "+line 99" not in person.out.getvalue()

    person.enter("d")

    assert [] == person.given
    assert "+line 99" in person.out.getvalue()
    assert "x" * 900 in person.out.getvalue().replace("\n", "")


CUT = [
    question(command="ls" + " " * 400 + "; rm -r ~"),
    question(content="a line\n" * 13),
    replace(question(), preview="+a line\n" * 25),
]


@pytest.mark.parametrize("typed", ["y", "a"])
@pytest.mark.parametrize("asked", CUT, ids=["command", "content", "change"])
def test_a_yes_counts_only_after_all_that_would_run_was_shown(person, asked, typed):
    person.prompts.ask(asked)

    person.enter(typed)
    before = list(person.given)
    person.enter("d", typed)

    assert [] == before
    assert "type d to see all of it" in person.out.getvalue()
    assert [("one.1.0.1", "grant")] == person.given


def test_a_cut_call_in_doubt_runs_again_only_after_it_was_shown(person):
    person.prompts.ask(question(happened=True, command="x" * 401))

    person.enter("r")
    before = list(person.given)
    person.enter("d", "r")

    assert [] == before
    assert ["run_again"] == [each.resolution for each in person.answered]


def test_a_cut_call_is_denied_without_reading_it(person):
    person.prompts.ask(CUT[0])

    person.enter("n")

    assert [("one.1.0.1", "deny")] == person.given


def test_an_edited_call_that_is_cut_has_to_be_shown_again(person):
    person.prompts.ask(CUT[0])

    person.enter("d", "e", "b" * 401, "y")

    assert [] == person.given


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("h", ("grant", "happened", "")),
        ("h no. 8, Sent", ("grant", "happened", "no. 8, Sent")),
        ("r", ("grant", "run_again", "")),
        ("n", ("deny", "do_not_run", "")),
    ],
)
def test_what_became_of_a_call_has_three_answers_and_none_is_guessed(person, typed, said):
    person.prompts.ask(question(happened=True))

    person.enter("", "what?", "y", "r now")
    assert [] == person.given

    person.enter(typed)
    (answered,) = person.answered
    assert said == (answered.verdict, answered.resolution, answered.result)


def test_the_box_shows_what_follows_from_each_answer(person):
    person.prompts.ask(question(happened=True))

    shown = " ".join(person.out.getvalue().replace("│", " ").split())
    for key, then in zip(("h", "r", "n"), RESOLUTIONS.values(), strict=True):
        assert f"{key}: {then}" in shown


def test_a_call_may_be_changed_before_it_is_allowed(person):
    person.prompts.ask(question())

    person.enter("e", "other.ts")
    assert [] == person.given
    assert "other.ts" in person.out.getvalue()
    person.enter("y")

    (answered,) = person.answered
    assert ("grant", True, {"path": "other.ts"}) == (
        answered.verdict,
        answered.question.edited,
        answered.question.arguments,
    )


def test_a_change_that_does_not_fit_may_be_left(person):
    person.prompts.ask(question())

    person.enter("e", "nonsense", "", "y")

    assert [False] == [answered.question.edited for answered in person.answered]


def test_a_change_that_was_left_before_it_was_looked_at_is_not_made(person):
    """I9: what the person saw last is what runs."""
    asked = question()
    person.prompts.ask(asked)

    person.enter("e", "nonsense", "")
    person.prompts.change(replace(asked, arguments={"path": "late"}, edited=True))
    person.enter("y")

    assert [False] == [answered.question.edited for answered in person.answered]
    assert "late" not in person.out.getvalue()


def test_a_call_may_be_allowed_for_good(person):
    person.prompts.ask(question())

    person.enter("a")

    assert [("grant", True)] == [(each.verdict, each.always) for each in person.answered]


def test_whether_something_happened_is_neither_changed_nor_allowed_for_good(person):
    person.prompts.ask(question(happened=True))

    person.enter("e", "a")

    assert [] == person.answered


def test_who_may_not_allow_it_can_only_say_no_and_not_by_a_slip(person):
    """C17."""
    asked = replace(question(), barred="ann asked for the session, and may not allow it")
    person.prompts.ask(asked)

    person.enter("y", "", "a", "e")
    assert [] == person.answered
    assert "y allow" not in person.out.getvalue()
    assert "may not allow it; n denies it" in person.out.getvalue()

    person.enter("n")
    assert [("one.1.0.1", "deny")] == person.given


@pytest.mark.parametrize("key", ["a", "e"])
def test_who_is_one_of_several_can_neither_change_nor_extend_it(person, key):
    person.prompts.ask(replace(question(), votes=2, fixed="it takes 2 people, so one alone"))

    person.enter(key)
    assert [] == person.answered
    told = person.out.getvalue()
    assert "e change it" not in told
    assert "it takes 2 people, so one alone" in told

    person.enter("y")
    assert [("grant", False)] == [(each.verdict, each.always) for each in person.answered]


def test_questions_are_asked_in_their_order(person):
    person.prompts.ask(question("one.1.0.1"))
    person.prompts.ask(question("one.1.1.1"))

    person.enter("y", "n")

    assert [("one.1.0.1", "grant"), ("one.1.1.1", "deny")] == person.given


def test_what_is_typed_is_for_the_question_that_is_seen(person):
    anew = []
    person.prompts.on_other = lambda: anew.append(person.prompts.label)
    person.prompts.ask(question("one.1.0.1"))
    person.prompts.ask(question("one.1.1.1"))
    person.prompts.typed = "y"

    person.prompts.withdraw("one.1.0.1")

    assert ("", 2) == (person.prompts.typed, len(anew))
    person.enter("n")
    assert [("one.1.1.1", "deny")] == person.given


def test_keys_without_a_question_do_nothing(person):
    person.enter("y")

    assert [] == person.given


def test_keys_without_a_question_are_for_the_message(person):
    person.entry.offer()

    person.enter("hello")

    assert ["hello"] == person.said


def test_a_question_has_the_keyboard(person):
    person.entry.offer()
    person.prompts.ask(question())

    person.enter("y", "hello")

    assert [("one.1.0.1", "grant")] == person.given
    assert ["hello"] == person.said


def test_a_message_that_was_begun_is_no_answer_to_a_question(person):
    person.entry.offer()
    person.prompts.typed = "ye"
    person.prompts.ask(question())
    assert ">" == person.prompts.label

    person.enter("yes")
    assert ([], ["yes"]) == (person.given, person.said)

    person.enter("y")
    assert [("one.1.0.1", "grant")] == person.given


def test_a_command_may_be_given_instead_of_an_answer(person):
    person.prompts.ask(question())

    person.enter("/help")

    assert [] == person.given
    assert "/pause" in person.out.getvalue()
