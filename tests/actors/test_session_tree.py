"""A child of a session: asked for, limited, and heard of when it has ended."""

import asyncio
from decimal import Decimal

import pytest

from cueline.actors.fold import SessionCache
from cueline.actors.session_tree import child_of
from cueline.deciders.session import Status
from cueline.errors import (
    ProviderRefusedError,
    RejectedError,
    SessionFinishedError,
    UnknownSessionError,
)
from cueline.events.agent import Limits
from cueline.events.budget import Allowance, DescendantAsked
from cueline.events.inbox import ChildAsked, ChildEnded, RaiseAsked, StartAsked, StopAsked
from cueline.events.message import Cost
from cueline.events.session import (
    MessageReceived,
    MessageRefused,
    ModelReplied,
    SessionCompleted,
    SessionTakenOver,
)
from cueline.testing.crash import CrashPoint
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SESSION, Cut, SessionHarness, Valve

CHILD = "session-default/c"
CENT = Decimal("0.01")


def scene(replies=None, **limits):
    """Return a scene in which each call costs 4 cents, and may cost 10."""
    place = SessionHarness(
        replies or [asks_for(("read", {})), says("done")], limits=Limits(**limits)
    )
    place.outside.bound = lambda agent, sent, counted: (sent, 10 * CENT)
    place.outside.price = lambda *_: Cost(usd=4 * CENT, prices="list")
    return place


async def asked(place, parent=SESSION, *, parents=None, **limits):
    agent = place.agent.model_copy(update={"limits": Limits(**limits)})
    options = StartAsked(agent=agent, goal="help", asked_at=place.clock.now())
    return await child_of(parents or SessionCache(place.outside.journal), parent, options)


async def spawn(place, name="c", parent=SESSION, *, stays=False, parents=None, **limits):
    """Ask for a child of a session, and return its stream."""
    options = await asked(place, parent, parents=parents, **limits)
    fields = {n: getattr(options, n) for n in ("parent", "root", "depth", "allowances")}
    return await place.outside.start(name, options.agent, "help", open=stays, **fields)


class CountedStore:
    """A log that counts the events of the parent that are read."""

    def __init__(self, store):
        self._store = store
        self.read_events = 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def read(self, stream, *range_):
        async for recorded in self._store.read(stream, *range_):
            self.read_events += stream == SESSION
            yield recorded


async def told(place, kind, stream=SESSION):
    """Return the messages of a kind that a session has read."""
    facts = await of_kind(place, MessageReceived, stream)
    return [fact.message for fact in facts if isinstance(fact.message, kind)]


async def of_kind(place, kind, stream=SESSION):
    return [fact for fact in await place.outside.facts(stream) if isinstance(fact, kind)]


@pytest.mark.parametrize("limits", [{}, {"max_cost": Decimal(5)}])
async def test_a_parent_is_told_of_its_child_and_of_what_it_spent(limits):
    place = scene(**limits)
    await place.begin(open=True)
    await spawn(place)
    await place.world()

    assert [CHILD] == [fact.child for fact in await told(place, ChildAsked)]
    (settled,) = await told(place, ChildEnded)
    assert ("completed", 8 * CENT) == (settled.status, settled.usd)
    assert 1 == len(await of_kind(place, SessionCompleted, CHILD))


async def test_a_child_costs_no_more_to_ask_for_the_more_there_were_before():
    place = scene({(1, 1): says("done")})
    await place.begin(open=True)
    store = CountedStore(place.outside.store)
    parents, read = SessionCache(place.outside.journal_on(store)), []
    for number in range(5):
        before = store.read_events
        await spawn(place, f"c{number}", parents=parents)
        read.append(store.read_events - before)
        await place.world()

    assert 5 == len(await told(place, ChildEnded))
    assert 1 == len(set(read[1:]))


async def test_a_parent_is_asked_as_it_is_by_now():
    place = scene({(1, 1): says("done")}, max_cost=Decimal(1))
    await place.begin(open=True)
    parents = SessionCache(place.outside.journal)
    await spawn(place, parents=parents)
    await place.outside.say(SESSION, RaiseAsked(max_cost=Decimal(5)))
    await place.world()

    raised = await asked(place, parents=parents)
    await place.outside.say(SESSION, StopAsked())
    await place.world()

    assert [Decimal(5)] == [each.max_cost for each in raised.allowances]
    with pytest.raises(SessionFinishedError):
        await asked(place, parents=parents)


async def with_a_child_that_nobody_drives():
    place = scene()
    await (await place.begin(open=True)).kill()
    await spawn(place)
    return place


async def test_a_parent_is_told_of_what_a_failed_call_of_its_child_cost():
    refused = ProviderRefusedError("refused", "no", used={"input": 9, "output": 7})
    place = scene({(1, 1): says("Go on."), (2, 1): says("done")})
    await place.begin(open=True)
    place.model._replies = {(1, 1): refused}
    await spawn(place)
    await place.world()

    (settled,) = await told(place, ChildEnded)
    assert ("failed", 16, 4 * CENT) == (settled.status, settled.tokens, settled.usd)


