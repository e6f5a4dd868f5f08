"""The event loop that commands run in: see ADR 0016."""

import asyncio
import gc
import sys
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")

_YOUNG = 10_000
"""So many new objects before the collector looks at them, instead of 700."""
_SWITCH_SECONDS = 0.0005
"""So long one thread of Python may keep another waiting, instead of 5 ms."""


def run(work: Coroutine[object, object, T]) -> T:
    """Do *work* in a loop of its own, uvloop's where there is one.

    Facts and states are trees: what they leave is freed without the collector,
    and to look for circles among them at every 700th is a tenth of a turn.
    Each call of SQLite lets another thread of Python in, and then waits for its turn.
    """
    gc.freeze()  # what was imported stays anyway
    gc.set_threshold(_YOUNG)
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        import uvloop  # noqa: PLC0415 - `--help` runs no loop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)
