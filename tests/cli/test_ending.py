"""How somebody who looks at a session that rests is told to go on."""

import pytest

from cueline.cli.ending import way_on
from cueline.cli.option import DEFAULT_LOG
from cueline.events.session import SessionWaiting
from tests.deciders.session_budget_example import asked


def told(**waits):
    spent = SessionWaiting(kind="budget", why="exhausted: no more", exhausted=True, **waits)
    return [
        line.strip()
        for line in way_on(asked().when(spent).state, "one", DEFAULT_LOG, "cueline resume one")
    ]


@pytest.mark.parametrize(
    ("limit", "whose", "raised"),
    [
        ("max_cost", "", "one --max-cost USD"),
        ("max_tokens", "session-default/root", "root --max-tokens N"),
        ("max_cost", "session-team/root", "team/root --max-cost USD"),
    ],
)
def test_a_session_without_room_is_told_whose_limit_to_raise(limit, whose, raised):
    why, more, resume = told(limit=limit, whose=whose)

    assert "paused: exhausted: no more; raise the limit, and it goes on" == why
    assert [f"cueline budget raise {raised}", "cueline resume one"] == [more, resume]


def test_where_the_limit_was_not_recorded_no_command_is_guessed():
    why, resume = told()

    assert "paused: exhausted: no more; go on with" == why
    assert "cueline resume one" == resume
