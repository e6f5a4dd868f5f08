"""A decision, checked before anybody reads it."""

import pytest

from cueline.actors.decision import checked_decision
from cueline.errors import ConfigError, NotPendingError, RejectedError
from cueline.events.agent import Rule
from cueline.events.inbox import DecisionGiven
from tests.actors.asked import HOUR, asked
from tests.actors.scene import SESSION

ID = "s.1.0.1"


async def nothing(*_):
    """Look at an edit, and have nothing against it."""


async def refuse(*_):
    raise ConfigError("the edit", "a rule denies it")


async def checked(scene, check_edit=nothing, **more):
    (call,) = (await scene.state()).open_calls
    said = {"approval": ID, "digest": call.digest, "verdict": "grant", "by": "ann"}
    decision = DecisionGiven(**{**said, **more})
    now = scene.clock.now()
    return await checked_decision(scene.outside.journal, SESSION, decision, now, check_edit)


async def test_what_may_be_said_stays_as_it_is():
    given = await checked(await asked(), note="fine")

    assert ("grant", "fine", None) == (given.verdict, given.note, given.always)


async def test_always_without_a_place_is_for_this_call():
    scene = await asked()

    whole, edited = await checked(scene, always=()), await checked(scene, always=(), edit={"n": 1})

    assert 1 == len(whole.always)
    assert whole.always != edited.always


async def test_always_in_a_folder_needs_a_tool_with_paths():
    with pytest.raises(ConfigError, match="deploy names no paths"):
        await checked(await asked(), always=("a/**",))


async def test_an_edit_that_cannot_run_is_refused():
    with pytest.raises(ConfigError, match="a rule denies it"):
        await checked(await asked(), refuse, edit={"n": 1})


async def test_what_the_gate_would_refuse_is_refused():
    other = Rule(name="ben", answer="ask", tools=("deploy",), may_grant=("ben",))
    scene = await asked(rules=(other,))

    with pytest.raises(RejectedError, match="ann may not allow it; ben may"):
        await checked(scene)
    with pytest.raises(RejectedError, match="not what became of it"):
        await checked(scene, resolution="happened")


async def test_what_is_over_does_not_wait():
    scene = await asked()
    await scene.clock.advance(2 * HOUR)

    with pytest.raises(NotPendingError, match=ID):
        await checked(scene)


async def test_of_what_the_gate_has_not_opened_yet_nothing_is_known():
    given = await checked(await asked(), approval="s.9.9.9")

    assert "s.9.9.9" == given.approval
