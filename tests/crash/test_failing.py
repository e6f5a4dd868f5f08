"""Kill a session in which things fail anyway, at every point (004-001, 004-071, 004-072).

A model that is overloaded once, one whose key is not accepted any more, a tool
whose failure passes, and tools that are not critical.
"""

from functools import partial

from cueline.actors.model_port import drop_delta
from cueline.deciders.session import Status, wake_at
from cueline.errors import ProviderRefusedError, ProviderUnavailableError, ToolFailedError
from cueline.events.session import ModelRequested, SessionCompleted, ToolFailed
from cueline.testing.crash import Outside
from cueline.testing.fakes import (
    JournalingExecutor,
    TurnModel,
    agent_spec,
    asks_for,
    says,
    tool_spec,
)
from tests.crash import story
from tests.crash.undisturbed import Undisturbed
from tests.deciders.session_promises import check_attempts

TOOLS = (
    tool_spec("read", "read_only"),
    tool_spec("save", "idempotent"),
    tool_spec("peek", "read_only").model_copy(update={"critical": False}),
    tool_spec("tell").model_copy(update={"critical": False}),
)
SAID = [
    asks_for(("read", {}), ("save", {}), ("peek", {})),
    asks_for(("tell", {}), ("read", {})),
    says("Most of it."),
]
EFFECTS = 5


class MoodyModel(TurnModel):
    """Is busy at first; from turn 2 on its key is not accepted, and its fallback's is."""

    async def reply(self, request, deltas=drop_delta):
        if (request.turn, request.attempt) == (1, 1):
            raise ProviderUnavailableError("overloaded", "busy")
        if request.turn == 2 and request.agent.model == "fake":
            raise ProviderRefusedError("auth", "who are you?")
        return await super().reply(request, deltas)


async def act(order):
    if order.tool.name in ("peek", "tell"):
        raise ToolFailedError("tool_error", "it is broken")
    if order.attempt == 1:
        raise ToolFailedError("network", "no route", 5.0)
    return f"{order.tool.name} is done"


def outside(said=SAID):
    executor = JournalingExecutor(dict.fromkeys((tool.name for tool in TOOLS), act))
    agent = agent_spec(
        *TOOLS,
        retry={"jitter": 0},
        fallback=[{"provider": "other", "model": "second"}],
    )
    return Outside.new(MoodyModel(said), executor), agent


async def wake(place, session):
    """Let time pass until the session looks again; say whether it ever does."""
    moment = wake_at(await place.state(session))
    if moment is not None:
        await place.clock.advance((moment - place.clock.now()).total_seconds())
    return moment


drive = partial(story.drive, go_on=wake)
WHOLE = Undisturbed(outside, drive)


async def assert_ended_the_same(place):
    facts = await place.facts(story.SESSION)
    state = await place.state(story.SESSION)
    assert Status.COMPLETED == state.status
    [ended] = [fact for fact in facts if isinstance(fact, SessionCompleted)]
    assert ("Most of it.", True) == (ended.result, ended.partial)
    await WHOLE.check_told(place)
    # 004-020, 004-075
    check_attempts(facts, state.agent)


async def test_what_is_killed_here_fails_in_every_way():
    facts = await WHOLE.place.facts(story.SESSION)

    assert [0, 0, 0, 1, 1] == [f.fallback for f in facts if isinstance(f, ModelRequested)]
    failed = [(f.effect, f.kind, f.degraded) for f in facts if isinstance(f, ToolFailed)]
    assert sorted(failed) == [
        ("1.0", "network", False),
        ("1.1", "network", False),
        ("1.2", "tool_error", True),
        ("2.0", "tool_error", True),
        ("2.1", "network", False),
    ]
    await assert_ended_the_same(WHOLE.place)


@WHOLE.at_every_point
async def test_a_killed_session_ends_as_if_nothing_had_happened(point):
    place = await WHOLE.killed(point)

    await assert_ended_the_same(place)
    # I5, D9: what is not declared began at most once.
    told = [start.key for start in place.executor.starts if start.tool == "tell"]
    assert len(told) <= 1


@WHOLE.after_every_event
async def test_a_log_cut_after_any_event_goes_on_to_the_same_end(position):
    # I13
    place = await WHOLE.cut(position, SAID)

    await assert_ended_the_same(place)
