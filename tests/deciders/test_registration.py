"""Registered runners: whose blueprints count, and when a silent one is given up."""

from itertools import permutations

import pytest

from cueline.deciders.fleet import FLEET, changes
from cueline.deciders.heartbeat import HeartbeatTimes
from cueline.errors import BlueprintConflictError, FencedError
from cueline.events.fleet import (
    CLUSTER,
    FleetTaken,
    RunnerBack,
    RunnerRegistered,
    RunnerRemoved,
    RunnerStale,
    WorkerGroup,
)
from cueline.testing.given import given_past
from tests.session_example import AGENT, NOW, later

TIMES = HeartbeatTimes()
TAKEN = FleetTaken(epoch=1, up="up-1", at=NOW)


def registered(incarnation, *names, runner="", instructions=""):
    agents = [
        AGENT.model_copy(update={"name": name, "instructions": instructions}) for name in names
    ]
    return RunnerRegistered(
        incarnation=incarnation,
        runner=runner,
        blueprints=tuple(agents),
        group=WorkerGroup(kind="runner"),
        machine="m1",
        node="n1",
        pid=7,
        epoch=1,
        at=NOW,
    )


def stale(incarnation="lnch_abc123", seconds=600, silent=120, at=120):
    return RunnerStale(
        incarnation=incarnation,
        reason=f"it is silent for {silent} s",
        removed_at=later(seconds),
        epoch=1,
        at=later(at),
    )


def removed(incarnation="lnch_abc123", reason="it is silent for 600 s", at=600):
    return RunnerRemoved(incarnation=incarnation, reason=reason, epoch=1, at=later(at))


def back(incarnation="lnch_abc123", at=130):
    return RunnerBack(incarnation=incarnation, epoch=1, at=later(at))


FIRST = registered("lnch_abc123", "web-crawler")


def given_runners(*facts):
    return given_past(FLEET, TAKEN, *facts)


def offered(state):
    """Return which runner offers each blueprint."""
    return {name: each.runner for name, each in state.blueprints.items()}


def refused(past, command):
    before = past.state
    with pytest.raises(BlueprintConflictError) as caught:
        past.when(command)
    assert before is past.state
    return caught.value


# 001-028, 001-032, 001-033, 001-048, 001-054
def test_the_first_runner_keeps_the_name():
    past = given_runners(FIRST)

    error = refused(past, registered("lnch_def456", "web-crawler"))

    assert ("web-crawler", "lnch_abc123") == (error.blueprint, error.runner)
    assert "lnch_abc123" == past.state.online("web-crawler")


# 001-030, 001-031
def test_the_error_of_a_collision_has_the_body_of_the_answer():
    error = refused(given_runners(FIRST), registered("lnch_def456", "web-crawler"))

    assert {
        "error": "agent_name_collision",
        "message": "Agent 'web-crawler' is already registered by runner 'lnch_abc123'",
        "agent_name": "web-crawler",
        "existing_runner_id": "lnch_abc123",
    } == error.as_dict()
    assert str(error) == error.as_dict()["message"]


# 001-037, D23
def test_one_name_that_collides_refuses_the_whole_registration():
    past = given_runners(FIRST, registered("lnch_def456", "other"))

    refused(past, registered("lnch_def456", "new", "web-crawler"))

    assert {"web-crawler": "lnch_abc123", "other": "lnch_def456"} == offered(past.state)


# D23
def test_a_stale_runner_that_collides_loses_nothing():
    old = registered("lnch_def456", "other")
    past = given_runners(FIRST, old, stale("lnch_def456"))

    refused(past, registered("lnch_def456", "other", "web-crawler"))

    assert "lnch_def456" == offered(past.state)["other"]


# C29, D23
def test_cuelines_own_names_cannot_be_offered():
    assert CLUSTER == refused(given_runners(), registered("r1", "default")).runner


# D23
def test_a_name_that_is_twice_in_one_list_is_refused():
    assert "r1" == refused(given_runners(), registered("r1", "a", "a")).runner


# 001-036, C30
def test_the_same_incarnation_replaces_its_blueprints():
    again = registered("lnch_abc123", "b", "web-crawler", instructions="new")

    past = given_runners(registered("lnch_abc123", "a", "web-crawler")).when(again).then(again)

    assert {"a": "", "b": "lnch_abc123", "web-crawler": "lnch_abc123"} == offered(past.state)
    assert "new" == past.state.blueprints["web-crawler"].agent.instructions


