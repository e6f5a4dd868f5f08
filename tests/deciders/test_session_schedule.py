"""Sessions that start later: they rest until their time, and say when the next one starts."""

from datetime import timedelta

import pytest

from cueline.deciders.session import Status, due, wake_at
from cueline.deciders.session.run import next_in_series
from cueline.events.agent import Limits
from cueline.events.codes import Cause
from cueline.events.inbox import MessageSent, PauseAsked, ResumeAsked, StopAsked
from cueline.events.session import (
    MessageReceived,
    ModelRequested,
    SessionContinued,
    SessionStarted,
    SessionStopped,
    SessionWaiting,
)
from cueline.events.start import Run, Schedule, first_of, stream_at, time_after
from cueline.testing.given import STREAM, given
from tests.session_example import AGENT, NOW, later, received, started

HOUR = 3600


def asked(every=None, agent=AGENT, **fields):
    schedule = Schedule(at=later(HOUR), every_seconds=every)
    return started(agent).model_copy(update={"schedule": schedule, **fields})


def resting(every=None, **fields):
    return given().when(asked(every, **fields))


def passed(seconds):
    return SessionContinued(by="deadline", at=later(seconds))


def test_a_session_rests_until_its_time():
    wait = SessionWaiting(kind="time", cause=Cause(code="scheduled"), deadline_at=later(HOUR))

    past = resting().then(SessionStarted, wait)

    assert (Status.WAITING, [], later(HOUR)) == (
        past.state.status,
        due(past.state),
        wake_at(past.state),
    )


def test_its_work_starts_at_its_time_and_not_before():
    resting().when(passed(HOUR - 1)).then_nothing()

    resting().when(passed(HOUR)).then(SessionContinued, ModelRequested)


def test_a_message_waits_with_it():
    past = resting().when(received(2, MessageSent(lane="steer", text="Be short.")))

    past.then(MessageReceived)
    assert (1, 2) == past.when(passed(HOUR)).facts[-1].messages


def test_a_stop_before_its_time_ends_it():
    resting(HOUR).when(received(2, StopAsked())).then(MessageReceived, SessionStopped)


def test_a_paused_session_lets_its_time_pass_and_starts_when_it_is_resumed():
    past = resting(HOUR).when(received(2, PauseAsked()))
    assert wake_at(past.state) is None
    past.when(passed(2 * HOUR)).then_nothing()

    past.when(received(3, ResumeAsked()))

    assert later(HOUR) == wake_at(past.state)
    past.when(passed(5 * HOUR)).then(SessionContinued, ModelRequested)


def test_wall_time_counts_from_its_time():
    agent = AGENT.model_copy(update={"limits": Limits(max_wall_seconds=100)})
    past = resting(agent=agent)
    assert later(HOUR) == wake_at(past.state)

    assert later(HOUR + 80) == wake_at(past.when(passed(HOUR)).state)


def test_a_run_is_queued_from_its_time_on():
    past = resting(run=Run(blueprint="crawler"))
    assert not past.state.queued

    assert past.when(passed(HOUR)).state.queued


# The next one of a series.


@pytest.mark.parametrize(
    ("started_at", "then"), [(HOUR, 2 * HOUR), (HOUR + 1, 2 * HOUR), (7 * HOUR + 5, 8 * HOUR)]
)
def test_the_next_one_starts_at_the_next_time_that_is_not_over(started_at, then):
    past = resting(HOUR)
    before = past.state

    following = next_in_series(before, past.when(passed(started_at)).state, later(started_at))

    assert (later(then), HOUR, STREAM) == (
        following.at,
        following.every_seconds,
        following.first,
    )


def test_the_next_one_is_not_earlier_though_the_clock_was_set_back():
    schedule = Schedule(at=NOW, every_seconds=HOUR)

    assert later(HOUR) == time_after(schedule, NOW - timedelta(days=1))


@pytest.mark.parametrize("every", [None, HOUR])
def test_nothing_follows_one_that_starts_once_or_has_not_started(every):
    past = resting(every)
    before = past.state

    after = past.when(passed(HOUR if every is None else 1)).state

    assert next_in_series(before, after, later(HOUR)) is None


def test_nothing_follows_one_that_is_stopped_as_it_starts():
    past = resting(HOUR)
    before = past.state

    after = past.when(passed(HOUR), received(2, StopAsked())).state

    assert next_in_series(before, after, later(HOUR)) is None


def test_the_name_of_a_session_tells_the_first_of_its_series():
    name = stream_at(STREAM, NOW)

    assert name.endswith(f".{NOW:%Y%m%dt%H%M%Sz}")
    assert (STREAM, None, None) == (first_of(name), first_of(STREAM), first_of(f"{STREAM}.1.0"))
