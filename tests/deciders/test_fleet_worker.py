"""What becomes of a host or runner, and what its fleet does at each fact about it."""

import pytest
from msgspec.structs import replace

from cueline.deciders.fleet import HOSTS, RUNNERS, Group
from cueline.deciders.fleet_worker import (
    FULL,
    Answers,
    Begins,
    Bury,
    Ends,
    Joined,
    Leaves,
    Loaded,
    Lost,
    Ready,
    Silent,
    Tell,
    Unreachable,
    Waits,
    WorkerState,
    note,
)

NOW = 100.0
HERE = "here"
HOST, RUNNER = WorkerState(HOSTS, HERE), WorkerState(RUNNERS, HERE, is_known=True)


def after(state, *facts):
    """Return the state after *facts*, and what the fleet does about the last one."""
    actions = []
    for fact in facts:
        state, actions = note(state, fact, NOW)
    return state, actions


def running(state, **changes):
    return replace(after(state, Begins(), Joined(HERE))[0], **changes)


def unreachable(state, **changes):
    return replace(after(state, Begins(), Joined(HERE), Lost(), Unreachable("x"))[0], **changes)


# Given, when, then.


@pytest.mark.parametrize(
    ("given", "when", "changed", "then"),
    [
        # It starts.
        (HOST, Begins(), {"began": NOW}, ["watch"]),
        (
            replace(RUNNER, phase="running", leaves="old"),
            Begins(),
            {"began": NOW},
            ["watch", "retire"],
        ),
        (replace(RUNNER, phase="unreachable"), Begins(), {"began": NOW}, []),
        # It waits for a node: only another than the log's own.
        (HOST, Waits("other"), {"phase": "pending"}, [Ready(), "notify"]),
        (RUNNER, Waits("other"), {"phase": "pending", "is_known": False}, ["notify"]),
        (RUNNER, Waits(HERE), {"leaves": FULL}, []),
        (
            WorkerState(Group("runner", per_node=2), HERE, is_known=True),
            Waits(HERE),
            {"phase": "pending", "is_known": False},
            ["notify"],
        ),
        # It joins.
        (
            HOST,
            Joined("b"),
            {"phase": "running", "node": "b", "is_known": True, "since": NOW},
            [Ready(), "notify", Tell("joined")],
        ),
        (
            replace(HOST, leaves="old"),
            Joined(HERE),
            {"phase": "running", "is_known": True, "since": NOW},
            ["notify", Tell("joined")],
        ),
        (RUNNER, Joined(HERE), {"phase": "running", "since": NOW}, ["notify", Tell("joined")]),
        (
            replace(RUNNER, was_lost=True, load=3),
            Joined(HERE),
            {"phase": "running", "load": 0, "since": NOW},
            ["notify", Tell("back")],
        ),
        # It works; the time is that of the change between idle and busy.
        (running(RUNNER, since=1.0), Loaded(2), {"load": 2, "since": NOW}, []),
        (running(RUNNER, since=1.0, load=2), Loaded(1), {"load": 1}, []),
        (running(RUNNER, since=1.0), Loaded(0), {}, []),
        # It leaves.
        (running(HOST), Leaves("old"), {"leaves": "old"}, ["retire"]),
        (running(RUNNER), Leaves("old"), {"leaves": "old"}, [Tell("leaves"), "retire"]),
        # It is lost.
        (running(RUNNER), Silent(), {"silent": True}, []),
        (
            running(RUNNER, since=1.0),
            Lost(),
            {"phase": "lost", "was_lost": True, "since": NOW},
            ["replace"],
        ),
        (
            HOST,
            Lost(""),
            {"phase": "lost", "was_lost": True, "since": NOW},
            [Ready(""), "replace"],
        ),
        (
            replace(HOST, leaves=FULL),
            Lost("no room"),
            {"phase": "lost", "was_lost": True, "since": NOW},
            ["replace"],
        ),
        (
            RUNNER,
            Lost("no room"),
            {"phase": "lost", "was_lost": True, "since": NOW},
            ["replace"],
        ),
        (
            replace(RUNNER, phase="lost"),
            Unreachable("it is silent"),
            {"phase": "unreachable"},
            ["notify", Tell("lost", "it is silent")],
        ),
        # It has ended: hosts only count on a runner's end.
        (replace(HOST, phase="lost"), Ends("x"), {"phase": "ended"}, [Bury("x")]),
        (
            replace(RUNNER, phase="lost", leaves="old"),
            Ends("x"),
            {"phase": "ended"},
            [Bury("old")],
        ),
        (unreachable(RUNNER, leaves="old"), Ends("x"), {"phase": "ended"}, [Bury("x")]),
        (unreachable(HOST), Ends("x"), {"phase": "ended"}, ["end"]),
        # It answers again.
        (unreachable(HOST), Answers(), {"phase": "ended"}, ["end"]),
        (
            unreachable(RUNNER, silent=True, leaves="old"),
            Answers(),
            {"silent": False},
            [],
        ),
        (
            unreachable(RUNNER, silent=True, is_known=False, load=3, began=1.0, since=1.0),
            Answers(),
            {
                "phase": "running",
                "silent": False,
                "is_known": True,
                "load": 0,
                "began": NOW,
                "since": NOW,
            },
            ["watch"],
        ),
    ],
)
def test_a_fact_changes_the_state_and_has_the_fleet_act(given, when, changed, then):
    assert (replace(given, **changed), then) == after(given, when)


def test_a_runner_that_was_lost_and_answers_is_back():
    state, actions = after(running(RUNNER), Lost(), Unreachable("x"), Answers(), Joined(HERE))

    assert (True, ["notify", Tell("back")]) == (state.counts, actions)


@pytest.mark.parametrize(
    ("facts", "is_member", "counts"),
    [
        ([], True, True),
        ([Waits("other")], True, True),
        ([Joined(HERE)], True, True),
        ([Joined(HERE), Leaves("old")], True, False),
        ([Joined(HERE), Lost()], False, False),
        ([Joined(HERE), Lost(), Unreachable("x")], False, False),
        ([Joined(HERE), Lost(), Ends("x")], False, False),
    ],
)
def test_a_worker_counts_until_it_leaves_or_is_lost(facts, is_member, counts):
    state, _ = after(RUNNER, *facts)

    assert (is_member, counts) == (state.is_member, state.counts)
