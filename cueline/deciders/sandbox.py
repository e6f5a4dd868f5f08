"""The rules of the slots of a pool: so many sandboxes are started, and the others wait in order."""

from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from cueline.deciders.decider import Decider
from cueline.events.sandbox import SlotAsked, SlotEvent, SlotFreed, SlotGranted


class Slots(Struct, frozen=True):
    """Who has a slot of the pool, and who waits for one, first come first."""

    held: tuple[SlotAsked, ...] = ()
    queue: tuple[SlotAsked, ...] = ()

    def has(self, session: str) -> bool:
        """Whether *session* has a slot."""
        return any(each.session == session for each in self.held)

    def place(self, session: str) -> int:
        """Return how many wait before *session*; 0 also if it does not wait."""
        waiting = [each.session for each in self.queue]
        return waiting.index(session) if session in waiting else 0


SlotCommand = SlotAsked | SlotFreed


def decide(command: SlotCommand, state: Slots) -> list[SlotEvent]:
    """Return the events of *command*; a slot that is free goes to the first who waits."""
    known = [each.session for each in (*state.held, *state.queue)]
    if isinstance(command, SlotAsked) == (command.session in known):
        return []
    after = evolve(state, command)
    room = max(0, command.slots - len(after.held))
    return [command, *(SlotGranted(session=each.session) for each in after.queue[:room])]


def evolve(state: Slots, event: SlotEvent) -> Slots:
    """Return *state* after *event*."""
    match event:
        case SlotAsked():
            return replace(state, queue=(*state.queue, event))
        case SlotGranted():
            granted = tuple(each for each in state.queue if each.session == event.session)
            rest = tuple(each for each in state.queue if each.session != event.session)
            return Slots((*state.held, *granted), rest)
        case SlotFreed():
            left = [
                tuple(each for each in some if each.session != event.session)
                for some in (state.held, state.queue)
            ]
            return Slots(*left)
        case _:
            assert_never(event)


SLOTS: Decider[SlotCommand, Slots, SlotEvent] = Decider(
    initial_state=Slots(), decide=decide, evolve=evolve
)
