"""A call is started when its runner has a slot for it (I5)."""

import pytest

from cueline.actors.runner_slots import SlotHolder, Slots, SlotTable
from cueline.events.agent_parts import NO_DEMANDS
from cueline.events.inbox import StopAsked
from cueline.events.session import ToolInDoubt
from cueline.testing.fakes import asks_for, says, tool_spec
from tests.actors.session_harness import TOOLS, SessionHarness, Valve

READ = tool_spec("read", "read_only")
READS = asks_for(*(("read", {"n": n}) for n in range(5)))


async def test_no_more_calls_are_started_than_there_are_slots():
    valve = Valve()
    scene = SessionHarness([READS, says("done")], act=valve)

    await scene.begin(slots=Slots(workers=2))

    assert (2, 2) == ((await scene.count())["ToolStarted"], valve.began)
    valve.opened.set()
    await scene.clock.settle()
    assert 5 == (await scene.count())["ToolReturned"]
    assert "SessionCompleted" == (await scene.types())[-1]


async def test_a_call_in_the_loop_waits_for_no_worker():
    loop = tool_spec("fetch", "read_only").model_copy(update={"in_loop": True})
    scene = SessionHarness([asks_for(("read", {}), ("fetch", {}))], (*TOOLS, loop), act=Valve())

    await scene.begin(slots=Slots(loop=1, workers=1))

    assert 2 == (await scene.count())["ToolStarted"]


class Seeker:
    """A session that looks for a slot when it is woken."""

    def __init__(self, table):
        self.holder = SlotHolder(table, self)
        self.rings = 0

    def ring(self):
        self.rings += 1


# The hosts share the slots, and their number changes.
def test_a_host_that_joined_takes_its_share_of_the_slots():
    table = SlotTable(Slots(workers=2))
    Seeker(table).holder.take("1.0", "r1", READ)

    table.resize(Slots(workers=2).share(2))

    assert {"r1"} == set(table.full(READ))


def test_a_host_that_left_gives_its_slots_to_the_sessions_of_the_others():
    table = SlotTable(Slots(workers=1))
    Seeker(table).holder.take("1.0", "r1", READ)
    waits = Seeker(table)
    waits.holder.end_search([NO_DEMANDS])

    table.resize(Slots(workers=2))
    table.resize(Slots(workers=2))

    assert (set(), 1) == (set(table.full(READ)), waits.rings)


async def sessions_in_calls(valve, count):
    """Return a scene, and the streams of sessions that each make a call; one slot is there."""
    scene = SessionHarness([*[asks_for(("pay", {}))] * count, *[says("done")] * count], act=valve)
    streams = [await scene.outside.start(f"s{n}", scene.agent) for n in range(count)]
    return scene, streams, await scene.world(slots=Slots(workers=1))


async def types_of(scene, streams):
    return [await scene.outside.types(stream) for stream in streams]


async def test_the_sessions_that_wait_for_a_slot_go_on_when_one_comes_free():
    valve = Valve()
    scene, streams, _ = await sessions_in_calls(valve, 3)
    assert 1 == valve.began

    valve.opened.set()
    await scene.clock.settle()

    assert ["SessionCompleted"] * 3 == [types[-1] for types in await types_of(scene, streams)]


# Else people are asked about what never began.
async def test_a_kill_leaves_only_calls_in_doubt_that_began():
    valve = Valve()
    scene, streams, world = await sessions_in_calls(valve, 3)
    await world.kill()

    await scene.world()

    types = [each for types in await types_of(scene, streams) for each in types]
    assert 1 == types.count(ToolInDoubt.__name__)


async def test_a_session_that_is_stopped_leaves_its_place_to_the_next():
    valve = Valve()
    scene, streams, _ = await sessions_in_calls(valve, 3)
    await scene.outside.say(streams[1], StopAsked())
    await scene.clock.settle()

    valve.opened.set()
    await scene.clock.settle()

    assert ["SessionCompleted", "SessionStopped", "SessionCompleted"] == [
        types[-1] for types in await types_of(scene, streams)
    ]


@pytest.mark.parametrize(("hosts", "each"), [(1, (256, 8)), (3, (85, 2)), (1000, (1, 1))])
def test_hosts_share_the_slots_of_a_runner_evenly(hosts, each):
    share = Slots().share(hosts)

    assert each == (share.loop, share.workers)
