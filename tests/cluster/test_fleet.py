"""What a fleet does about members that say nothing, and while Ray cannot be asked."""

import asyncio
from concurrent.futures import Future
from dataclasses import replace as other
from datetime import timedelta
from types import SimpleNamespace

import pytest
import ray
from msgspec.structs import replace
from ray.exceptions import ActorDiedError, RaySystemError

from cueline.actors.presence import REMOVAL_SECONDS, presence_of
from cueline.actors.runner_slots import SLOTS
from cueline.clock import SystemClock
from cueline.cluster import command as commands
from cueline.cluster import control_loops, fleet_supervisor
from cueline.cluster import fleet_member as members
from cueline.cluster.command import _watch_ray
from cueline.cluster.connection import RayConnection
from cueline.cluster.control_loops import ControlLoops
from cueline.cluster.fleet_member import FleetMember, WorkerEvent
from cueline.cluster.fleet_supervisor import FleetSupervisor
from cueline.deciders.fleet import HOSTS, RUNNERS, Group, Range
from cueline.deciders.fleet_worker import WorkerState
from cueline.deciders.matching import Unmet
from cueline.deciders.reconcile import Node, Report
from cueline.errors import ClusterError, HostsFullError
from cueline.events.agent_parts import Demands
from cueline.stores.presence import MemoryPresence
from cueline.testing.clock import FakeClock
from cueline.testing.wait import await_until

NEVER = None
HERE = "ab" * 28
"""The node of the log."""
QUIET = timedelta(seconds=60)


class Actor:
    """Stands for a handle of Ray: every method brings *answer*, or nothing, or its death.

    Long polls bring nothing until its death.
    """

    POLLS = ("ping", "troubles", "retire")

    def __init__(self, answer=NEVER):
        self.answer = answer
        self.pending = False
        self._killed = False
        self._waiting = []
        self.settled = {}

    def __getattr__(self, method):
        answer = self.settled.get(method, NEVER) if method in self.POLLS else self.answer
        if method == "__ray_call__" and answer is not NEVER:
            answer = HERE
        return SimpleNamespace(remote=lambda *_: self._asked(answer, method))

    def settle(self, method, answer):
        """Have the long poll *method* bring *answer*."""
        self.settled[method] = answer
        for asked, future in self._waiting:
            if asked == method:
                future.set_result(answer)
        self._waiting = [each for each in self._waiting if each[0] != method]

    def _asked(self, answer, method):
        future = Future()
        if self._killed:
            future.set_exception(ActorDiedError())
        elif answer is not NEVER:
            future.set_result(answer)
        else:
            self._waiting.append((method, future))
        return SimpleNamespace(future=lambda: future)

    @property
    def killed(self):
        return self._killed

    @killed.setter
    def killed(self, killed):
        self._killed = killed
        for _, future in self._waiting:
            future.cancelled() or future.set_exception(ActorDiedError())
        self._waiting.clear()


