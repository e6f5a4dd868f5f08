"""The rules of sandboxes, and of the slots that limit how many of them are started."""

from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from cueline.deciders.decider import Decider
from cueline.events.sandbox import (
    SandboxAsked,
    SandboxDone,
    SandboxEvent,
    SandboxFailed,
    SlotAsked,
    SlotEvent,
    SlotFreed,
    SlotGranted,
)


class Slots(Struct, frozen=True):
    """The sessions that have a slot of the pool, and those that wait for one, in order."""

    held: tuple[SlotAsked, ...] = ()
    queue: tuple[SlotAsked, ...] = ()
    backends: tuple[str, ...] = ()
    """The back-ends that may have sandboxes of the log."""

    def has(self, session: str) -> bool:
        """Whether *session* has a slot."""
        return any(each.session == session for each in self.held)

    def place(self, session: str) -> int:
        """Return how many wait before *session*; 0 also if it does not wait."""
        waiting = [each.session for each in self.queue]
        return waiting.index(session) if session in waiting else 0


SlotCommand = SlotAsked | SlotFreed


def decide(command: SlotCommand, state: Slots) -> list[SlotEvent]:
    """Return the events of *command*; a free slot goes to the first session that waits."""
    known = [each.session for each in (*state.held, *state.queue)]
    is_new = isinstance(command, SlotAsked) != (command.session in known)
    after = evolve(state, command) if is_new else state
    room = max(0, command.slots - len(after.held))
    granted = [SlotGranted(session=each.session) for each in after.queue[:room]]
    return [command, *granted] if is_new else [*granted]


def evolve(state: Slots, event: SlotEvent) -> Slots:
    """Return *state* after *event*."""
    match event:
        case SlotAsked():
            used = dict.fromkeys((*state.backends, event.spec.backend))
            return replace(state, queue=(*state.queue, event), backends=tuple(used))
        case SlotGranted():
            granted = tuple(each for each in state.queue if each.session == event.session)
            rest = tuple(each for each in state.queue if each.session != event.session)
            return replace(state, held=(*state.held, *granted), queue=rest)
        case SlotFreed():
            left = [
                tuple(each for each in some if each.session != event.session)
                for some in (state.held, state.queue)
            ]
            return replace(state, held=left[0], queue=left[1])
        case _:
            assert_never(event)


SLOTS: Decider[SlotCommand, Slots, SlotEvent] = Decider(
    initial_state=Slots(), decide=decide, evolve=evolve
)


class SandboxLife(Struct, frozen=True):
    """What is known of a sandbox."""

    asked: SandboxAsked | None = None
    """The last intent."""
    place: str = ""
    """The back-end's name of the sandbox; empty: it is not known that it was created."""
    gone: bool = False
    """Whether it will never start again."""


def evolve_life(state: SandboxLife, event: SandboxEvent) -> SandboxLife:
    """Return *state* after *event*."""
    match event:
        case SandboxAsked():
            return replace(state, asked=event)
        case SandboxDone():
            over = state.gone or event.act == "delete"
            return replace(state, place=event.place, gone=over)
        case SandboxFailed():
            return replace(state, gone=state.gone or event.gone)
        case _:
            assert_never(event)


def decide_life(command: SandboxEvent, state: SandboxLife) -> list[SandboxEvent]:
    """Return *command*, unless the sandbox is gone; then only its deletion is recorded."""
    return [command] if not state.gone or command.act == "delete" else []


SANDBOX: Decider[SandboxEvent, SandboxLife, SandboxEvent] = Decider(
    initial_state=SandboxLife(), decide=decide_life, evolve=evolve_life
)
