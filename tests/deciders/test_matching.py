"""Which runner may execute a call."""

import pytest

from cueline.deciders.matching import Offer, call_demands, least_unmet, unmet
from cueline.events.agent import Workspace
from cueline.events.agent_parts import NO_DEMANDS, Demands
from cueline.testing.fakes import agent_spec, tool_spec

RUNNER = Offer("runner-1", "m1", {"name": "big", "gpu": "a100"}, {"gpus": 2})


def tool(**demands):
    return tool_spec("train").model_copy(update={"demands": Demands(**demands)})


@pytest.mark.parametrize(
    "demands",
    [
        {},
        {"runner": "big"},
        {"runner": "runner-1"},
        {"machine": "m1"},
        {"labels": {"gpu": "a100"}},
        {"resources": {"gpus": 2}},
        {"runner": "big", "machine": "m1", "labels": {"name": "big"}, "resources": {"gpus": 0.5}},
    ],
)
def test_a_runner_that_offers_all_that_is_demanded_matches(demands):
    assert NO_DEMANDS == unmet(RUNNER, Demands(**demands))


@pytest.mark.parametrize(
    "missing",
    [
        {"runner": "small"},
        {"machine": "m2"},
        {"labels": {"zone": "eu"}},
        {"labels": {"zone": "eu", "name": "small"}},
        {"resources": {"memory": 3}},
        {"resources": {"cpus": 1}},
    ],
)
def test_what_a_runner_does_not_meet_is_named_alone(missing):
    met = {"labels": {"gpu": "a100"}, "resources": {"gpus": 2}}
    both = {key: {**met[key], **missing[key]} for key in met.keys() & missing.keys()}

    assert Demands(**missing) == unmet(RUNNER, Demands(**{**met, **missing, **both}))


def test_less_of_a_resource_or_another_value_of_a_label_does_not_do():
    wanted = Demands(labels={"gpu": "h100"}, resources={"gpus": 3})

    assert wanted == unmet(RUNNER, wanted)


def test_a_runner_whose_machine_is_unknown_meets_no_demand_for_one():
    assert Demands(machine="m1") == unmet(Offer("runner-2", None), Demands(machine="m1"))


def test_the_runner_that_meets_most_demands_says_what_is_missing():
    wanted = Demands(machine="m1", labels={"gpu": "h100"}, resources={"gpus": 2})

    assert Demands(labels={"gpu": "h100"}) == least_unmet([Offer("r0", "m0"), RUNNER], wanted)
    assert wanted == least_unmet([], wanted)


def test_the_demands_of_a_tool_come_before_those_of_its_agent():
    general = Demands(runner="big", labels={"gpu": "any", "zone": "eu"}, resources={"gpus": 1})

    demands = call_demands(
        tool(runner="small", labels={"gpu": "a100"}, resources={"gpus": 4, "cpus": 8}),
        agent_spec(demands=general),
    )

    assert "small" == demands.runner
    assert {"gpu": "a100", "zone": "eu"} == demands.labels
    assert {"gpus": 4, "cpus": 8} == demands.resources


def test_a_call_that_needs_the_workspace_demands_the_machine_with_it():
    agent = agent_spec(workspace=Workspace(machine="m1", path="/work"), demands={"machine": "m2"})
    there = tool().model_copy(update={"needs_workspace": True})

    assert ("m1", "m2") == (call_demands(there, agent).machine, call_demands(tool(), agent).machine)


def test_a_tool_and_an_agent_without_demands_demand_nothing():
    agent = agent_spec(workspace=Workspace(machine="m1", path="/work"))

    assert NO_DEMANDS == call_demands(tool(), agent)
    assert "demands" not in agent.model_dump()


def test_demands_are_said_in_words():
    demands = Demands(
        runner="big", machine="m1", labels={"gpu": "a100"}, resources={"gpus": 2, "memory": 0.5}
    )

    said = "the name big, the machine m1, the label gpu=a100, 2 gpus, 0.5 memory"
    assert said == str(demands)
