"""What a fleet does next: from the wanted and the observed workers."""

import pytest

from cueline.deciders.fleet import HOSTS, RUNNERS, Group, Range
from cueline.deciders.fleet_worker import (
    Begins,
    Joined,
    Leaves,
    Loaded,
    Lost,
    Waits,
    WorkerState,
    note,
)
from cueline.deciders.matching import Unmet
from cueline.deciders.reconcile import (
    REST_SECONDS,
    Census,
    Node,
    Report,
    Retire,
    Start,
    decide,
    fits,
    needed,
)
from cueline.events.agent_parts import Demands

PLACE = Node({}, {"cpus": 4.0})
PAIR = Group("runner", per_node=2)
GPUS = Group("runner", labels=(("zone", "b"),), resources=(("gpus", 1.0),))
IDLE_SECONDS = 60.0


class Fleet:
    """Workers that do at once what is decided."""

    def __init__(self, *nodes, **wanted):
        self.census = Census()
        self.wanted = {Group(kind): Range(*count) for kind, count in wanted.items()}
        self.now = 100.0
        self.workers = {}
        self.states = {}
        self.started = 0
        for node in nodes:
            self.census.add_node(node, PLACE)

    def decide(self, **unmet):
        return decide(
            self.wanted,
            self.census,
            self.now,
            unmet={Group(kind): count for kind, count in unmet.items()},
            idle_seconds=IDLE_SECONDS,
        )

    def act(self, **unmet):
        """Do what is decided, until nothing is any more; return it."""
        done = []
        while actions := self.decide(**unmet):
            done += actions
            for action in actions:
                match action:
                    case Start(group=group, node=node):
                        self.start(group, node)
                    case Retire(worker=worker):
                        self.note(worker, Leaves("it was retired"))
                        self.workers.pop(worker)
                    case Report(group=group, pending=pending):
                        self.census.members(group).reported = pending
            unmet = {}
        return done

    def note(self, worker, fact):
        self.states[worker], _ = note(self.states[worker], fact, self.now)
        self.census.put(worker, self.states[worker])

    def start(self, group, node=""):
        name = f"{group.kind}-{self.started}"
        self.started += 1
        self.workers[name] = node
        self.states[name] = WorkerState(group, node)
        self.note(name, Begins())
        return name

    def work(self, worker, load=1):
        if self.states[worker].phase != "running":
            self.note(worker, Joined(self.states[worker].node))
        self.note(worker, Loaded(load))

    def idle(self):
        for worker in self.workers:
            self.work(worker, 0)

    def lose(self, worker=None):
        worker = worker or next(iter(self.workers))
        self.workers.pop(worker)
        self.note(worker, Lost())


def test_as_many_as_are_wanted_are_started():
    fleet = Fleet(host=(1, 1), runner=(2, 2))

    assert [Start(HOSTS), Start(RUNNERS), Start(RUNNERS)] == fleet.act()


def test_nothing_is_done_once_all_are_there():
    fleet = Fleet(host=(1, 1), runner=(2, 2))
    fleet.act()

    assert [] == fleet.decide()


def test_a_lost_worker_is_replaced():
    fleet = Fleet(runner=(2, 2))
    fleet.act()
    fleet.now += 3600
    fleet.lose("runner-0")

    assert [Start(RUNNERS)] == fleet.act()


def test_those_beyond_the_wanted_number_retire_idle_ones_first():
    fleet = Fleet(runner=(3, 3))
    fleet.act()
    fleet.idle()
    fleet.work("runner-2")
    fleet.wanted = {RUNNERS: Range(1, 1)}
    idle = fleet.act()
    fleet.wanted = {RUNNERS: Range(0, 0)}

    assert [Retire("runner-1"), Retire("runner-0")] == idle
    assert [Retire("runner-2")] == fleet.act()


def test_a_group_that_nobody_wants_any_more_retires():
    fleet = Fleet(runner=(1, 1))
    fleet.act()
    fleet.wanted = {}

    assert [Retire("runner-0")] == fleet.act()


def test_a_returned_worker_counts_again():
    # D13: so there is one too many now.
    fleet = Fleet(runner=(1, 1))
    fleet.act()
    fleet.now += 3600
    fleet.lose("runner-0")
    [start] = fleet.act()

    fleet.start(RUNNERS)

    assert (Start(RUNNERS), [Retire("runner-2")]) == (start, fleet.act())


# Starts follow demand.


def test_workers_start_for_waiting_work_up_to_the_most():
    fleet = Fleet(runner=(0, 4))

    first = fleet.act(runner=3)
    for worker in fleet.workers:
        fleet.work(worker)

    assert ([Start(RUNNERS)] * 3, [Start(RUNNERS)]) == (first, fleet.act(runner=9))


def test_those_that_start_already_are_counted():
    fleet = Fleet(runner=(0, 4))
    fleet.act(runner=2)

    assert [] == fleet.decide(runner=2)


