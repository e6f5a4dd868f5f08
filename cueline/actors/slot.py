"""Slots of runners: a call is started once there is one for it, and no call waits in a runner.

What was started and never began would be in doubt after a crash. The slots of
a runner are shared evenly by its hosts, so that a host counts its own and asks
nobody. The count is volatile; a call that a former host started is counted by
whoever recovers it.
"""

from collections import Counter
from collections.abc import Collection
from typing import Protocol

from msgspec import Struct

from cueline.events.agent import ToolSpec

Place = tuple[str, bool]
"""A runner, and whether its loop or its workers."""


class Slots(Struct, frozen=True):
    """How many calls run at once in one runner."""

    loop: int = 256
    """Of async tools, which run in its loop."""
    workers: int = 8
    """Of all others, each of which takes a worker process."""

    def share(self, hosts: int) -> "Slots":
        """Return what one of so many *hosts* may use."""
        return Slots(max(1, self.loop // hosts), max(1, self.workers // hosts))


SLOTS = Slots()
"""Where nobody says otherwise.

A call in the loop takes next to nothing but for what it opens, and one that has
to wait costs its session an append more. Other tools mostly wait, for a shell
command above all, so there are more workers than processors; each is started
when it is needed, and takes 30 MB.
"""


class SlotTable:
    """Which slots the sessions of one host have taken, and which sessions wait for one."""

    def __init__(self, slots: Slots) -> None:
        self._most = {True: slots.loop, False: slots.workers}
        self._taken: Counter[Place] = Counter()
        self._full: dict[bool, set[str]] = {True: set(), False: set()}
        self._waiting: dict[SlotHolder, int] = {}
        """Who waits longest comes first; and how many slots had come free when it last looked."""
        self._freed = 0
        self._open: set[Place] = set()
        """Where a slot came free that perhaps nobody has looked for yet."""

    def full(self, tool: ToolSpec) -> Collection[str]:
        """Return the runners that have no slot for a call of *tool*."""
        return self._full[tool.in_loop]

    def take(self, place: Place) -> None:
        """Take a slot; one more than there are, where the call runs already."""
        self._taken[place] += 1
        runner, in_loop = place
        if self._taken[place] >= self._most[in_loop]:
            self._full[in_loop].add(runner)
            self._open.discard(place)

    def free(self, place: Place) -> None:
        """Give a slot back, and have the next who waits look for it."""
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
        """Have *holder* woken when a slot comes free."""
        self.leave(holder)
        self._waiting[holder] = self._freed

    def leave(self, holder: "SlotHolder") -> None:
        """Wake *holder* no more."""
        self._waiting.pop(holder, None)

    def pass_on(self) -> None:
        """Wake the next who has not looked since a slot came free that may still be there."""
        holder = next(iter(self._waiting), None)
        if holder is None or self._waiting[holder] == self._freed:
            self._open.clear()
        elif self._open:
            self.leave(holder)
            holder.seeker.ring()


class SlotSeeker(Protocol):
    """A session that may need slots."""

    def ring(self) -> None:
        """Have it look for a slot."""
        ...


class SlotHolder:
    """The slots of one session; there is one for each that lives, so it holds little."""

    __slots__ = ("_held", "_table", "seeker")

    def __init__(self, table: SlotTable, seeker: SlotSeeker) -> None:
        self._table = table
        self._held: dict[str, Place] | None = None
        """By the effect of the call; None while there is none."""
        self.seeker = seeker

    def full(self, tool: ToolSpec) -> Collection[str]:
        """See `SlotTable.full`."""
        return self._table.full(tool)

    def take(self, effect: str, runner: str, tool: ToolSpec) -> None:
        """Take a slot for the call of *effect*, unless it has one."""
        held = self._held = self._held or {}
        if effect not in held:
            held[effect] = (runner, tool.in_loop)
            self._table.take(held[effect])

    def free(self, effect: str) -> None:
        """Give back the slot of a call that is over, if it has one."""
        if not self._held or (place := self._held.pop(effect, None)) is None:
            return
        self._held = self._held or None
        self._table.free(place)

    def end_search(self, *, lacks: bool) -> None:
        """Say that the session has looked for slots; woken again if it *lacks* one."""
        (self._table.wait if lacks else self._table.leave)(self)
        self._table.pass_on()

    def close(self) -> None:
        """Give all back: nobody drives the session here any more."""
        self._table.leave(self)
        for effect in list(self._held or ()):
            self.free(effect)
        self._table.pass_on()
