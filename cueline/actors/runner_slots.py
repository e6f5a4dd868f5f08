"""Slots of runners: a call starts when a slot is free, so no call queues in a runner.

A call queued in a runner would be in doubt after a crash. The hosts share a runner's
slots evenly, so each host counts its own calls and asks no other process. The count is
volatile; the host that recovers a call counts the call again.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from cueline.deciders.matching import Unmet
    from cueline.events.agent import ToolSpec
    from cueline.events.agent_parts import Demands

SlotKey = tuple[str, bool]
"""A runner, and either its event loop or its worker processes."""


class Slots(Struct, frozen=True):
    """The number of calls that one runner executes at a time."""

    loop: int = 256
    """For async tools, which run in its event loop."""
    workers: int = 8
    """For other tools, each of which takes a worker process."""

    def share(self, hosts: int) -> "Slots":
        """Return the share of one of *hosts* hosts."""
        return Slots(max(1, self.loop // hosts), max(1, self.workers // hosts))


SLOTS = Slots()
"""The default slots.

A call in the loop costs little but its open files; a call that waits costs its session one more
append. Other tools mostly wait, for example for a shell command, so there are more workers than
processors. A worker starts when it is needed, and takes 30 MB.
"""


class SlotTable:
    """The slots that the sessions of one host use, and the sessions that wait for one."""

    def __init__(self, slots: Slots) -> None:
        self._most = {True: slots.loop, False: slots.workers}
        self._taken: Counter[SlotKey] = Counter()
        self._full: dict[bool, set[str]] = {True: set(), False: set()}
        self._waiting: dict[SlotHolder, int] = {}
        """The waiters, longest wait first, with the number of freed slots at the last check."""
        self._freed = 0
        self._open: set[SlotKey] = set()
        """The places with a free slot for which no waiter has been woken yet."""

    def resize(self, slots: Slots) -> None:
        """Set the number of slots of each runner; calls keep their slots."""
        if self._most == {True: slots.loop, False: slots.workers}:
            return
        self._most = {True: slots.loop, False: slots.workers}
        self._full = {True: set(), False: set()}
        for place, taken in self._taken.items():
            runner, in_loop = place
            if taken >= self._most[in_loop]:
                self._full[in_loop].add(runner)
                self._open.discard(place)
            else:
                self._open.add(place)
        self._freed += 1
        self.pass_on()

    def full(self, tool: "ToolSpec") -> Collection[str]:
        """Return the runners without a free slot for a call of *tool*."""
        return self._full[tool.in_loop]

    def take(self, place: SlotKey) -> None:
        """Take a slot; beyond the limit if the call is already running."""
        self._taken[place] += 1
        runner, in_loop = place
        if self._taken[place] >= self._most[in_loop]:
            self._full[in_loop].add(runner)
            self._open.discard(place)

    def free(self, place: SlotKey) -> None:
        """Free a slot, and wake the next holder in the queue."""
        runner, in_loop = place
        self._taken[place] -= 1
        if self._taken[place] < self._most[in_loop]:
            self._full[in_loop].discard(runner)
            self._open.add(place)
        if not self._taken[place]:
            del self._taken[place]
        self._freed += 1
        self.pass_on()

    def wait(self, holder: "SlotHolder") -> None:
        """Wake *holder* when a slot becomes free."""
        self.leave(holder)
        self._waiting[holder] = self._freed

    def leave(self, holder: "SlotHolder") -> None:
        """Stop waking *holder*."""
        self._waiting.pop(holder, None)

    def lacking(self) -> "list[Unmet]":
        """Return the demands of the calls that wait for a slot."""
        from cueline.deciders.matching import counted

        return counted(each for holder in self._waiting for each in holder.lacking)

    def pass_on(self) -> None:
        """Wake the next holder that has not checked since a slot became free."""
        if not self._open:
            return
        holder = next(iter(self._waiting), None)
        if holder is None or self._waiting[holder] == self._freed:
            self._open.clear()
        else:
            self.leave(holder)
            holder.seeker.ring()


class SlotSeeker(Protocol):
    """A session that may need slots."""

    def ring(self) -> None:
        """Look for a slot."""


class SlotHolder:
    """The slots of one active session; small, because there are many."""

    __slots__ = ("_held", "_table", "lacking", "seeker")

    def __init__(self, table: SlotTable, seeker: SlotSeeker) -> None:
        self._table = table
        self._held: dict[str, SlotKey] | None = None
        """The slots by the effect of the call; None without any."""
        self.seeker = seeker
        self.lacking: Sequence[Demands] = ()
        """The demands of its calls that wait for a slot."""

    def full(self, tool: "ToolSpec") -> Collection[str]:
        """See `SlotTable.full`."""
        return self._table.full(tool)

    def take(self, effect: str, runner: str, tool: "ToolSpec") -> None:
        """Take a slot for the call of *effect*, unless it has one."""
        held = self._held = self._held or {}
        if effect not in held:
            held[effect] = (runner, tool.in_loop)
            self._table.take(held[effect])

    def free(self, effect: str) -> None:
        """Free the slot of a finished call; do nothing for a call without a slot."""
        if not self._held or (place := self._held.pop(effect, None)) is None:
            return
        self._held = self._held or None
        self._table.free(place)

    def end_search(self, lacking: Sequence["Demands"]) -> None:
        """End the search for slots; if calls are *lacking* a slot, a free one wakes the session."""
        self.lacking = lacking
        (self._table.wait if lacking else self._table.leave)(self)
        self._table.pass_on()

    def close(self) -> None:
        """Free all slots, because the session has left this host."""
        self._table.leave(self)
        for effect in list(self._held or ()):
            self.free(effect)
        self._table.pass_on()
