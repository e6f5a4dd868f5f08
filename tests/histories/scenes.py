"""Sessions that were killed, stopped …: what a cueline really wrote, for the histories."""

from cueline.actors.model_port import ModelReply
from cueline.events.inbox import ForkPoint, MessageSent, PauseAsked, ResumeAsked, StopAsked
from cueline.events.message import ThinkingBlock
from cueline.testing.crash import CrashPoint
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SessionHarness, Valve
from tests.crash import planned, story, switched


async def whole():
    """A call of every kind, and an approval."""
    return (await story.undisturbed())[0]


async def killed(**policy):
    """Killed in the middle of an undeclared call; a person says whether it happened."""
    _, world = await story.undisturbed()
    place, agent = story.outside(**policy)
    await place.start("story", agent)
    await story.drive(place, CrashPoint(world.life.points.index("after the tool pay")))
    await story.drive(place)
    return place


async def killed_and_told():
    """The same, where policy tells the model that the outcome is unknown."""
    return await killed(in_doubt="tell")


async def stopped():
    """Stopped while an undeclared call runs, which is killed."""
    scene = SessionHarness([asks_for(("pay", {}), ("read", {})), says("done")], act=Valve())
    await scene.begin()
    await scene.say(StopAsked())
    await scene.clock.advance(10)
    return scene.outside


async def steered():
    """Steered while a question waits, then paused, resumed and followed up."""
    scene = SessionHarness([asks_for(("deploy", {})), says("one"), says("two"), says("three")])
    await scene.begin(open=True)
    await scene.say(MessageSent(lane="steer", text="Not that."))
    await scene.say(PauseAsked(), MessageSent(lane="note", text="A note."), ResumeAsked())
    await scene.say(MessageSent(lane="followup", text="And then?"))
    return scene.outside


async def poisoned():
    """Kills its host again and again, waits for an operator, and goes on."""
    scene = SessionHarness([asks_for(("pay", {})), says("done")])
    await scene.outside.start("s", scene.agent)
    for _ in range(4):
        world = await scene.world(CrashPoint(5))
        await world.kill()
    await scene.world()
    await scene.say(ResumeAsked())
    return scene.outside


async def forked():
    """Forked in the middle of a turn, with calls open."""
    place = await story.cut((await story.undisturbed())[0], 17, [*story.SAID, says("And more.")])
    state = await place.state(story.SESSION)
    point = ForkPoint(stream=story.SESSION, version=15, hash="")
    fork = await place.start("fork", state.agent, "Go on.", fork_of=point)
    await story.drive(place, session=fork)
    return place


async def compacted():
    """Its model changes while a question waits, and old messages become a summary."""
    place, agent = switched.outside()
    await place.start("story", agent)
    await switched.drive(place)
    return place


async def followed():
    """Follows a plan, and is killed in the middle of a call that must not run twice."""
    _, world = await story.undisturbed(planned.outside, planned.drive)
    place, agent = planned.outside()
    await place.start("story", agent)
    await planned.drive(place, CrashPoint(world.life.points.index("after the tool pay")))
    await planned.drive(place)
    return place


async def silent():
    """Its model answers with thoughts alone, is asked once more, and goes on."""
    thoughts = ModelReply(content=(ThinkingBlock(text="Hm."),), stop_reason="end_turn")
    scene = SessionHarness({(1, 1): thoughts, (1, 2): asks_for(("read", {})), (2, 1): says("Yes.")})
    await scene.begin()
    await scene.clock.advance(60)
    return scene.outside


SCENES = (
    *(whole, killed, killed_and_told, stopped, steered, poisoned, forked, compacted, followed),
    silent,
)
