"""A call that goes on as a task of its server, through the host, on a clock that a test moves."""

from collections import Counter
from datetime import timedelta

from cueline.actors.tool_port import ToolQuestion, ToolTask
from cueline.deciders.session import wake_at
from cueline.errors import ToolFailedError
from cueline.events.codes import NOT_STARTED
from cueline.events.inbox import StopAsked
from cueline.events.input_request import InputRequest
from cueline.events.session import ToolDeferred, ToolFailed, ToolInDoubt, ToolReturned
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SessionHarness

HOURS = 3600.0
ASKS = ToolQuestion((InputRequest(key="which", message="Which?"),))


class Server:
    """A server whose task ends after *seconds*, or as *says* says at the next poll."""

    def __init__(self, scene, seconds=6 * HOURS, ttl=None, handle="job-7"):
        self.scene, self.ends, self.ttl = scene, None, ttl
        self.seconds, self.handle = seconds, handle
        self.begun, self.polls, self.cancelled = 0, [], False
        self.says = []

    async def __call__(self, order):
        now = self.scene().clock.now()
        if order.task is None:
            self.begun += 1
            self.ends = now + timedelta(seconds=self.seconds)
            return ToolTask(self.handle, ttl_seconds=self.ttl)
        self.polls.append(order)
        self.cancelled = self.cancelled or order.task.cancel
        said = self.says.pop(0) if self.says else None
        if isinstance(said, Exception):
            raise said
        if said is not None:
            return said
        return "the result" if now >= self.ends else ToolTask("job-7", ttl_seconds=self.ttl)


def scene_of(tool="pay", **more):
    """Return a scene whose only call becomes a task, and the task's server."""
    server = Server(lambda: scene, **more)
    scene = SessionHarness([asks_for((tool, {})), says("Done.")], act=server)
    return scene, server


async def wait(scene, world, seconds):
    """Let time pass, and wake the session at each of its times."""
    until = scene.clock.now() + timedelta(seconds=seconds)
    while (moment := wake_at(await scene.state())) is not None and moment <= until:
        await scene.clock.advance(max((moment - scene.clock.now()).total_seconds(), 0.0))
        await world.dispatcher.tick()
        await scene.clock.settle()
        assert [] == await world.host.active(), "I12: it holds a place in its host"


async def test_a_task_of_six_hours_takes_two_hundred_polls_and_two_facts_each():
    scene, server = scene_of()
    world = await scene.begin()
    assert [] == await world.host.active()

    await wait(scene, world, 7 * HOURS)

    assert 1 == server.begun
    assert 150 < len(server.polls) < 250
    counted = Counter(await scene.types())
    assert (1, 1) == (counted["ToolStarted"], counted["ToolDeferred"])
    assert len(server.polls) == counted["SessionWaiting"]
    assert "the result" == (await scene.last(ToolReturned)).output
    assert "SessionCompleted" == (await scene.types())[-1]


async def test_the_task_goes_on_in_other_hosts_after_each_was_killed():
    scene, server = scene_of(seconds=100.0)
    world = await scene.begin()
    for _ in range(8):
        await world.kill()
        world = await scene.world()
        moment = wake_at(await scene.state())
        await scene.clock.advance(max((moment - scene.clock.now()).total_seconds(), 0.0))

    await wait(scene, world, 200.0)

    assert 1 == server.begun
    assert "SessionCompleted" == (await scene.types())[-1]


async def test_a_host_that_dies_in_a_poll_has_another_one_ask_again():
    scene, server = scene_of(seconds=0.0)

    async def hang():
        await scene.clock.sleep(HOURS)

    async def hanging(order):
        if order.task is not None and not server.polls:
            server.polls.append(order)
            await hang()
        return await server(order)

    scene.executor.tools = dict.fromkeys(scene.executor.tools, hanging)
    world = await scene.begin()
    await scene.clock.advance(3.0)
    await world.dispatcher.tick()
    await scene.clock.settle()
    assert 1 == len(server.polls)

    await world.kill()
    world = await scene.world()
    await wait(scene, world, 60.0)

    assert 1 == server.begun
    assert "the result" == (await scene.last(ToolReturned)).output


async def test_a_server_that_does_not_answer_is_asked_again_and_the_call_never_repeated():
    scene, server = scene_of("save", seconds=30.0)
    server.says = [ToolFailedError(NOT_STARTED, "down"), ToolFailedError("timeout", "slow")]
    world = await scene.begin()

    await wait(scene, world, 60.0)

    assert 1 == server.begun
    assert "the result" == (await scene.last(ToolReturned)).output


async def test_a_task_that_the_server_has_lost_is_in_doubt():
    scene, server = scene_of()
    server.says = [ToolFailedError("lost", "unknown task")]
    world = await scene.begin()

    await wait(scene, world, 3.0)

    assert "unknown task" == (await scene.last(ToolInDoubt)).cause.message


async def test_a_task_that_failed_fails_its_call():
    scene, server = scene_of()
    server.says = [ToolFailedError("tool_error", "no such bank")]
    world = await scene.begin()

    await wait(scene, world, 3.0)

    assert "no such bank" == (await scene.last(ToolFailed)).message


async def test_a_task_has_as_long_as_its_server_keeps_it():
    scene, server = scene_of(ttl=600.0)
    world = await scene.begin()

    await wait(scene, world, HOURS)

    assert server.cancelled
    doubt = await scene.last(ToolInDoubt)
    assert "its task is not waited for any more: it has not ended" == doubt.cause.message
    assert [True] == [order.task.cancel for order in server.polls if order.task.cancel]


async def test_a_server_may_keep_the_task_for_longer():
    scene, server = scene_of(seconds=1000.0, ttl=600.0)
    world = await scene.begin()
    began, server.ttl = await scene.last(ToolDeferred), 2000.0

    await wait(scene, world, HOURS)

    assert began.at + timedelta(seconds=2000) == (await scene.last(ToolDeferred)).deadline_at
    assert "the result" == (await scene.last(ToolReturned)).output


async def test_a_stop_cancels_the_task():
    scene, server = scene_of()
    await scene.begin()

    await scene.say(StopAsked())

    assert server.cancelled
    assert ["ToolInDoubt", "SessionStopped"] == (await scene.types())[-2:]


async def test_a_task_that_asks_gets_the_answer_with_the_next_poll():
    scene, server = scene_of()
    server.says = [ASKS, "thanks"]
    world = await scene.begin()
    await wait(scene, world, 3.0)

    await scene.decide(result='{"which": {"colour": "red"}}')

    assert {"which": {"colour": "red"}} == server.polls[-1].given.answers
    assert "thanks" == (await scene.last(ToolReturned)).output


async def test_a_person_who_refuses_refuses_the_question_and_not_the_task():
    scene, server = scene_of(seconds=10.0)
    server.says = [ASKS]
    world = await scene.begin()
    await wait(scene, world, 3.0)

    await scene.decide("deny")

    assert {"which": False} == server.polls[-1].given.answers
    await wait(scene, world, 20.0)
    assert "the result" == (await scene.last(ToolReturned)).output


async def test_a_task_whose_handle_cannot_be_read_here_is_in_doubt():
    scene, server = scene_of(handle="")  # as with another master key
    world = await scene.begin()

    await wait(scene, world, 3.0)

    assert "master key" in (await scene.last(ToolInDoubt)).cause.message
    assert [] == server.polls
