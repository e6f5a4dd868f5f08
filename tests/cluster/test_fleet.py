"""What a fleet does about members that say nothing, and while Ray cannot be asked."""

from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace

import pytest
import ray
from ray.exceptions import ActorDiedError

from cueline.actors.presence import presence_of
from cueline.clock import SystemClock
from cueline.cluster import fleet as fleets
from cueline.cluster import supervisor as supervisors
from cueline.cluster.fleet import Fleet, Member, News
from cueline.cluster.supervisor import Supervisor
from cueline.events.store import to_us
from cueline.testing.wait import await_until

NEVER = None


class Actor:
    """Stands for a handle of Ray: every method brings *answer*, or nothing, or its death."""

    def __init__(self, answer=NEVER):
        self.answer = answer
        self.killed = False

    def __getattr__(self, _method):
        return SimpleNamespace(remote=self._asked)

    def _asked(self, *_arguments):
        future = Future()
        if self.killed:
            future.set_exception(ActorDiedError())
        elif self.answer is not NEVER:
            future.set_result(self.answer)
        return SimpleNamespace(future=lambda: future)


class Board:
    def __init__(self):
        self.present = []

    async def all(self):
        return self.present

    async def leave(self, incarnation):
        self.present = [p for p in self.present if p.incarnation != incarnation]


@pytest.fixture
def there(monkeypatch):
    """Stand for Ray: one node, and actors that are killed at once."""

    async def nodes():
        return {"here"}

    monkeypatch.setattr(fleets, "living_nodes", nodes)
    monkeypatch.setattr(fleets, "START_SECONDS", 0.0)
    monkeypatch.setattr(fleets, "_AGAIN_SECONDS", 0.02)
    monkeypatch.setattr(fleets, "_ANSWER_SECONDS", 0.02)
    monkeypatch.setattr(ray, "kill", lambda actor: setattr(actor, "killed", True))
    monkeypatch.setattr(ray, "cancel", lambda _: None)
    return SimpleNamespace(board=Board(), news=[], made=[])


@pytest.fixture
async def fleet(there):
    def create(*_arguments, **_options):
        there.made.append(Actor())
        return there.made[-1]

    site = SimpleNamespace(node="here", machine="m", named=str, create=create)
    fleet = Fleet(site, there.board, epoch=1, on_trouble=print, on_news=there.news.append)
    yield fleet
    await fleet.close()


def quiet(there, role, answer):
    """Return a member whose beats have not arrived for a while."""
    presence = replace(presence_of(role), beat_us=to_us(SystemClock().now()) - 60_000_000)
    there.board.present.append(presence)
    return Member(role, presence.incarnation, "here", Actor(answer), presence)


async def test_a_lost_member_is_replaced_beside_the_log_while_ray_does_not_answer():
    # 000-068: there is no Ray here at all, and asking for its nodes fails.
    site = SimpleNamespace(node="here")
    fleet = Fleet(site, None, epoch=1, on_trouble=print, on_news=print)

    assert "here" == await fleet._settle("a node that is gone")


async def test_a_member_that_answers_is_not_lost_though_its_beats_do_not_arrive(fleet, there):
    lives = fleet._join(quiet(there, "host", "here I am"))
    frozen = fleet._join(quiet(there, "host", NEVER))

    await fleet.look()

    assert (False, True) == (lives.silent.is_set(), frozen.silent.is_set())


async def test_a_runner_that_does_not_start_is_ended_and_what_waits_for_it_told(fleet, there):
    # I14: hosts may have named it in a call before its process was up.
    fleet._spawn(fleet._keep("runner", "here", None))
    await await_until(lambda: there.news)

    assert ("gone", there.made[0]) == (there.news[0].what, there.news[0].member.handle)
    assert there.made[0].killed


async def test_a_runner_that_never_started_is_followed_to_its_end(fleet, there):
    lost = Member("runner", "runner-1", "here", Actor(NEVER))
    lost.silent.set()
    await fleet_of(fleet, lost)

    await fleet.look()
    before = list(there.news)
    lost.handle.killed = True
    await fleet.look()

    assert ([], ["gone"]) == (before, [news.what for news in there.news])


async def test_a_host_that_thaws_after_its_sessions_went_to_others_is_ended(fleet, there):
    [thaws, frozen] = [quiet(there, "host", NEVER), quiet(there, "host", NEVER)]
    thaws.silent.set()
    frozen.silent.set()
    await fleet_of(fleet, thaws, frozen)
    there.board.present[0] = replace(thaws.presence, beat_us=to_us(SystemClock().now()))

    await fleet.look()

    assert (True, False) == (thaws.handle.killed, frozen.handle.killed)


async def test_one_more_than_are_wanted_is_not_replaced(fleet, there):
    members = [quiet(there, "runner", "started") for _ in range(2)]
    for member in members:
        member.handle.killed = True

    await fleet_of(fleet, *members, runners=1)
    await await_until(lambda: len(there.news) > 1)

    assert 1 == len(there.made)


async def test_what_waits_for_a_runner_is_tried_again_when_there_is_a_host_to_do_so(there):
    # The news of the runner may come while the only host is being replaced.
    placed = []

    class Index:
        async def due(self, now):
            return []

        async def driven(self):
            return []

        async def waiting(self, kind):
            return [f"waits for a {kind}"]

    supervisor = supervisor_of(there, Index(), scope=None, on_trouble=print)

    async def place(streams):
        placed.append(list(streams))

    supervisor.place = place
    for role, what in [("runner", "back"), ("runner", "lost"), ("host", "joined")]:
        supervisor._hear_of(News(what, quiet(there, role, NEVER)))
        await supervisor._look()

    assert [["waits for a runner"]] * 2 == placed


async def test_who_waits_is_told_when_ray_has_ended_where_the_log_is(there, monkeypatch):
    # I14: nothing can be started there again.
    troubles = []

    async def nodes():
        return {"elsewhere"} if troubles == [] else {"here"}

    async def nothing():
        return set()

    monkeypatch.setattr(supervisors, "living_nodes", nodes)
    monkeypatch.setattr(fleets, "leaving_nodes", nothing)
    monkeypatch.setattr(supervisors, "TICK_SECONDS", 0.0)
    scope = ["session-default/7f3a"]

    def tell(stream, error):
        troubles.append((stream, str(error)))

    supervisor = supervisor_of(there, None, scope=scope, on_trouble=tell)
    await supervisor._watch()
    await supervisor._watch()

    assert [(*scope, "Ray: it has ended on this machine")] == troubles


def supervisor_of(there, index, **settings):
    site = SimpleNamespace(parts=SimpleNamespace(index=lambda _: index), node="here")
    return Supervisor(site, None, there.board, **settings)


async def fleet_of(fleet, *members, runners=0):
    fleet._ready.set_result(None)
    await fleet.start(0, runners, members)
