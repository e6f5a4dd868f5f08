"""The rules of one breaker (004-016, 004-017, 004-068; C4, D37)."""

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from cueline.deciders.breaker import (
    BREAKER,
    PROBE_SECONDS,
    BreakerState,
    Fail,
    Hold,
    Probe,
    Reset,
    Succeed,
    admission,
)
from cueline.events.agent_parts import BreakerPolicy
from cueline.events.breaker import (
    BreakerClosed,
    BreakerHalfOpened,
    BreakerHeld,
    BreakerOpened,
    FailureCounted,
)
from cueline.events.codes import OURS, TRANSIENT
from cueline.testing.given import given_past
from tests.session_example import NOW, later

POLICY = BreakerPolicy()
COUNTED = FailureCounted(at=NOW, kind="overloaded")
OPENED = BreakerOpened(at=NOW, until=later(60), kind="overloaded")
HALF_OPEN = BreakerHalfOpened(at=later(60), probe="a/1.m", until=later(180))
CLOSED = BreakerClosed(at=later(61))


def fail(key="a/1.m", kind="overloaded", seconds=0.0, **fields):
    return Fail(key, kind, later(seconds), fields.pop("policy", POLICY), **fields)


def given(*facts):
    return given_past(BREAKER, *facts)


def answer(past, key="a/1.m", seconds=0.0):
    return admission(past.state, key, later(seconds)).answer


def test_the_fifth_failure_within_a_minute_opens_it():
    past = given(*[COUNTED] * 3).when(fail(seconds=58)).then(FailureCounted)

    past.when(fail(seconds=59)).then(
        FailureCounted(at=later(59), kind="overloaded"),
        BreakerOpened(at=later(59), until=later(119), kind="overloaded"),
    )


def test_a_failure_is_counted_with_the_successes_since_the_one_before():
    counted = FailureCounted(at=NOW, kind="overloaded", successes=7)

    given().when(fail(successes=7)).then(counted)


def test_failures_of_more_than_a_minute_ago_are_over():
    given(*[COUNTED] * 4).when(fail(seconds=60)).then(FailureCounted)


@pytest.mark.parametrize("kind", ["auth", "invalid_request", "refused", "tool_error", "unknown"])
def test_what_will_not_pass_never_counts(kind):
    given(*[COUNTED] * 4).when(fail(kind=kind)).then_nothing()


@pytest.mark.parametrize("kind", sorted(OURS))
def test_what_says_nothing_of_the_dependency_never_counts(kind):
    given(*[COUNTED] * 4).when(fail(kind=kind)).then_nothing()


# 004-018
@pytest.mark.parametrize("facts", [[OPENED], [OPENED, HALF_OPEN]])
def test_while_it_is_open_nothing_counts(facts):
    given(*facts).when(fail("b/1.m", seconds=70)).then_nothing()


def test_nothing_goes_out_until_it_is_time_for_a_probe():
    past = given(OPENED)

    assert ["wait", "wait", "probe"] == [answer(past, seconds=s) for s in (0, 59, 60)]
    assert later(60) == admission(past.state, "a/1.m", NOW).until


def test_a_probe_before_its_time_is_none():
    given(OPENED).when(Probe("a/1.m", later(59))).then_nothing()


def test_who_did_not_get_the_probe_looks_again_before_it_counts_as_lost():
    past = given(OPENED, HALF_OPEN)

    assert later(131) == admission(past.state, "b/1.m", later(71)).until
    assert later(180) == admission(past.state, "b/1.m", later(170)).until


# D37
def test_half_open_admits_one_probe_and_no_other():
    past = given(OPENED).when(Probe("a/1.m", later(60))).then(HALF_OPEN)

    assert ["go", "wait"] == [answer(past, key, 61) for key in ("a/1.m", "b/1.m")]
    past.when(Probe("b/1.m", later(61))).then_nothing()


def test_a_probe_that_goes_well_closes_it():
    past = given(OPENED, HALF_OPEN).when(Succeed("a/1.m", later(61))).then(CLOSED)

    assert "go" == answer(past, "b/1.m", 61)