def test_idle_workers_beyond_the_least_retire_after_a_while():
    fleet = Fleet(runner=(1, 4))
    fleet.act(runner=2)
    fleet.idle()
    fleet.now += IDLE_SECONDS / 2
    before = fleet.decide()
    fleet.work("runner-0")
    fleet.work("runner-0", 0)
    fleet.now += IDLE_SECONDS / 2

    assert ([], [Retire("runner-1")]) == (before, fleet.act())


def test_a_worker_that_is_idle_still_is_idle_since_then():
    fleet = Fleet(runner=(0, 4))
    fleet.act(runner=1)
    fleet.idle()
    fleet.now += IDLE_SECONDS / 2
    fleet.idle()
    fleet.now += IDLE_SECONDS / 2

    assert [Retire("runner-0")] == fleet.decide()


def test_no_idle_worker_retires_while_work_waits():
    fleet = Fleet(runner=(0, 1))
    fleet.act(runner=1)
    fleet.idle()
    fleet.now += IDLE_SECONDS

    assert [] == fleet.decide(runner=1)


def test_work_that_idle_workers_do_not_take_starts_no_more_of_them():
    fleet = Fleet(runner=(0, 4))
    fleet.act(runner=1)
    fleet.idle()

    assert [] == fleet.decide(runner=1)


WAITS = Unmet(Demands(), 9)
BUILDS = Unmet(Demands(labels={"zone": "b"}), 3)


def test_a_runner_is_needed_for_each_eight_calls_that_wait():
    assert {RUNNERS: 2} == needed({RUNNERS: Range(0, 4)}, [WAITS], 8, is_full=False)


def test_calls_with_demands_need_runners_that_meet_them():
    wanted = {RUNNERS: Range(0, 4), GPUS: Range(0, 4), HOSTS: Range(1, 4)}

    assert {RUNNERS: 2, GPUS: 1} == needed(wanted, [WAITS, BUILDS], 8, is_full=False)


def test_a_machine_that_a_call_demands_keeps_no_runner_from_starting():
    waits = Unmet(Demands(machine="m1"), 1)

    assert {RUNNERS: 1} == needed({RUNNERS: Range(0, 4)}, [waits], 8, is_full=False)


def test_a_group_of_an_exact_number_needs_no_more():
    assert {} == needed({RUNNERS: Range(1, 1), HOSTS: Range(1, 1)}, [WAITS], 8, is_full=True)


def test_a_host_is_needed_while_sessions_wait_for_a_place():
    wanted = {RUNNERS: Range(0, 4), HOSTS: Range(1, 4)}

    assert {HOSTS: 1} == needed(wanted, [], 8, is_full=True)


# Workers that die young.


def test_workers_that_die_young_one_after_the_other_are_replaced_after_a_rest():
    fleet = Fleet(runner=(1, 1))
    fleet.act()
    fleet.lose()
    first = fleet.act()
    fleet.lose()
    second = fleet.act()
    fleet.now += REST_SECONDS

    assert ([Start(RUNNERS)], [], [Start(RUNNERS)]) == (first, second, fleet.act())


def test_several_that_die_young_at_once_are_replaced_at_once():
    # As with their node.
    fleet = Fleet(runner=(4, 4))
    fleet.act()
    fleet.lose("runner-0")
    fleet.lose("runner-1")

    assert [Start(RUNNERS)] * 2 == fleet.act()


def test_a_worker_that_lived_ends_the_row_of_those_that_died_young():
    fleet = Fleet(runner=(1, 1))
    for seconds in (0, 3600, 0):
        fleet.act()
        fleet.now += seconds
        fleet.lose()

    assert [Start(RUNNERS)] == fleet.act()


# Workers that wait for a node.


def test_workers_that_wait_for_a_node_are_reported_once_and_when_they_are_placed():
    fleet = Fleet(runner=(2, 2))
    fleet.act()
    fleet.note("runner-0", Waits("here"))
    fleet.note("runner-1", Waits("here"))
    waits = fleet.act()
    fleet.idle()

    assert ([Report(RUNNERS, 2)], [Report(RUNNERS, 0)]) == (waits, fleet.act())


def test_a_pending_worker_that_nobody_wants_any_more_is_given_up():
    fleet = Fleet(runner=(1, 1))
    fleet.act()
    fleet.note("runner-0", Waits("here"))
    fleet.act()
    fleet.wanted = {}

    assert [Retire("runner-0"), Report(RUNNERS, 0)] == fleet.act()


# Nodes.


def test_nodes_take_turns():
    fleet = Fleet("a", "b", runner=(3, 3))

    assert ["a", "b", "a"] == [start.node for start in fleet.act()]


def test_the_node_of_a_lost_worker_has_the_next_turn():
    fleet = Fleet("a", "b", "c", runner=(3, 3))
    fleet.act()
    fleet.now += 3600
    fleet.lose("runner-1")

    assert [Start(RUNNERS, "b")] == fleet.act()


def test_one_of_several_on_a_node_is_replaced_there_if_it_is_the_only_one():
    fleet = Fleet("a", runner=(2, 2))
    fleet.act()
    fleet.now += 3600
    fleet.lose()

    assert [Start(RUNNERS, "a")] == fleet.act()


