"""What was said and done, line by line (000-043, 002-021)."""

import pytest

from cueline.events.codes import Cause
from cueline.events.inbox import MessageSent
from cueline.events.message import TextBlock, ThinkingBlock, ToolCall
from cueline.events.session import (
    LimitWarned,
    LostAttempt,
    MessageReceived,
    ModelReplied,
    SessionCompleted,
    SessionFailed,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    ToolFailed,
    ToolReconciled,
    ToolReturned,
    ToolSkipped,
)
from cueline.projections.transcript import EXCERPT, transcript

A = "session-default/a"


@pytest.fixture
def told(log, facts):
    """Tell a session and return its lines: kind, effect, name, text, failed."""

    async def told(*more):
        db = await log.tell("a", facts.STARTED, *more)
        lines = transcript(db, A)
        return [(line.kind, line.effect, line.name, line.text, line.failed) for line in lines[1:]]

    return told


async def test_it_begins_with_the_goal(log, facts):
    (line,) = transcript(await log.tell("a", facts.STARTED), A)

    assert ("user", "goal", "Tidy up", 1) == (line.kind, line.name, line.text, line.version)


async def test_calls_and_their_results_are_told_in_order(told, facts):
    turn = facts.turn(1, "write_file", "read_file", text="I write.")
    results = [
        ToolReturned(effect="1.0", attempt=1, output="ok"),
        ToolFailed(effect="1.1", attempt=1, kind="timeout", message="300 s"),
    ]

    assert [
        ("assistant", "1.m", "m1-0101", "I write.", False),
        ("call", "1.0", "write_file", '{"n": 0}', False),
        ("call", "1.1", "read_file", '{"n": 1}', False),
        ("result", "1.0", "write_file", "ok", False),
        ("result", "1.1", "read_file", "timeout: 300 s", True),
    ] == await told(*turn, *results)


SAID = [
    (ToolSkipped(effect="1.0", reason="steered"), ("result", "1.0", "write_file", "steered", True)),
    (
        ToolReconciled(effect="1.0", outcome="happened", by="a", output="It did."),
        ("result", "1.0", "write_file", "It did.", False),
    ),
    (
        LimitWarned(limit="max_turns", share=0.9, used=9, of=10, note="Wrap up."),
        ("user", "", "max_turns", "Wrap up.", False),
    ),
    (
        SessionWaiting(kind="retry", cause=Cause(code="retry_pending")),
        ("wait", "", "retry", '{"code":"retry_pending"}', False),
    ),
    (SessionCompleted(result="done"), ("end", "", "completed", "done", False)),
    (SessionFailed(kind="auth", message="no key"), ("end", "", "failed", "auth no key", True)),
    (SessionStopped(by="ann", reason="enough"), ("end", "", "stopped", "enough", False)),
    (
        SessionTakenOver(
            epoch=2,
            lost_attempts=(LostAttempt(effect="2.m", attempt=1),),
            at="2026-03-02T00:00:00Z",
        ),
        ("takeover", "", "", "2.m", False),
    ),
    (
        MessageReceived(
            inbox_version=2,
            recorded_at="2026-03-02T00:00:00Z",
            message=MessageSent(lane="steer", text="Only the docs"),
        ),
        ("user", "", "steer", "Only the docs", False),
    ),
]


@pytest.mark.parametrize(("fact", "line"), SAID)
async def test_each_turn_of_events_is_told(fact, line, told, facts):
    assert line == (await told(*facts.turn(1, "write_file"), fact))[-1]


@pytest.mark.parametrize(
    "fact",
    [
        ToolFailed(effect="1.0", attempt=1, kind="k", message="m", retry_at="2026-03-02T00:00:00Z"),
        ToolReconciled(effect="1.0", outcome="did_not_happen", by="a"),
    ],
)
async def test_what_is_tried_again_is_no_line(fact, told, facts):
    assert 1 == len(await told(*facts.turn(1, "write_file"), fact))


async def test_thoughts_are_no_words_to_the_reader(told):
    content = (ThinkingBlock(text="Hm."), TextBlock(text="One."), TextBlock(text="Two."))

    reply = ModelReplied(effect="1.m", attempt=1, content=content, stop_reason="end_turn")

    assert [("assistant", "1.m", "", "One.\nTwo.", False)] == await told(reply)


async def test_malformed_arguments_are_told_as_they_came(told):
    call = ToolCall(id="1", name="write_file", malformed="{oops")

    reply = ModelReplied(effect="1.m", attempt=1, calls=(call,), stop_reason="tool_use")

    assert [("call", "1.0", "write_file", "{oops", True)] == await told(reply)


@pytest.mark.parametrize("size", [EXCERPT, EXCERPT + 1, 100_000])
async def test_of_a_long_text_an_excerpt_is_kept(size, log, facts):
    result = ToolReturned(effect="1.0", attempt=1, output="x" * size)

    line = transcript(await log.tell("a", facts.STARTED, result), A)[-1]

    assert (EXCERPT, size, size > EXCERPT) == (len(line.text), line.size, line.cut)


async def test_a_forks_transcript_begins_with_its_parents(log, facts):
    await log.tell("a", facts.STARTED, *facts.turn(1, text="one"))
    await log.append(A, *facts.turn(2, text="two"))
    await log.fork("f", A, 4)

    lines = transcript(await log.caught_up(), "session-default/f")

    assert ["Tidy up", "one", "Go on"] == [line.text for line in lines]
    assert [1, 4, 5] == [line.version for line in lines]


async def test_the_transcript_of_a_forks_fork_leaves_out_what_neither_shares(log, facts):
    await log.tell("a", facts.STARTED, *facts.turn(1, text="one"), *facts.turn(2, text="two"))
    await log.fork("f", A, 7)
    await log.fork("g", "session-default/f", 4)

    lines = transcript(await log.caught_up(), "session-default/g")

    assert ["Tidy up", "one", "Go on"] == [line.text for line in lines]


async def test_an_unknown_session_has_said_nothing(log):
    assert [] == transcript(await log.caught_up(), "session-default/none")
