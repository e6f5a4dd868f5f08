"""Folds the slots of the pool of sandboxes; every append is a compare-and-set."""

from collections.abc import Collection
from typing import Final
from uuid import uuid4

from cueline.actors.fold import fold
from cueline.deciders.sandbox import SLOTS, SlotCommand, Slots
from cueline.errors import WrongExpectedVersionError
from cueline.events.inbox import SlotOffered
from cueline.events.journal import FactWrite, Journal
from cueline.events.sandbox import MAIN_POOL, SlotGranted
from cueline.events.store import ANY, NO_STREAM
from cueline.events.stream import sibling, stream_name

SLOTS_STREAM: Final = stream_name("slots", MAIN_POOL)


class SlotLog:
    """The folded slots, up to the read version."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._folded = (SLOTS.initial_state, NO_STREAM)

    async def read(self) -> Slots:
        """Read the new events, and return the slots."""
        self._folded = await fold(self._journal, SLOTS_STREAM, SLOTS, *self._folded)
        return self._folded[0]

    async def decide(self, command: SlotCommand, wakes: Collection[str] = ()) -> Slots:
        """Record *command* and the slots that it grants.

        A session that waited gets a message in the same append, and so do those in *wakes*.
        """
        while True:
            slots = await self.read()
            if not (events := SLOTS.decide(command, slots)):
                return slots
            version = self._folded[1]
            write = FactWrite(
                stream=SLOTS_STREAM, steps=[events], expected_version=version, actor="system:pool"
            )
            granted = [each.session for each in events if isinstance(each, SlotGranted)]
            woken = [each for each in granted if each != command.session]
            messages = [_offer(each) for each in (*woken, *wakes)]
            try:
                await self._journal.append([write, *messages], key=uuid4().hex)
            except WrongExpectedVersionError:
                continue
            self._folded = SLOTS.replay(events, slots), version + len(events)
            return self._folded[0]


def _offer(session: str) -> FactWrite:
    return FactWrite(
        stream=sibling(session, "inbox"),
        steps=[[SlotOffered(pool=MAIN_POOL)]],
        expected_version=ANY,
        actor="system:pool",
    )
