"""Sessions that start later, and series of them, in processes that come and go."""

from datetime import timedelta

from cueline.deciders.session import Status
from cueline.events.inbox import SecretsWaived, StopAsked
from cueline.events.start import Schedule, stream_at
from cueline.events.stream import category_of, sibling
from cueline.testing.clock import NOON
from cueline.testing.fakes import says
from tests.actors.session_harness import SESSION, SessionHarness

HOUR = 3600


def at(hours):
    return NOON + timedelta(hours=hours)


def following(hours):
    """Return the session of the series that starts then."""
    return stream_at(SESSION, at(hours))


def hourly(**agent):
    scene = SessionHarness((says("done"),), **agent)
    return scene, Schedule(at=at(1), every_seconds=HOUR)


async def sessions(scene):
    """Return the status of each session of the log, in the order of the requests."""
    found = {}
    async for recorded in scene.outside.store.read_all():
        if category_of(recorded.stream) == "inbox":
            stream = sibling(recorded.stream, "session")
            found[stream] = (await scene.outside.state(stream)).status
    return found


async def until(scene, world, hours):
    await scene.clock.advance((at(hours) - scene.clock.now()).total_seconds())
    await world.rest()


async def test_a_session_starts_at_its_time_and_holds_nothing_until_then():
    scene = SessionHarness((says("done"),))
    world = await scene.begin(schedule=Schedule(at=at(1)))
    assert [] == await world.host.active()

    await until(scene, world, 0.99)
    assert {SESSION: Status.WAITING} == await sessions(scene)
    await until(scene, world, 1)

    assert {SESSION: Status.COMPLETED} == await sessions(scene)


async def test_each_session_of_a_series_asks_for_the_next():
    scene, schedule = hourly()
    caller = f"00-{'ab' * 16}-{'cd' * 8}-01"
    world = await scene.begin(schedule=schedule, labels={"team": "a"}, traceparent=caller)

    await until(scene, world, 1)
    await until(scene, world, 2)

    assert {
        SESSION: Status.COMPLETED,
        following(2): Status.COMPLETED,
        following(3): Status.WAITING,
    } == await sessions(scene)
    (asked,) = await scene.outside.facts(sibling(following(3), "inbox"))
    assert ("go", {"team": "a"}, SESSION) == (asked.goal, asked.labels, asked.schedule.first)
    assert "" == asked.traceparent, "each session of a series is a trace of its own"


async def test_times_that_were_missed_start_once():
    scene, schedule = hourly()
    former = await scene.begin(schedule=schedule)
    await former.kill()
    await scene.clock.advance(5.5 * HOUR)

    world = await scene.world()
    await world.rest()

    assert {SESSION: Status.COMPLETED, following(6): Status.WAITING} == await sessions(scene)


async def test_a_session_that_nobody_saw_before_its_time_starts_when_somebody_does():
    scene, schedule = hourly()
    await scene.outside.start("s", scene.agent, schedule=schedule)
    await scene.clock.advance(2.5 * HOUR)

    world = await scene.world()
    await world.rest()

    assert {SESSION: Status.COMPLETED, following(3): Status.WAITING} == await sessions(scene)


async def test_a_stop_of_the_session_that_waits_ends_the_series():
    scene, schedule = hourly()
    world = await scene.begin(schedule=schedule)
    await until(scene, world, 1)

    await scene.outside.say(following(2), StopAsked())
    await until(scene, world, 5)

    assert {SESSION: Status.COMPLETED, following(2): Status.STOPPED} == await sessions(scene)


async def test_a_stop_counts_also_if_it_is_read_after_the_time():
    scene, schedule = hourly()
    former = await scene.begin(schedule=schedule)
    await former.kill()
    await scene.outside.say(SESSION, StopAsked())
    await scene.clock.advance(2.5 * HOUR)

    world = await scene.world()
    await world.rest()

    assert {SESSION: Status.STOPPED} == await sessions(scene)
    assert "ModelRequested" not in await scene.types()


async def test_a_process_that_drives_the_first_one_only_goes_on_with_the_series():
    scene, schedule = hourly()
    await scene.outside.start("s", scene.agent, schedule=schedule)
    world = await scene.world(scope={SESSION})
    await until(scene, world, 1)

    await until(scene, world, 2)

    assert Status.COMPLETED is (await sessions(scene))[following(2)]


async def test_the_next_one_does_without_the_same_secrets():
    scene, schedule = hourly()
    await scene.outside.start("s", scene.agent, schedule=schedule)
    await scene.outside.say(SESSION, SecretsWaived(names=("TOKEN",), by="ann"))
    world = await scene.world()

    await until(scene, world, 1)

    _, waived = await scene.outside.facts(sibling(following(2), "inbox"))
    assert ("TOKEN",) == waived.names


async def test_a_session_that_has_the_name_of_the_next_one_loses_nothing():
    scene, schedule = hourly()
    await scene.outside.start(following(2).partition("/")[2], scene.agent)
    world = await scene.begin(schedule=schedule)

    await until(scene, world, 1)

    assert [] == world.troubles
    assert Status.COMPLETED is (await sessions(scene))[SESSION]
    assert "MessageRefused" == (await scene.outside.types(following(2)))[-1]
