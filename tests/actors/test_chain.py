"""The shipped chain `full-pipeline`: whom it asks, and what decides how it goes on."""

import json

import pytest

from cueline.deciders.session import Status
from cueline.events.agent import Limits, Policy
from cueline.events.inbox import DecisionGiven
from cueline.events.session import ApprovalResolved, SessionCompleted, SessionFailed
from cueline.testing.crash import World
from cueline.testing.fakes import asks_for, says
from tests.crash import story
from tests.crash.chain import CHILDREN, person, place_of, shipped_chain
from tests.crash.delegation import SESSION

PLAN, IMPLEMENT, REVIEW, BUGFIX = CHILDREN
CLEAN = {"verdict": "clean", "issues": []}
ISSUES = {"verdict": "issues_found", "issues": ["it is late"]}


def replies(verdict=ISSUES):
    return {
        PLAN: [says("1. Begin.")],
        IMPLEMENT: [
            asks_for(("pay", {})),
            says("It is done; no issue, bug, error or fix is left."),
        ],
        REVIEW: [says(json.dumps(verdict))],
        BUGFIX: [says("It is early.")],
    }


async def ended(place, agent, go_on=None):
    await place.start("story", agent)
    await story.drive(place, go_on=go_on or person([SESSION, *CHILDREN]))
    return (await place.facts(SESSION))[-1]


async def begun(place):
    return [bool(await place.facts(child)) for child in CHILDREN]


# 003-049: a person sees the plan and allows it; then all that follows runs by itself.
async def test_a_person_allows_the_plan_and_all_agents_run():
    place = place_of(replies())
    agent = shipped_chain("full-pipeline")
    await place.start("story", agent)
    await story.drive(place, go_on=lambda *_: none())

    asked = (await place.state(SESSION)).questions
    before = await begun(place)
    await story.drive(place, go_on=person([SESSION]))
    end = (await place.facts(SESSION))[-1]

    assert (1, [True, False, False, False]) == (len(asked), before)
    assert [True] * 4 == await begun(place)
    assert isinstance(end, SessionCompleted)
    assert {"plan": "1. Begin.", "review": ISSUES, "bugfix": "It is early."} == end.value


async def none():
    return False


# D29, 003-053: words about issues decide nothing; the verdict does.
async def test_a_clean_verdict_starts_no_bugfix():
    place = place_of(replies(CLEAN))

    end = await ended(place, shipped_chain("full-pipeline"))

    assert [True, True, True, False] == await begun(place)
    assert {"plan": "1. Begin.", "review": CLEAN, "bugfix": ""} == end.value


# 003-049: the review runs always, also if a person refused the change.
async def test_a_denied_plan_is_not_implemented_and_the_review_runs():
    place = place_of(replies())

    async def deny(place, _session):
        asked = [call.approval for call in (await place.state(SESSION)).open_calls if call.asking]
        for each in asked:
            said = DecisionGiven(approval=each.id, digest=each.digest, verdict="deny", by="ann")
            await place.say(SESSION, said)
        return asked

    end = await ended(place, shipped_chain("full-pipeline"), deny)

    assert [True, False] == (await begun(place))[:2]
    assert Status.COMPLETED is (await place.state(SESSION)).status
    assert end.partial


# 003-058: without a veto the next agent begins after three seconds.
async def test_a_plan_nobody_vetoes_is_allowed_after_three_seconds():
    place = place_of(replies())
    policy = Policy(auto_approve_after=3)
    await place.start("story", shipped_chain("full-pipeline", policy=policy))
    world = World(place)
    await world.rest(within=1)

    await place.clock.advance(2.5)
    await world.rest()
    soon = await begun(place)
    await place.clock.advance(1)
    await world.rest(within=60)
    facts = await place.facts(SESSION)
    (resolved,) = [fact for fact in facts if isinstance(fact, ApprovalResolved)]

    assert [True, False, False, False] == soon
    assert ("granted", "auto:auto_approve_after") == (resolved.verdict, resolved.by)
    assert isinstance(facts[-1], SessionCompleted)


# C25, D28, 003-056: the count is of the whole tree, and a start beyond it is refused.
@pytest.mark.parametrize(("most", "runs"), [(1, 1), (2, 2), (4, 4)])
async def test_a_chain_starts_no_more_agents_than_its_limit(most, runs):
    place = place_of(replies())
    agent = shipped_chain("full-pipeline", limits=Limits(max_descendants=most))

    await ended(place, agent)

    assert runs == sum(await begun(place))


async def test_a_shipped_chain_starts_at_most_ten_agents():
    chains = [shipped_chain(name) for name in ("full-pipeline", "implement-and-review")]

    assert [10, 10] == [chain.limits.max_descendants for chain in chains]


async def test_a_plan_that_fails_ends_the_chain():
    agent = shipped_chain("full-pipeline")
    plan = agent.agents["plan"]
    limited = plan.model_copy(update={"output": {"type": "integer"}})
    agent = agent.model_copy(update={"agents": agent.agents | {"plan": limited}})
    place = place_of(replies())

    end = await ended(place, agent)

    assert isinstance(end, SessionFailed)
    assert "step plan: invalid_output" in end.message
    assert [True, False, False, False] == await begun(place)
