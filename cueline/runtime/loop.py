"""The event loop of commands: see ADR 0016."""

import asyncio
import gc
import sys
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")

_YOUNG = 10_000
"""New objects between two runs of the garbage collector, instead of 700."""
_SWITCH_SECONDS = 0.0005
"""The longest turn of one Python thread while another waits, instead of 5 ms."""


def run(work: Coroutine[object, object, T]) -> T:
    """Run *work* in a new event loop, uvloop's if it is installed.

    Facts and states are trees, freed without the collector; its search for cycles after
    every 700 objects takes a tenth of a turn. Each SQLite call lets another thread run, and
    then waits for its turn.
    """
    gc.freeze()  # imported modules stay in memory anyway
    gc.set_threshold(_YOUNG)
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        import uvloop  # noqa: PLC0415 - `--help` runs no loop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)
