"""What a call asks of a person, at the prompt."""

from dataclasses import replace

import pytest

from cueline.console.prompt import Prompts
from cueline.events.input_request import InputRequest
from tests.console.test_prompt import Person
from tests.console.told import question

VALUES = {"answer": {"type": "string", "enum": ["red", "blue"]}}
ASKED = replace(
    question(),
    requests=(
        InputRequest(
            key="k", message="Which?", parameters={"type": "object", "properties": VALUES}
        ),
    ),
)


@pytest.fixture
def person():
    person = Person()
    assert isinstance(person.prompts, Prompts)
    person.prompts.ask(ASKED)
    return person


def test_the_box_shows_what_is_asked_and_how_to_answer(person):
    shown = person.out.getvalue()

    assert "Which?" in shown
    assert "answer: 1. red, 2. blue" in shown
    assert "type your answer" in shown
    assert person.prompts.label.startswith("Answer (")


@pytest.mark.parametrize("typed", ["blue", "2", "n", "y", "no idea"])
def test_any_text_is_the_answer(person, typed):
    person.enter(typed)

    (answered,) = person.answered
    assert ("grant", typed) == (answered.verdict, answered.result)


def test_an_empty_line_is_no_answer(person):
    person.enter("")

    assert [] == person.answered
    assert "type an answer, or /deny" in person.out.getvalue()


def test_a_refusal_is_a_command_with_a_reason(person):
    person.enter("/deny none of them")

    (answered,) = person.answered
    assert ("deny", "none of them") == (answered.verdict, answered.note)


def test_who_may_not_answer_may_refuse():
    person = Person()
    person.prompts.ask(replace(ASKED, barred="nobody may"))

    person.enter("blue")

    assert [] == person.answered
    assert "nobody may" in person.out.getvalue()