def test_a_node_that_ray_chose_instead_is_the_one_that_counts():
    fleet = Fleet("a", "b", runner=(1, 1))
    fleet.act()
    fleet.note("runner-0", Joined("b"))
    fleet.note("runner-0", Joined("b"))
    fleet.wanted = {RUNNERS: Range(2, 2)}

    assert [Start(RUNNERS, "a")] == fleet.act()


def test_workers_move_from_a_node_that_drains():
    fleet = Fleet("a", "b", runner=(2, 2))
    fleet.act()
    fleet.census.drain({"a"})

    assert [Retire("runner-0"), Start(RUNNERS, "b")] == fleet.act()


def test_a_worker_that_starts_on_a_draining_node_moves_too():
    fleet = Fleet("a", "b", runner=(1, 1))
    fleet.act()
    fleet.census.drain({"b"})
    fleet.note("runner-0", Joined("b"))

    assert [Retire("runner-0"), Start(RUNNERS, "a")] == fleet.act()


def test_those_on_a_draining_node_are_the_ones_that_retire():
    fleet = Fleet("a", "b", runner=(2, 2))
    fleet.act()
    fleet.census.drain({"b"})
    fleet.wanted = {RUNNERS: Range(0, 0)}

    assert [Retire("runner-1"), Retire("runner-0")] == fleet.decide()


def test_workers_on_a_node_that_left_are_lost_by_themselves():
    fleet = Fleet("a", "b", runner=(2, 2))
    fleet.act()
    fleet.census.lose_node("a")
    fleet.now += 3600
    before = fleet.decide()
    fleet.lose("runner-0")

    assert ([], [Start(RUNNERS, "b")]) == (before, fleet.act())


def test_a_node_takes_no_more_than_its_limit():
    fleet = Fleet("a", "b")
    fleet.wanted = {PAIR: Range(3, 3)}

    assert ["a", "b", "a"] == [start.node for start in fleet.act()]
    fleet.wanted = {PAIR: Range(4, 4)}
    assert [Start(PAIR, "b")] == fleet.act()


def test_a_node_with_one_of_two_takes_one_more():
    fleet = Fleet("a", "b")
    fleet.wanted = {PAIR: Range(1, 1)}
    fleet.act()
    fleet.wanted = {PAIR: Range(5, 5)}

    assert ["b", "a", "b", ""] == [start.node for start in fleet.act()]


def test_workers_beyond_the_limit_of_all_nodes_wait_for_a_new_one():
    fleet = Fleet("a")
    fleet.wanted = {PAIR: Range(9, 9)}

    actions = fleet.decide()

    assert [Start(PAIR, "a")] * 2 == actions[:2]
    assert [Start(PAIR)] * 2 == actions[2:4]
    assert [Report(PAIR, 5)] == actions[4:]


def test_those_that_wait_for_a_new_node_avoid_the_full_ones():
    fleet = Fleet("a")
    fleet.wanted = {PAIR: Range(2, 2)}
    fleet.act()
    fleet.wanted = {PAIR: Range(4, 4)}
    starts = fleet.act()
    fleet.census.add_node("b", PLACE)
    fleet.note("runner-2", Joined("b"))
    fleet.note("runner-3", Joined("b"))
    fleet.wanted = {PAIR: Range(5, 5)}

    assert [Start(PAIR, avoid=("a",))] * 2 == starts
    assert [Start(PAIR, avoid=("a", "b"))] == fleet.act()


def test_a_node_without_what_a_group_takes_gets_none_of_it():
    fleet = Fleet("a")
    fleet.census.add_node("b", Node({"zone": "b"}, {"cpus": 4.0, "gpus": 1.0}))
    fleet.wanted = {GPUS: Range(2, 2)}

    assert [Start(GPUS, "b")] * 2 == fleet.act()


@pytest.mark.parametrize(
    ("node", "fitting"),
    [
        (Node({"zone": "b"}, {"cpus": 1.0, "gpus": 1.0}), True),
        (Node({"zone": "c"}, {"cpus": 1.0, "gpus": 1.0}), False),
        (Node({"zone": "b"}, {"cpus": 1.0}), False),
        (Node({"zone": "b"}, {"cpus": 0.0, "gpus": 1.0}), False),
    ],
)
def test_a_node_fits_by_its_labels_and_resources(node, fitting):
    assert fitting == fits(GPUS, node)


# Late news.


def test_news_of_a_worker_that_has_left_change_nothing():
    fleet = Fleet(runner=(1, 1))
    fleet.act()
    fleet.note("runner-0", Leaves("it was retired"))
    before = fleet.decide()

    fleet.work("runner-0")
    fleet.work("runner-0", 0)
    fleet.note("runner-0", Waits("here"))
    fleet.note("runner-0", Joined("a"))
    fleet.note("runner-0", Lost())
    fleet.note("runner-0", Leaves("it was retired"))

    assert before == fleet.decide()
