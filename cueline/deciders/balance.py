"""How many sessions hosts give up, so that all have about as many."""

from collections.abc import Mapping
from math import ceil
from typing import NamedTuple

SLACK = 0.1
"""A host may have this share more sessions than the mean: balanced hosts move nothing."""
FEW = 5
"""It may have this many more in any case."""
MOVES = 100
"""The most sessions that move at a time."""


class Load(NamedTuple):
    """What one host has."""

    sessions: int
    places: int
    """The most sessions that it takes; 0: it takes none, for example because it drains."""
    leaving: int = 0
    """Those of its sessions that move already, as soon as their running effects have ended."""


def surplus(loads: Mapping[str, Load]) -> dict[str, int]:
    """Return how many more sessions each host gives up, most loaded first.

    They go to the hosts with the fewest. No host gives up so many that it has fewer than
    the mean, so no session moves back.
    """
    taking = {host: load for host, load in loads.items() if load.places}
    mean = sum(load.sessions for load in taking.values()) / max(1, len(taking))
    most = max(mean * (1 + SLACK), mean + FEW)
    may_move = MOVES - sum(load.leaving for load in taking.values())
    staying = {host: load.sessions - load.leaving for host, load in taking.items()}
    gives: dict[str, int] = {}
    over = [host for host, stay in staying.items() if stay > most]
    for host in sorted(over, key=staying.__getitem__, reverse=True):
        count = min(staying[host] - ceil(mean), may_move)
        if count > 0:
            gives[host] = count
            may_move -= count
    return gives
