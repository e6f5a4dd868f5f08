"""What a grant may carry, and that nothing else runs by it (I9, C17, C18)."""

from cueline.deciders.policy import exact_scope
from cueline.events.session import ApprovalResolved, MessageRefused, ToolFailed, ToolStarted
from cueline.testing.crash_point import CrashingRunner
from cueline.testing.fakes import says
from tests.actors.asked import DEPLOY, GATE, STARTING, answer, asked, wake
from tests.actors.session_harness import SESSION, Interrupted, SessionHarness


async def test_an_edited_call_runs_as_it_was_edited_and_both_digests_are_recorded():
    # 003-022, I9, C18: what is granted is data of the grant.
    scene = await asked()

    await answer(scene, edit={"to": "staging"}, note="not yet")

    (order,) = scene.orders
    resolved = await scene.last(ApprovalResolved)
    opened = (await scene.outside.facts(GATE))[0]
    assert {"to": "staging"} == order.arguments == resolved.edit
    assert order.digest == resolved.digest != opened.digest
    prompt = b"".join(await scene.outside.transcript(SESSION)).decode()
    assert "ann allowed the call of deploy with other arguments" in prompt
    assert "not yet" in prompt


async def test_a_session_that_is_taken_over_runs_the_edited_call():
    # I4: the edit is a fact.
    scene = await asked()
    await scene.first.kill()
    await answer(scene, edit={"to": "staging"})

    await wake(scene)

    assert [{"to": "staging"}] == [order.arguments for order in scene.orders]


async def test_it_takes_as_many_people_as_the_rule_says():
    rule = {"name": "two", "answer": "ask", "tools": ["deploy"], "votes": 2}
    scene = await asked(rules=[rule])

    await answer(scene, by="ann")
    await answer(scene, by="ann")

    assert [] == scene.executor.starts
    assert "granted_before" == (await scene.last(MessageRefused)).refusal.code
    await answer(scene, by="bob")
    assert "granted by ann, bob" == (await scene.last(ToolStarted)).rule


async def test_whoever_asked_for_the_session_may_be_excluded():
    # C17
    rule = {"name": "four eyes", "answer": "ask", "tools": ["deploy"], "exclude_requester": True}
    scene = SessionHarness([DEPLOY, says("done")], policy={"rules": [rule]})
    await scene.begin(asked_by="ann")

    await answer(scene, by="ann")

    assert "excluded" == (await scene.last(MessageRefused)).refusal.code
    await answer(scene, by="bob")
    assert "SessionCompleted" == (await scene.types())[-1]


async def test_what_was_allowed_for_the_rest_of_the_session_is_not_asked_again():
    scene = SessionHarness([DEPLOY, DEPLOY, says("done")])
    await scene.begin()

    await answer(scene, always=(exact_scope({}),))

    assert "always allowed by ann" == (await scene.last(ToolStarted)).rule
    assert 1 == (await scene.count())["ApprovalRequested"]


async def test_a_call_that_was_changed_after_its_grant_reaches_no_runner():
    # I9, C18: the runner looks again, for a host that does not (`test_runner`).
    scene = SessionHarness([DEPLOY, says("done")])
    life = Interrupted({})
    world = await scene.begin(life)

    async def change():
        calls = world.host._loops[SESSION]._entity.prompt.calls
        calls["1.0"] = calls["1.0"].model_copy(update={"arguments": {"to": "eve"}})

    life.at = {f"after {STARTING}": change}
    scene.outside.runners.ports[world.name] = CrashingRunner(world.runner, life)
    await scene.decide()

    assert "not_granted" == (await scene.last(ToolFailed)).kind
    assert "before an order" not in life.points
    assert [] == scene.executor.starts
