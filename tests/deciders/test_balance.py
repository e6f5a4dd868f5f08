"""How many sessions each host gives up."""

import pytest

from cueline.deciders.matching import MOVES, Load, surplus


def loads(*sessions, places=10_000):
    return {f"host-{n}": Load(each, places) for n, each in enumerate(sessions)}


@pytest.mark.parametrize(
    "sessions", [(), (0,), (500,), (7, 7), (0, 10), (10_000, 10_000), (110, 100, 90), (1000, 1090)]
)
def test_balanced_hosts_move_nothing(sessions):
    assert {} == surplus(loads(*sessions))


def test_a_host_with_many_more_than_the_mean_gives_up_what_it_has_more():
    assert {"host-0": 15} == surplus(loads(30, 0))
    assert {"host-0": 20} == surplus(loads(60, 30, 30))


def test_at_most_so_many_sessions_move_at_a_time_the_most_loaded_host_first():
    few = {"host-0": Load(10_000, 10_000, leaving=MOVES - 10), "host-1": Load(0, 10_000)}

    assert {"host-0": MOVES} == surplus(loads(10_000, 0))
    assert {"host-1": MOVES} == surplus(loads(900, 1000, 0, 0))
    assert {"host-0": 10} == surplus(few)


def test_those_that_leave_already_are_not_asked_for_again():
    assert {} == surplus({"host-0": Load(30, 100, leaving=15), "host-1": Load(0, 100)})


def test_a_host_that_takes_none_neither_gives_nor_counts():
    draining = {**loads(30, 30), "host-2": Load(500, 0), "host-3": Load(0, 0)}

    assert {} == surplus(draining)


@pytest.mark.parametrize("sessions", [(30, 0), (1000, 0, 0), (17, 3, 1, 0, 44), (9000, 8000, 0)])
def test_moves_end_and_none_goes_back(sessions):
    now = dict(loads(*sessions))
    ticks = 0

    while given := surplus(now):
        ticks += 1
        for host, count in given.items():
            now[host] = now[host]._replace(sessions=now[host].sessions - count)
            for _ in range(count):
                least = min(now, key=lambda each: now[each].sessions)
                assert least not in given
                now[least] = now[least]._replace(sessions=now[least].sessions + 1)

    mean = sum(sessions) / len(sessions)
    assert max(load.sessions for load in now.values()) <= max(mean * 1.1, mean + 5)
    assert ticks <= sum(sessions) / MOVES + 1
