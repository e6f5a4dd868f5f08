"""What a host makes of a runner that refuses, is somebody else, or breaks (I3, I5)."""

from cueline.errors import RunnerBusyError, RunnerGoneError, StaleOrderError
from cueline.events.inbox import StopAsked
from cueline.events.session import ApprovalRequested, ToolFailed, ToolInDoubt
from cueline.testing.crash import World
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SESSION, SessionHarness, Valve


class Faulty:
    """A runner as a host reaches it, whose first answers to some questions are errors."""

    def __init__(self, runner, **errors):
        self._runner = runner
        self._errors = {method: [*of] for method, of in errors.items()}

    def __getattr__(self, method):
        whole = getattr(self._runner, method)
        answers = self._errors.get(method)
        if answers is None:
            return whole

        async def asked(*words):
            if answers:
                raise answers.pop(0)
            return await whole(*words)

        return asked


async def driven(tool="pay", act=None, **errors):
    """Drive a session whose one call goes to a runner with *errors*, until nothing happens."""
    scene = SessionHarness([asks_for((tool, {})), says("done")], act=act, retry={"base_seconds": 1})
    await scene.outside.start("s", scene.agent)
    scene.process = World(scene.outside)
    runners = scene.outside.runners.ports
    runners[scene.process.name] = Faulty(scene.process.runner, **errors)
    await scene.process.dispatcher.tick()
    await scene.clock.advance(10)
    return scene


def newer(current):
    return StaleOrderError("r", SESSION, 1, current)


async def test_a_call_that_a_busy_runner_did_not_take_on_is_given_to_one_again():
    scene = await driven(execute=[RunnerBusyError("r")])

    assert "not_started" == (await scene.last(ToolFailed)).kind
    assert (1, "SessionCompleted") == (len(scene.executor.starts), (await scene.types())[-1])


async def test_a_host_that_a_runner_does_not_serve_any_more_lets_go_of_the_session():
    scene = await driven(execute=[newer(2)])

    assert "ToolStarted" == (await scene.types())[-1]
    assert [] == await scene.process.host.active()


# Its word that it never saw the call is not that of the runner that was meant.
async def test_another_incarnation_is_no_witness():
    scene = await driven(execute=[newer(0)], outcome=[newer(0), newer(0)])

    assert "SessionCompleted" == (await scene.types())[-1]
    assert 1 == len(scene.executor.starts)


async def test_a_bug_on_the_way_to_a_runner_leaves_the_call_in_doubt():
    scene = await driven(execute=[ZeroDivisionError("a bug")])

    assert "ZeroDivisionError: a bug" == (await scene.last(ToolInDoubt)).cause.message
    assert "did_it_happen" == (await scene.last(ApprovalRequested)).question


async def test_a_stop_that_does_not_reach_the_runner_ends_all_the_same():
    valve = Valve()
    scene = await driven(act=valve, cancel=[RunnerGoneError("r", "it does not answer")] * 99)

    await scene.say(StopAsked())
    await scene.clock.advance(60)
    valve.opened.set()
    await scene.clock.advance(60)

    assert "SessionStopped" == (await scene.types())[-1]