# C30
def test_a_new_incarnation_waits_until_the_old_one_is_stale():
    old, new = (registered(each, "a", runner="up") for each in ("r1", "r2"))
    past = given_runners(old)

    refused(past, new)

    past.when(stale("r1"), new).then(new)
    assert {"a": "r2"} == offered(past.state)
    assert "r2" == past.when(removed("r1")).state.online("a")


# C30
def test_another_runner_does_not_take_the_blueprints_of_a_stale_one():
    past = given_runners(FIRST, stale())

    refused(past, registered("lnch_def456", "web-crawler", runner="other"))


# 001-008, 001-012, 001-013, 001-043
def test_one_event_removes_a_runner_and_its_blueprints():
    past = given_runners(FIRST).when(removed()).then(removed())

    assert ({}, "", {"web-crawler": ""}) == (
        dict(past.state.runners),
        past.state.online("web-crawler"),
        offered(past.state),
    )


def test_a_removed_runners_name_is_free():
    new = registered("lnch_def456", "web-crawler")

    given_runners(FIRST, removed()).when(new).then(new)


# 001-005
def test_a_stale_runner_gets_no_runs():
    past = given_runners(FIRST).when(stale()).then(stale())

    assert ("", later(600)) == (
        past.state.online("web-crawler"),
        past.state.removal_of("web-crawler"),
    )


# 001-007, D13
def test_a_stale_runner_that_is_heard_is_online_again():
    past = given_runners(FIRST, stale()).when(back()).then(back())

    assert ("lnch_abc123", None) == (
        past.state.online("web-crawler"),
        past.state.removal_of("web-crawler"),
    )


@pytest.mark.parametrize(
    ("past", "command"),
    [
        ((FIRST,), back()),
        ((FIRST, stale()), stale()),
        ((), removed()),
        ((), stale()),
    ],
)
def test_what_changes_nothing_is_not_recorded(past, command):
    given_runners(*past).when(command).then_nothing()


def test_a_former_dispatcher_registers_nobody():
    past = given_runners(FleetTaken(epoch=2, up="up-2", at=NOW))

    with pytest.raises(FencedError):
        past.when(FIRST)


def test_a_fact_of_a_runner_that_is_not_registered_changes_no_state():
    state = given_runners().state

    assert state is FLEET.evolve(state, stale())


def test_a_blueprint_that_nobody_has_offered_is_unknown():
    state = given_runners(FIRST).state

    assert ("", None) == (state.online("x"), state.removal_of("x"))


# 001-034, 001-049
@pytest.mark.parametrize("order", list(permutations(["r1", "r2", "r3"])))
def test_each_name_has_one_runner_in_any_order_of_registrations(order):
    names = {"r1": ["a", "b"], "r2": ["b", "c"], "r3": ["c", "d"]}
    past = given_runners()
    for each in order:
        try:
            past.when(registered(each, *names[each]))
        except BlueprintConflictError:
            assert each not in past.state.runners

    for runner in past.state.runners:
        assert {runner} == {offered(past.state)[name] for name in names[runner]}


# The clock.


def due(past, *, beat, now, since=0):
    beats = {} if beat is None else {"lnch_abc123": later(beat)}
    return changes(past.state, beats, later(now), since=later(since), times=TIMES)


# 001-004
@pytest.mark.parametrize("seconds", [0, 30, 60, 179])
def test_a_runner_that_is_heard_changes_nothing(seconds):
    assert [] == due(given_runners(FIRST), beat=60, now=seconds)


# 001-005, 001-006, 001-042
def test_a_silent_runner_is_stale_after_120_s_and_removed_after_600():
    past = given_runners(FIRST)

    (warned,) = due(past, beat=0, now=120)
    past.when(warned).then(stale())

    assert [] == due(past, beat=0, now=599)
    assert [removed()] == due(past, beat=0, now=600)


# 001-007, D13
def test_a_heartbeat_brings_a_stale_runner_back():
    past = given_runners(FIRST, stale())

    assert [back()] == due(past, beat=125, now=130)


# C28
def test_nobody_is_given_up_within_120_s_of_a_restart():
    past = given_runners(FIRST)

    assert [] == due(past, beat=0, now=5119, since=5000)
    assert [stale(seconds=5600, at=5120)] == due(past, beat=0, now=5120, since=5000)


# C28
def test_a_restart_brings_no_stale_runner_back():
    past = given_runners(FIRST, stale())

    assert [] == due(past, beat=0, now=5000, since=5000)
    assert [] == due(past, beat=None, now=5000, since=5000)