@pytest.fixture
def there(monkeypatch):
    """Stand for Ray: one node, and actors that are killed at once."""

    async def nodes():
        return {HERE}

    async def cluster_nodes():
        return {HERE: Node({}, {"cpus": 1.0})}

    async def no_nodes():
        return set()

    async def is_pending(actor, _group):
        return actor.pending

    monkeypatch.setattr(members, "living_nodes", nodes)
    monkeypatch.setattr(fleet_supervisor, "cluster_nodes", cluster_nodes)
    monkeypatch.setattr(fleet_supervisor, "leaving_nodes", no_nodes)
    monkeypatch.setattr(members, "is_pending", is_pending)
    monkeypatch.setattr(members, "START_SECONDS", 0.0)
    monkeypatch.setattr(members, "PENDING_SECONDS", 0.02)
    monkeypatch.setattr(members, "AGAIN_SECONDS", 0.02)
    monkeypatch.setattr(members, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(members, "_ANSWER_SECONDS", 0.02)
    monkeypatch.setattr(ray, "kill", lambda actor: setattr(actor, "killed", True))
    monkeypatch.setattr(ray, "cancel", lambda _: None)
    ago = FakeClock(SystemClock().now() - QUIET)
    return SimpleNamespace(ago=ago, board=MemoryPresence(ago), news=[], made=[])


@pytest.fixture
async def fleet(there):
    def create(*_arguments, **_options):
        there.made.append(Actor())
        return there.made[-1]

    factory = SimpleNamespace(
        removal_seconds=REMOVAL_SECONDS, grace_seconds=0.0, idle_seconds=60.0, slots=SLOTS
    )
    context = SimpleNamespace(node=HERE, machine="m", named=str, create=create, factory=factory)
    fleet = FleetSupervisor(
        context, there.board, epoch=1, on_trouble=print, on_news=there.news.append
    )
    yield fleet
    await fleet.close()


async def quiet(there, role, answer):
    """Return a member whose beats have not arrived for a while."""
    presence = presence_of(role)
    await there.board.beat(presence)
    state = WorkerState(Group(role), HERE, "running", is_known=True)
    return FleetMember(presence.incarnation, Actor(answer), state, presence)


def frozen(member):
    """Have a former dispatcher leave *member*, which does not answer."""
    member.state = replace(
        member.state, phase="unreachable", is_known=False, silent=True, was_lost=True
    )
    return member


async def test_workers_start_although_ray_cannot_be_asked_for_its_nodes(fleet, there, monkeypatch):
    # 000-068: its head may be away.
    async def fails():
        raise RaySystemError("away")

    monkeypatch.setattr(fleet_supervisor, "cluster_nodes", fails)

    await fleet_of(fleet, runners=2)

    assert 2 == len(there.made)


async def test_a_member_that_answers_is_not_lost_though_its_beats_do_not_arrive(fleet, there):
    lives = joined(fleet, await quiet(there, "host", "here I am"))
    freezes = joined(fleet, await quiet(there, "host", NEVER))

    await fleet.look()

    assert (False, True) == (lives.state.silent, freezes.state.silent)


async def test_a_runner_that_does_not_start_is_ended_and_what_waits_for_it_told(fleet, there):
    # I14: hosts may have named it in a call before its process was up.
    await fleet_of(fleet, runners=1)
    await await_until(lambda: there.news)

    assert ("gone", there.made[0]) == (there.news[0].what, there.news[0].member.handle)
    assert there.made[0].killed


async def test_a_runner_that_never_started_is_followed_to_its_end(fleet, there):
    lost = FleetMember("runner-1", Actor(NEVER), WorkerState(RUNNERS, HERE))

    assert ([], ["gone"]) == await told_before_and_after_the_end(fleet, there, lost)


async def test_a_runner_that_ends_after_it_was_back_is_buried(fleet, there):
    # I14: nobody speaks to it any more but sessions that wait for it.
    lost = await quiet(there, "runner", NEVER)
    lost.handle.answer = lost.presence
    frozen(lost)
    await fleet_of(fleet, lost)
    await there.ago.advance(QUIET.total_seconds())
    await there.board.beat(lost.presence)

    await fleet.look()
    await await_until(lambda: there.news)
    lost.handle.killed = True
    await await_until(lambda: len(there.news) > 1)

    assert ["back", "gone"] == [news.what for news in there.news]


async def test_a_lost_runner_of_another_machine_is_buried_when_ray_reports_its_end(fleet, there):
    lost = await quiet(there, "runner", NEVER)
    lost.presence = other(lost.presence, boot_id="elsewhere")
    await there.board.beat(lost.presence)

    assert ([], ["gone"]) == await told_before_and_after_the_end(fleet, there, lost)


async def test_what_is_out_of_reach_for_the_removal_time_is_buried(fleet, there):
    # I14: of a node that Ray has lost, nobody will ever report an exit.
    there.board = fleet._board = MemoryPresence(
        FakeClock(SystemClock().now() - timedelta(seconds=REMOVAL_SECONDS + 1))
    )
    lost = await quiet(there, "runner", NEVER)
    frozen(lost)
    await fleet_of(fleet, lost)

    await fleet.look()

    assert ["gone"] == [news.what for news in there.news]
    assert [] == await there.board.all()


async def test_a_host_that_thaws_after_its_sessions_went_to_others_is_ended(fleet, there):
    [thaws, stays] = [await quiet(there, "host", NEVER), await quiet(there, "host", NEVER)]
    frozen(thaws)
    frozen(stays)
    await fleet_of(fleet, thaws, stays)
    await there.ago.advance(QUIET.total_seconds())
    await there.board.beat(thaws.presence)

    await fleet.look()

    assert (True, False) == (thaws.handle.killed, stays.handle.killed)


async def test_a_host_is_kept_ready_and_takes_the_place_of_one_that_is_lost(
    fleet, there, monkeypatch
):
    monkeypatch.setattr(fleet_supervisor, "_SPARE_SECONDS", 0.0)
    host = await quiet(there, "host", "started")
    await fleet_of(fleet, host, hosts=1)
    await await_until(lambda: there.made)
    assert [host] == fleet.members()

    host.handle.killed = True
    await await_until(lambda: host not in fleet.members())

    assert there.made == [each.handle for each in fleet.members()]


async def test_the_host_that_is_kept_ready_ends_with_the_fleet(fleet, there, monkeypatch):
    monkeypatch.setattr(fleet_supervisor, "_SPARE_SECONDS", 0.0)
    await fleet_of(fleet, await quiet(there, "host", "started"), hosts=1)
    await await_until(lambda: there.made)

    await fleet.close()

    assert [True] == [each.killed for each in there.made]


async def test_one_more_than_are_wanted_is_not_replaced(fleet, there):
    members = [await quiet(there, "runner", "started") for _ in range(2)]
    for member in members:
        member.handle.killed = True

    await fleet_of(fleet, *members, runners=1)
    await await_until(lambda: len(there.news) > 1)

    assert 1 == len(there.made)


async def test_a_runner_of_a_range_starts_when_calls_wait_for_one(fleet, there):
    await fleet_of(fleet)
    fleet.want({RUNNERS: Range(0, 4)})
    before = len(there.made)

    fleet.need([Unmet(Demands(), 9)], {"host-of-another": 1}, is_full=False)

    assert (0, 2) == (before, len(there.made))


async def test_a_runner_that_waits_for_a_node_is_no_failure(fleet, there):
    fleet.context.node = "cd" * 28  # it may not wait for the log's own node
    await fleet.start({RUNNERS: Range(1, 1)})
    there.made[0].pending = True
    await await_until(lambda: waits(fleet))
    fleet.act()

    assert [Report(RUNNERS, 1)] == there.news
    assert (1, [], False) == (len(there.made), fleet._runner_infos(), there.made[0].killed)


async def test_a_worker_for_which_the_logs_own_node_has_no_room_starts_elsewhere(fleet, there):
    await fleet.start({RUNNERS: Range(1, 1)})
    there.made[0].pending = True
    await await_until(lambda: len(there.made) > 1)

    assert there.made[0].killed
    assert "" == fleet.members()[-1].state.node


async def test_a_fleet_starts_although_the_logs_own_node_has_no_room_for_its_first_host(
    fleet, there
):
    starting = asyncio.create_task(fleet.start({HOSTS: Range(1, 1)}))
    await await_until(lambda: there.made)
    there.made[0].pending = True
    await await_until(lambda: len(there.made) > 1)
    there.made[1].pending = True

    await starting


async def test_a_host_that_does_not_answer_is_named_in_the_error(fleet):
    with pytest.raises(ClusterError, match="no session host starts: no answer within 0 s"):
        await fleet.start({HOSTS: Range(1, 1)})


@pytest.mark.parametrize("is_known", [False, True])
async def test_a_worker_that_has_no_node_yet_is_retired_at_once(fleet, there, is_known):
    # Ray's autoscaler would start a node for it.
    fleet.context.node = "cd" * 28  # it may not wait for the log's own node
    await fleet.start({RUNNERS: Range(1, 1)})
    there.made[0].pending = True
    if is_known:
        await await_until(lambda: waits(fleet))

    fleet.want({})
    await await_until(lambda: there.made[0].killed)


async def test_a_worker_that_starts_on_a_node_that_drains_is_retired(fleet, there, monkeypatch):
    async def leaving():
        return {HERE}

    monkeypatch.setattr(fleet_supervisor, "leaving_nodes", leaving)
    fleet.context.node = "cd" * 28
    worker = await quiet(there, "runner", NEVER)
    worker.handle.answer = worker.presence
    worker.state = replace(worker.state, node="")
    await fleet_of(fleet, worker, runners=1)
    await await_until(lambda: len(there.news) > 1)
    fleet.act()

    assert "its node was drained" == worker.state.leaves


async def test_a_returned_runner_accepts_calls_again(fleet, there):
    # D13
    lost = await quiet(there, "runner", NEVER)
    lost.handle.answer = lost.presence
    frozen(lost)
    await fleet_of(fleet, lost)
    before = fleet._runner_infos()
    await there.ago.advance(QUIET.total_seconds())
    await there.board.beat(lost.presence)

    await fleet.look()
    await await_until(lambda: there.news)

    assert ([], [(lost.incarnation, True)]) == (
        before,
        [(each.incarnation, each.takes) for each in fleet._runner_infos()],
    )


async def test_a_retired_runner_ends_when_its_calls_are_settled(fleet, there):
    worker = await quiet(there, "runner", NEVER)
    worker.handle.answer = worker.presence
    await fleet_of(fleet, worker, runners=1)
    await await_until(lambda: there.news)
    fleet.want({})
    takes = [each.takes for each in fleet._runner_infos()]
    lives = not worker.handle.killed

    worker.handle.settle("retire", 0)
    await await_until(lambda: worker.handle.killed)
    await await_until(lambda: len(there.news) > 2)

    assert ([False], True) == (takes, lives)
    assert ["joined", "leaves", "gone"] == [each.what for each in there.news]
    assert "it was retired" == there.news[2].evidence


async def test_what_waits_for_a_runner_is_tried_again_when_there_is_a_host_to_do_so(there):
    # The news of the runner may come while the only host is being replaced.
    placed = []
    loops = waited_for(there, placed)
    for role, what in [("runner", "back"), ("runner", "lost"), ("host", "joined")]:
        loops._hear_of(WorkerEvent(what, await quiet(there, role, NEVER)))
        await loops._look()

    assert ["waits for a runner"] * 2 == placed


async def test_what_waits_for_a_runner_is_tried_again_although_all_hosts_are_full(there):
    placed = []
    loops = waited_for(there, placed)

    async def tick():
        raise HostsFullError(1, 1)

    loops._dispatcher.tick = tick
    loops._hear_of(WorkerEvent("joined", await quiet(there, "runner", NEVER)))
    with pytest.raises(HostsFullError):
        await loops._look()

    assert (["waits for a runner"], True) == (placed, loops._is_full)


async def test_workers_that_wait_for_a_node_are_told_of_once(there):
    said = []
    loops = waited_for(there, [])
    loops._on_trouble = lambda _, error: said.append(str(error))
    group = Group("runner", (("zone", "b"),), (("gpus", 1.0),), 2)

    for number in (2, 3, 0, 1):
        loops._hear_of(Report(group, number))

    needs = "a node with the label zone=b, 0.01 cpus, 1 gpus, and less than 2 of them on it"
    assert [
        f"the fleet: 2 runners wait for {needs}; `cueline fleet` shows it",
        f"the fleet: 1 runner waits for {needs}; `cueline fleet` shows it",
    ] == said


async def test_what_waits_for_a_runner_is_tried_again_without_any_news(there, monkeypatch):
    # I14: a host may have failed to reach one that answers the fleet.
    placed = []
    loops = waited_for(there, placed)
    loops._look_now.set()
    await loops._look()
    before = list(placed)

    monkeypatch.setattr(control_loops, "UNREACHED_SECONDS", 0.0)
    loops._look_now.set()
    await loops._look()

    assert ([], ["waits for a runner"]) == (before, placed)


async def test_a_host_is_told_again_which_runners_there_are(there, monkeypatch):
    # I14: what it was told once may be lost on the way, as while a network breaks.
    heard, answered = [], Actor("understood").know.remote()
    host = await quiet(there, "host", NEVER)
    host.handle.know = SimpleNamespace(remote=lambda *told: heard.append(told) or answered)
    loops = waited_for(there, [])
    joined(loops.fleet, host)

    monkeypatch.setattr(control_loops, "UNREACHED_SECONDS", 0.0)
    loops._look_now.set()
    await loops._look()
    await await_until(lambda: heard)

    assert [(0, [], {}, 1)] == heard


async def test_who_waits_is_told_when_ray_has_ended_where_the_log_is(monkeypatch):
    # I14: nothing can be started there again; while Ray does not answer, nobody knows.
    answers = iter([{"here"}, RaySystemError("away"), {"elsewhere"}])
    asked, troubles = [], []

    async def nodes():
        asked.append(next(answers))
        if isinstance(asked[-1], Exception):
            raise asked[-1]
        return asked[-1]

    def tell(stream, error):
        troubles.append((len(asked), stream, str(error)))

    monkeypatch.setattr(commands, "living_nodes", nodes)
    monkeypatch.setattr(commands, "TICK_SECONDS", 0.0)
    watching = asyncio.create_task(
        _watch_ray(SimpleNamespace(node="here"), ["session-default/7f3a"], tell)
    )
    await await_until(lambda: troubles)
    watching.cancel()

    assert (3, "session-default/7f3a", "Ray: it has ended on this machine") == troubles[0]


async def test_who_waits_for_what_was_started_since_is_told_when_ray_has_ended(there, monkeypatch):
    # I14: a runtime begins with no session at all.
    scope, told = set(), []

    async def nothing(*_):
        pass

    idle = SimpleNamespace(start=nothing, drain=nothing, close=nothing)
    monkeypatch.setattr(commands, "ControlLoops", lambda *_, **__: idle)
    monkeypatch.setattr(commands, "living_nodes", members.living_nodes)
    monkeypatch.setattr(commands, "TICK_SECONDS", 0.0)
    gone = RayConnection("127.0.0.1:1", "a node that has ended", "127.0.0.1", ours=True)
    hear = lambda stream, _: told.append(stream)  # noqa: E731
    factory = SimpleNamespace(writes_anywhere=True, url=None)
    named = {"store": None, "board": None, "hosts": 1, "runners": 1}

    async with commands.command(gone, "n", factory, scope=scope, on_trouble=hear, **named):
        scope.add("session-default/7f3a")
        await await_until(lambda: told)

    assert "session-default/7f3a" == told[0]


async def test_what_control_loops_opened_is_closed_with_them(there):
    # A program may open one runtime after another.
    closed = []
    index = SimpleNamespace(close=lambda: closed.append("the read model"))
    context = SimpleNamespace(factory=SimpleNamespace(index=lambda _: index), node="here")
    loops = ControlLoops(context, None, there.board, scope=None, on_trouble=print)

    await loops.close()

    assert ["the read model"] == closed


def waited_for(there, placed):
    """Return a loops with a session that waits, and whose hosts take what is *placed*."""

    class Index:
        async def overdue(self, now):
            for page in ():
                yield page

        async def pending(self, after):
            return []

        async def driven(self):
            return []

        async def waiting(self, kind, offers=None):
            return [f"waits for a {kind}"]

    async def place(streams):
        placed.extend(streams)

    context = SimpleNamespace(factory=SimpleNamespace(index=lambda _: Index()), node="here")
    loops = ControlLoops(context, None, there.board, scope=None, on_trouble=print)
    loops._dispatcher.place = place
    return loops


async def told_before_and_after_the_end(fleet, there, lost):
    """Have Ray report the end of a *lost* runner once the fleet has looked after it."""
    frozen(lost)
    await fleet_of(fleet, lost)
    await fleet.look()
    before = [news.what for news in there.news]

    lost.handle.killed = True
    await fleet.look()

    return before, [news.what for news in there.news]


def waits(fleet):
    return any(member.state.phase == "pending" for member in fleet.members())


def joined(fleet, member):
    fleet._members[member.incarnation] = member
    return member


async def fleet_of(fleet, *members, hosts=0, runners=0):
    await fleet.start({HOSTS: Range(hosts, hosts), RUNNERS: Range(runners, runners)}, members)
