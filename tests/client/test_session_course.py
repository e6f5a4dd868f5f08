"""The turns of a session, by which it is run again."""

from cueline.client.session_course import course_of
from cueline.events.session import Cut
from tests.session_example import asking, saying, started


def test_a_summary_of_earlier_messages_is_no_turn():
    summary = saying(text="In short.").model_copy(
        update={"effect": "1.c", "cut": Cut(messages=1, of=3)}
    )

    course = course_of([started(), asking(), saying("look"), summary, saying(turn=2)])

    assert [reply.effect for reply in course.replies] == ["1.m", "2.m"]
    assert list(course.calls) == ["1.0"]
