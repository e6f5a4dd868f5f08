"""What is in flight, in one line, at a moment of a clock that is handed in."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from cueline.client.live_text import ToolProgress
from cueline.console.event_renderer import EventRenderer
from cueline.console.status_line import StatusLine
from cueline.events.codes import Cause
from cueline.events.inbox import PauseAsked, ResumeAsked
from cueline.events.message import ToolCall
from cueline.events.session import (
    ApprovalResolved,
    ModelFailed,
    ModelRequested,
    SessionCompleted,
    SessionContinued,
    SessionIdle,
    SessionTakenOver,
    SessionWaiting,
    ToolFailed,
    ToolReturned,
    ToolStarted,
)
from cueline.events.session.lifecycle import LostAttempt
from tests.console.told import NOW, REPLIED
from tests.session_example import received, started

REQUESTED = ModelRequested(effect="1.m", attempt=1, digest="", prefix_digest="")


def seconds(number):
    return NOW + timedelta(seconds=number)


def waiting(kind, **more):
    return SessionWaiting(kind=kind, cause=Cause(code="asked", dependency="m"), **more)


def tool_started(effect="1.0"):
    return ToolStarted(effect=effect, attempt=1, tool="read_file", runner="r", epoch=1, rule="")


@pytest.fixture
def line():
    telling = EventRenderer()
    status = StatusLine(telling)

    def after(*facts, at=12):
        for fact in facts:
            telling.render(SimpleNamespace(recorded_at=NOW, stream="session-default/one"), fact)
            status.learn(fact, NOW)
        return status.text(seconds(at))

    after.status = status
    return after


def test_nothing_is_in_flight_before_anything_happened(line):
    assert not line()


def test_a_model_is_named_with_how_long_it_takes(line):
    assert "m · 12 s · Ctrl-C pauses" == line(started(), REQUESTED)


def test_what_a_second_ctrl_c_does_is_said_while_it_pauses(line):
    pause = received(1, PauseAsked(why="signal"))
    assert line(started(), REQUESTED, pause).endswith("· Ctrl-C leaves at once")

    assert line(received(2, ResumeAsked())).endswith("· Ctrl-C pauses")


def test_a_tool_is_named_with_its_arguments_and_what_was_used_so_far(line):
    told = line(started(), REQUESTED, REPLIED, tool_started(), at=2)

    assert (
        'read_file path="a.txt" · 2.0 s · 1,250 tokens (200 cached) · $0.0123 · Ctrl-C pauses'
        == told
    )


def test_long_arguments_are_cut(line):
    call = ToolCall(id="c", name="run", arguments={"command": "x" * 500})
    replied = REPLIED.model_copy(update={"calls": (call,)})

    assert "…" in (told := line(started(), REQUESTED, replied, tool_started()))
    assert len(told) < 130


def test_of_several_calls_the_oldest_is_shown_and_the_others_counted(line):
    calls = [ToolCall(id=str(n), name=f"tool{n}", arguments={}) for n in range(3)]
    replied = REPLIED.model_copy(update={"calls": tuple(calls)})
    facts = [tool_started(f"1.{n}") for n in range(3)]

    assert "tool0 · 12 s · and 2 more calls" in line(started(), replied, *facts)
    returned = ToolReturned(effect="1.0", attempt=1, output="")
    assert "tool1 · 12 s · and 1 more call ·" in line(returned)


@pytest.mark.parametrize(("at", "left"), [(1, "in 3.0 s"), (4, "in 0.0 s"), (9, "in 0.0 s")])
def test_a_retry_is_counted_down(line, at, left):
    failed = ModelFailed(
        effect="1.m", attempt=1, kind="network", message="", failed_at=NOW, retry_at=seconds(4)
    )

    assert f"retry 1/3 of m {left}" in line(started(), REQUESTED, failed, at=at)


def test_the_retry_of_a_tool_names_the_tool(line):
    failed = ToolFailed(
        effect="1.0", attempt=1, kind="timeout", message="", failed_at=NOW, retry_at=seconds(4)
    )
    told = line(started(), REQUESTED, REPLIED, tool_started(), failed, at=0)

    assert 'of read_file path="a.txt" in 4.0 s' in told


def test_an_open_breaker_is_counted_down(line):
    told = line(started(), waiting("breaker", deadline_at=seconds(30)), at=10)

    assert told.startswith("breaker of m open, tried again in 20 s")


@pytest.mark.parametrize(
    ("kind", "whom"),
    [
        ("approval", "waiting for a person's answer"),
        ("runner", "waiting for a runner"),
        ("child", "waiting for a child session"),
        ("task", "waiting for a task of a server"),
        ("sandbox", "waiting for a sandbox"),
        ("message", "waiting for a message"),
        ("budget", "waiting for room in the budget"),
    ],
)
def test_who_is_waited_for_is_told(line, kind, whom):
    assert line(started(), waiting(kind)).startswith(f"{whom} · 12 s")


@pytest.mark.parametrize(
    "resting", [SessionIdle(), SessionCompleted(result=""), waiting("operator")]
)
def test_a_session_that_rests_has_no_line(line, resting):
    assert line(started(), REQUESTED, REPLIED)

    assert not line(resting)


@pytest.mark.parametrize(
    "on",
    [
        SessionContinued(by="message"),
        ApprovalResolved(approval="one.1.0.1", verdict="granted", by="ada"),
    ],
)
def test_a_session_that_goes_on_works_again(line, on):
    assert line(started(), waiting("operator"), on).startswith("working")


def test_a_call_that_was_lost_is_not_in_flight(line):
    lost = LostAttempt(effect="1.m", attempt=1)
    taken = SessionTakenOver(epoch=2, lost_attempts=(lost,), at=NOW)

    assert line(started(), REQUESTED, taken).startswith("working")


def test_an_answer_ends_the_call(line):
    assert line(started(), REQUESTED, REPLIED).startswith("working")


@pytest.mark.parametrize(
    ("share", "text", "shown"),
    [(0.4, "half\nof it", " · 40% half of it"), (None, "b.txt", " · b.txt"), (1, "", " · 100%")],
)
def test_a_running_call_shows_how_far_it_is(share, text, shown, line):
    before = line(REPLIED, tool_started())

    line.status.show_progress(ToolProgress("1.0", share, text))
    during = line()
    after = line(ToolReturned(effect="1.0", attempt=1, output="", seconds=1))

    assert before.replace(' path="a.txt"', f' path="a.txt"{shown}') == during
    assert shown not in after


def test_progress_may_come_before_the_start_of_its_call(line):
    line.status.show_progress(ToolProgress("1.0", 0.4, "half"))

    assert " · 40% half · " in line(REPLIED, tool_started())
