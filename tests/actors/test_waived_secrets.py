"""A host records nothing for an agent of which it does not know a secret (I11)."""

from cueline.actors.event_actor import actor_of
from cueline.actors.inbox import ask_start
from cueline.errors import ConfigError
from cueline.events.inbox import SecretsWaived, StartAsked
from cueline.events.session import MessageReceived
from cueline.testing.fakes import says
from tests.actors.session_harness import SESSION, SessionHarness

WAIVED = SecretsWaived(names=("TOKEN",), by="ann")


def lacking_host():
    """Return a session in a process where the secret is not set."""
    scene = SessionHarness([says("Yes.")])
    scene.agent = scene.agent.model_copy(update={"secrets": ("TOKEN",)})
    scene.outside.check_secrets = refuse
    return scene


def refuse(agent, waived):
    for name in agent.secrets:
        if name not in waived:
            raise ConfigError(name, "is not set here")


async def test_a_session_whose_secret_is_not_known_is_set_aside_until_that_is_waived():
    scene = lacking_host()

    world = await scene.begin()
    before = await scene.types()
    await scene.say(WAIVED)
    await world.rest()

    assert [] == before
    assert ["TOKEN: is not set here"] == [str(error) for _, error in world.troubles]
    assert "completed" == (await scene.state()).status
    assert "user:ann" == actor_of(await scene.last(MessageReceived))


async def test_what_was_waived_with_the_start_needs_no_more_word():
    scene = lacking_host()
    asked = StartAsked(agent=scene.agent, goal="go", open=True, asked_at=scene.clock.now())
    await ask_start(scene.outside.journal, "s", asked, with_it=[WAIVED])

    world = await scene.world()
    await world.kill()
    world = await scene.world()
    await world.rest()

    assert [] == world.troubles
    assert "idle" == (await scene.state()).status
    assert ("TOKEN",) == (await scene.outside.state(SESSION)).setup.waived