# The one who is refused was answered: the dependency works.
def test_a_probe_that_is_refused_for_good_closes_it():
    past = given(OPENED, HALF_OPEN)

    past.when(fail(kind="invalid_request", seconds=61)).then(CLOSED)


def test_a_probe_that_fails_opens_it_for_twice_as_long():
    past = given(OPENED, HALF_OPEN).when(fail(seconds=61))

    past.then(BreakerOpened(at=later(61), until=later(181), kind="overloaded", openings=2))


def test_it_is_never_open_for_longer_than_ten_minutes_at_a_time():
    past = given(*[OPENED.model_copy(update={"openings": 30}), HALF_OPEN]).when(fail(seconds=61))

    assert later(661) == past.facts[0].until


def test_a_probe_whose_outcome_nobody_learns_makes_room_for_the_next():
    past = given(OPENED, HALF_OPEN)

    assert ["wait", "probe"] == [answer(past, "b/1.m", s) for s in (179, 60 + PROBE_SECONDS)]


def test_a_probe_that_is_cancelled_makes_room_at_once():
    past = given(OPENED, HALF_OPEN).when(fail(kind="cancelled", seconds=61)).then(BreakerOpened)

    assert "probe" == answer(past, "b/1.m", 61)
    assert 1 == past.state.openings


def test_what_went_out_before_it_opened_does_not_close_it():
    given(OPENED).when(Succeed("b/1.m", later(1))).then_nothing()


def test_it_counts_from_nothing_once_it_closed():
    past = given(*[COUNTED] * 5, OPENED, HALF_OPEN, CLOSED)

    past.when(fail(seconds=62)).then(FailureCounted)


def test_a_threshold_of_nothing_never_opens_it():
    given(*[COUNTED] * 9).when(fail(policy=BreakerPolicy(threshold=0))).then_nothing()


# 004-081
def test_a_small_share_of_failures_does_not_open_it_where_a_share_is_asked_for():
    rare = FailureCounted(at=NOW, kind="timeout", successes=19)
    policy = BreakerPolicy(failure_rate=0.5)

    given(*[rare] * 9).when(fail(policy=policy)).then(FailureCounted)
    some = rare.model_copy(update={"successes": 6})  # with it, half of all calls fail
    given(*[COUNTED] * 4, some).when(fail(policy=policy)).then(FailureCounted, BreakerOpened)
    one_more = some.model_copy(update={"successes": 7})
    given(*[COUNTED] * 4, one_more).when(fail(policy=policy)).then(FailureCounted)


# 004-081
def test_few_calls_do_not_open_it_where_many_are_asked_for():
    policy = BreakerPolicy(threshold=2, min_calls=10)

    given(COUNTED).when(fail(policy=policy)).then(FailureCounted)
    given(COUNTED).when(fail(policy=policy, successes=8)).then(FailureCounted, BreakerOpened)


def test_a_provider_that_says_when_is_held_until_then():
    past = given().when(Hold(NOW, 30, "rate_limited"))

    past.then(BreakerHeld(at=NOW, until=later(30), kind="rate_limited"))
    assert ["wait", "go"] == [answer(past, seconds=s) for s in (29, 30)]


def test_a_hold_is_made_longer_and_never_shorter():
    past = given(BreakerHeld(at=NOW, until=later(30), kind="rate_limited"))

    past.when(Hold(later(1), 20, "rate_limited")).then_nothing()
    past.when(Hold(later(1), 29, "rate_limited")).then_nothing()
    past.when(Hold(later(2), 60, "rate_limited")).then(BreakerHeld)


def test_a_hold_of_no_time_is_none():
    given().when(Hold(NOW, 0, "rate_limited")).then_nothing()


# It works, and says when: it is held, and not counted against.
def test_a_limit_of_the_rate_that_says_when_does_not_count():
    given(*[COUNTED] * 4).when(fail(kind="rate_limited", retry_after=1.0)).then_nothing()