# I7: not one message lost, none twice, wherever the child's process dies.
async def test_a_parent_is_told_at_most_once_whoever_dies():
    place = await with_a_child_that_nobody_drives()
    points = len((await place.world()).life.points)

    assert points > 15
    for point in range(points):
        place = await with_a_child_that_nobody_drives()
        await (await place.world(CrashPoint(point))).kill()
        await (await place.world()).rest(within=60)

        assert 1 == len(await told(place, ChildAsked)), point
        assert 1 == len(await told(place, ChildEnded)), point
        ends = await of_kind(place, ChildEnded, "inbox-default/s")
        takeovers = await of_kind(place, SessionTakenOver, CHILD)
        lost = sum(len(fact.lost_attempts) for fact in takeovers)
        assert [8 * CENT + 10 * CENT * lost] == [fact.usd for fact in ends], point


# I7, C23: what it spent is read before its last append; until then that stays in memory.
async def test_a_parent_hears_of_a_child_that_ends_while_the_log_cannot_be_read():
    valve, life = Valve(says("done")), Cut()
    place = scene([valve])
    await (await place.begin(open=True)).kill()
    await spawn(place)
    await place.world(life)
    life.away = True
    valve.opened.set()
    await place.clock.advance(5)
    life.away = False
    await place.clock.advance(1)

    assert 1 == len(await of_kind(place, ChildEnded, "inbox-default/s"))
    assert 1 == len(await of_kind(place, ModelReplied, CHILD))


# I7: who asks for both at once need not wait until the parent is taken up.
async def test_a_child_is_asked_for_as_soon_as_its_parent_is():
    place = scene(max_cost=Decimal(5))
    await place.outside.start("s", place.agent, open=True)
    early = await asked(place, max_cost=Decimal(1))
    await spawn(place)
    await place.world()

    assert early.allowances == (await asked(place)).allowances
    assert [CHILD] == [fact.child for fact in await told(place, ChildAsked)]
    (settled,) = await told(place, ChildEnded)
    assert ("completed", 8 * CENT) == (settled.status, settled.usd)


# I8: each limit on the way to the root.
async def test_a_child_has_the_limits_of_all_above_it():
    place = scene(max_cost=Decimal(5))
    await place.begin(open=True)
    child = await spawn(place, max_tokens=9000)
    await place.world()

    own = Allowance(session=SESSION, max_cost=Decimal(5))
    first = await asked(place)
    assert (SESSION, SESSION, 1, (own,)) == (
        first.parent, first.root, first.depth, first.allowances
    )  # fmt: skip
    assert child == CHILD


async def test_a_raised_limit_is_the_one_that_a_child_begins_with():
    place = scene(max_cost=Decimal(5))
    await place.begin(open=True)
    await place.say(RaiseAsked(max_cost=Decimal(7)))

    assert [Decimal(7)] == [each.max_cost for each in (await asked(place)).allowances]


# C25
async def test_a_tree_is_no_deeper_than_its_limit():
    place = scene(max_depth=1)
    await place.begin(open=True)
    await place.outside.start(
        "c", place.agent, "help", open=True, parent=SESSION, root=SESSION, depth=1
    )
    await place.world()

    with pytest.raises(RejectedError, match=r"Maximum nesting depth \(1\) exceeded"):
        await asked(place, CHILD)


async def counted(place):
    return [fact.session for fact in await of_kind(place, DescendantAsked, "tree-default/s")]


# C25, D7: the root's limit, wherever in its tree the parent is and whatever it may itself.
async def test_a_tree_has_no_more_sessions_than_its_root_allows():
    place = scene(max_descendants=2)
    await place.begin(open=True)
    child = await spawn(place, "c", stays=True, max_descendants=9)
    await place.world()
    await spawn(place, "d", child)

    for parent in (SESSION, child):
        with pytest.raises(RejectedError, match=r"2 sessions .* limits\.max_descendants is 2"):
            await spawn(place, "e", parent)

    assert [child, "session-default/d"] == await counted(place)
    assert [] == await place.outside.facts("inbox-default/e")


# C25, I3: the count is checked in the append.
async def test_concurrent_children_cannot_exceed_the_size_of_a_tree():
    place = scene(max_descendants=3)
    await place.begin(open=True)

    ends = await asyncio.gather(
        *(spawn(place, name) for name in ("c", "d", "e", "f", "g")), return_exceptions=True
    )

    assert 2 == sum(isinstance(end, RejectedError) for end in ends)
    assert await counted(place) == [end for end in ends if isinstance(end, str)]
    assert await counted(place) == [
        fact.child for fact in await of_kind(place, ChildAsked, "inbox-default/s")
    ]


async def test_a_session_that_there_is_is_not_counted_twice():
    place = scene()
    await place.begin(open=True)
    await spawn(place)

    with pytest.raises(RejectedError, match="a session with this id exists"):
        await spawn(place, max_turns=2)

    assert [CHILD] == await counted(place)


async def test_a_child_needs_a_parent_that_lives():
    place = scene()
    with pytest.raises(UnknownSessionError):
        await asked(place)
    await place.begin()

    with pytest.raises(SessionFinishedError):
        await asked(place)


async def test_a_parent_that_is_stopped_stops_its_children_and_stays_ended():
    # I6, 003-003
    place = scene([says("done")])
    await place.begin(open=True)
    await spawn(place)
    await place.outside.say(SESSION, StopAsked())
    await (await place.world()).rest(within=60)

    assert Status.STOPPED is (await place.state()).status
    assert Status.STOPPED is (await place.outside.state(CHILD)).status
    (refused,) = await of_kind(place, MessageRefused)
    assert isinstance(refused.message, ChildEnded)
