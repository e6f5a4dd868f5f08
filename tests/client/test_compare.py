"""How the transcripts of two sessions are compared."""

from cueline.client.compare import compared_lines
from cueline.projections.transcript import TranscriptLine


def line(text):
    return TranscriptLine(
        stream="session-default/one",
        version=1,
        part=0,
        kind="call",
        effect="",
        name="poll",
        text=text,
        size=len(text),
        failed=False,
        recorded_us=0,
    )


def sides(a, b):
    found = compared_lines([line(each) for each in a], [line(each) for each in b])
    return [(each.side, each.line.text) for each in found]


def test_the_lines_of_the_first_session_come_before_those_of_the_other():
    assert [("both", "x"), ("a", "y"), ("b", "z"), ("both", "w")] == sides("xyw", "xzw")


def test_a_session_is_compared_with_its_beginning():
    assert [("both", "x"), ("b", "y")] == sides("x", "xy")


def test_the_same_past_is_equal_also_if_its_lines_repeat():
    found = sides(["poll"] * 3000 + ["yes"], ["poll"] * 3000 + ["no"])

    assert [("both", "poll")] * 3000 + [("a", "yes"), ("b", "no")] == found


def test_long_sessions_of_repeated_lines_are_compared_at_once():
    one, two = (["poll" if n % 2 else f"{name}{n}" for n in range(3000)] for name in ("one", "two"))
    found = sides(one, two)

    assert one == [text for side, text in found if side in {"both", "a"}]
    assert two == [text for side, text in found if side in {"both", "b"}]