# Of no time at all nothing is held: but for the count, nothing would slow anybody down.
@pytest.mark.parametrize(
    ("kind", "retry_after"), [("rate_limited", None), ("rate_limited", 0.0), ("overloaded", 1.0)]
)
def test_any_other_failure_counts_whether_it_says_when_or_not(kind, retry_after):
    past = given(*[COUNTED] * 4).when(fail(kind=kind, retry_after=retry_after))

    past.then(FailureCounted, BreakerOpened)


def test_a_probe_that_is_told_when_waits_so_long():
    past = given(OPENED, HALF_OPEN).when(fail(seconds=61, retry_after=900.0))

    assert later(961) == past.facts[0].until


COMMANDS = st.one_of(
    st.builds(
        lambda key, kind, seconds: (fail, key, kind, seconds),
        st.sampled_from("abc"),
        st.sampled_from(sorted(TRANSIENT | OURS | {"auth", "unknown"})),
        st.just(0),
    ),
    st.builds(lambda key: (Succeed, key), st.sampled_from("abc")),
    st.builds(lambda key: (Probe, key), st.sampled_from("abc")),
)


def told(command, seconds):
    match command:
        case (what, key) if what in (Succeed, Probe):
            return what(key, later(seconds))
        case (_, key, kind, _):
            return fail(key, kind, seconds)


# 004-018, C3, C4, D37: whatever happens, in whatever order.
@for_all(st.lists(st.tuples(COMMANDS, st.sampled_from([0, 1, 30, 60, 130])), max_size=60))
def test_open_never_counts_permanent_never_counts_and_a_probe_is_alone(script):
    check_breaker(script)


def check_breaker(script):
    state, clock = BreakerState(), 0
    for command, seconds in script:
        clock += seconds
        asked = told(command, clock)
        before, events = state, BREAKER.decide(asked, state)
        state = BREAKER.replay(events, state)
        counted = [e for e in events if isinstance(e, FailureCounted)]
        passes = isinstance(asked, Fail) and asked.kind in TRANSIENT
        assert not counted or (before.phase == "closed" and passes)
        if any(isinstance(e, BreakerHalfOpened) for e in events):
            assert before.phase != "closed"
            assert before.until <= asked.at
        if state.phase == "half_open":
            going = [key for key in "abc" if admission(state, key, asked.at).answer == "go"]
            assert [state.probe] == going


# 004-059
def test_the_default_is_five_failures_within_a_minute():
    assert (5, 60.0, 60.0) == (POLICY.threshold, POLICY.window_seconds, POLICY.timeout_seconds)


# A person resumed: they need not wait for the time.
def test_a_person_has_the_probe_of_an_open_breaker_before_its_time():
    past = given(OPENED)

    assert "probe" == admission(past.state, "a/1.m", later(1), early=True).answer
    past.when(Probe("a/1.m", later(1), early=True)).then(
        BreakerHalfOpened(at=later(1), probe="a/1.m", until=later(121))
    )


def test_a_probe_that_somebody_else_makes_is_not_made_twice_for_a_person():
    past = given(OPENED, HALF_OPEN)

    past.when(Probe("b/1.m", later(61), early=True)).then_nothing()
    assert "wait" == admission(past.state, "b/1.m", later(61), early=True).answer


HELD = BreakerHeld(at=NOW, until=later(30), kind="rate_limited")


@pytest.mark.parametrize("past", [[OPENED], [OPENED, HALF_OPEN], [COUNTED], [HELD]])
def test_a_person_resets_whatever_is_known(past):
    closed = given(*past).when(Reset(later(1), "ann")).then(BreakerClosed(at=later(1), by="ann"))

    assert BreakerState(since=later(1)) == closed.state


def test_a_breaker_that_keeps_nothing_back_is_not_reset():
    given().when(Reset(NOW, "ann")).then_nothing()
    given(HELD).when(Reset(later(30), "ann")).then_nothing()


def test_a_probe_that_goes_well_ends_no_hold():
    past = given(HELD, OPENED, BreakerClosed(at=later(1)))

    assert later(30) == past.state.held_until
