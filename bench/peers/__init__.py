"""Compares one session of 400 turns with the same conversation in LangGraph and in DBOS.

A turn is a model call and a call of a trivial tool. Both answer at once, so the bench measures
only the work of the compared programs. Everything is durable.
cueline runs in the event loop that its commands use.
LangGraph records the conversation with `SqliteSaver` and `durability="sync"`, DBOS in SQLite;
all other settings are defaults.
Each round begins a new file.
The ratios depend on the disk and the interpreter: values from 2.7 to 4.6 were measured. On a slow
disk all three wait for their fsyncs; a turn takes 2 fsyncs in cueline, about 4 in LangGraph and 8
in DBOS.
Floors: 2 × each peer, on any disk.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.table import Row


def measure() -> "list[Row]":
    """Return the rows of this bench."""
    # The other modules of this folder also run where cueline is not installed.
    from bench.peers import rate  # noqa: PLC0415 - as above

    return rate.measure()
