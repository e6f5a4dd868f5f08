"""The rules of a fleet's stream: what is wanted, and whose facts count."""

import pytest

from cueline.deciders.fleet import (
    FLEET,
    HOSTS,
    RUNNERS,
    Group,
    Range,
    TakeFleet,
    group_of,
    key_of,
)
from cueline.errors import FencedError
from cueline.events.fleet import (
    FLEET_STREAM,
    FleetTaken,
    NodeDraining,
    ScaleAsked,
    WorkerGroup,
)
from cueline.events.stream import category_of, tenant_of
from cueline.testing.given import given_past
from tests.session_example import NOW

GPUS = WorkerGroup(kind="runner", labels={"zone": "b"}, resources={"gpus": 1.0}, per_node=2)


def scale(group, least, most=None):
    return ScaleAsked(
        group=group if isinstance(group, WorkerGroup) else group_of(group),
        least=least,
        most=least if most is None else most,
        by="ada",
        at=NOW,
    )


def taken(epoch, up="up-1"):
    return FleetTaken(epoch=epoch, up=up, at=NOW)


def wanted(*facts):
    return given_past(FLEET, *facts).state.wanted


# 000-012, C46
def test_the_name_of_the_stream_holds_a_tenant():
    assert ("fleet", "default") == (category_of(FLEET_STREAM), tenant_of(FLEET_STREAM))


def test_the_last_number_that_was_asked_for_is_wanted():
    asked = [scale(RUNNERS, 8), scale(HOSTS, 2), scale(RUNNERS, 0, 4)]

    assert {RUNNERS: Range(0, 4), HOSTS: Range(2, 2)} == wanted(*asked)


def test_workers_with_other_labels_and_resources_are_counted_apart():
    asked = [scale(RUNNERS, 8), scale(GPUS, 2)]

    key = Group("runner", (("zone", "b"),), (("gpus", 1.0),), 2)
    assert {RUNNERS: Range(8, 8), key: Range(2, 2)} == wanted(*asked)


@pytest.mark.parametrize("group", [GPUS, WorkerGroup(kind="host")])
def test_a_group_is_the_same_after_it_was_a_key(group):
    assert group == group_of(key_of(group))


def test_a_number_that_is_wanted_already_is_not_recorded_again():
    given_past(FLEET, scale(RUNNERS, 8)).when(scale(RUNNERS, 8)).then_nothing()


def test_the_first_dispatcher_asks_for_the_defaults():
    command = TakeFleet(taken(1), defaults=(scale(HOSTS, 1), scale(RUNNERS, 1)))

    given_past(FLEET).when(command).then(taken(1), scale(HOSTS, 1), scale(RUNNERS, 1))


def test_a_number_of_any_runners_replaces_the_default_of_runners():
    command = TakeFleet(taken(1), defaults=(scale(HOSTS, 1), scale(RUNNERS, 1)))

    given_past(FLEET, scale(GPUS, 2)).when(command).then(taken(1), scale(HOSTS, 1))


def test_another_up_asks_for_the_numbers_that_it_was_given():
    past = [taken(1), scale(RUNNERS, 1), scale(HOSTS, 1)]
    command = TakeFleet(taken(2, "up-2"), (scale(RUNNERS, 2),), (scale(HOSTS, 1),))

    given_past(FLEET, *past).when(command).then(taken(2, "up-2"), scale(RUNNERS, 2))


def test_a_restarted_dispatcher_keeps_the_numbers_that_were_asked_for_since():
    past = [taken(1), scale(RUNNERS, 1), scale(RUNNERS, 8)]
    command = TakeFleet(taken(2), (scale(RUNNERS, 1),))

    given_past(FLEET, *past).when(command).then(taken(2))


# D13
@pytest.mark.parametrize("command", [NodeDraining(node="n1", epoch=1, at=NOW), TakeFleet(taken(1))])
def test_a_fact_of_a_former_dispatcher_is_refused(command):
    past = given_past(FLEET, taken(1), taken(2))

    with pytest.raises(FencedError, match="fleet-default/main: epoch 1 is fenced"):
        past.when(command)


def test_a_fact_of_the_present_dispatcher_is_recorded():
    fact = NodeDraining(node="n1", epoch=2, at=NOW)

    given_past(FLEET, taken(2)).when(fact).then(fact)
