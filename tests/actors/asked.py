"""A session whose first call needs a person: what the tests of questions share."""

from cueline.events.inbox import DecisionGiven
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SessionHarness

DEPLOY = asks_for(("deploy", {}))
HOUR = 3600.0
GATE = "approval-default/s.1.0.1"
STARTING = "MessageReceived, ApprovalResolved, SessionContinued, ToolStarted"
"""What is appended when the call is allowed, and a runner is about to be told."""


async def asked(**policy):
    orders = []

    async def take(order):
        orders.append(order)
        return "fine"

    scene = SessionHarness(
        [DEPLOY, says("done")], policy={"approval_seconds": HOUR, **policy}, act=take
    )
    scene.orders = orders
    scene.first = await scene.begin()
    return scene


async def wake(scene):
    world = await scene.world()
    await scene.clock.settle()
    return world


async def answer(scene, verdict="grant", by="ann", **more):
    """Decide on the open question, with more than a word."""
    (call,) = [call for call in (await scene.state()).open_calls if call.asking]
    asked_ = call.approval
    await scene.say(
        DecisionGiven(approval=asked_.id, digest=asked_.digest, verdict=verdict, by=by, **more)
    )
