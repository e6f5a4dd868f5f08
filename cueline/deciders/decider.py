"""The shape that all rules share: decide, evolve, initial state."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from dataclasses import replace
else:
    _new = object.__new__
    _set = object.__setattr__

    def replace(value: Any, /, **changes: Any) -> Any:
        """Return *value* with *changes*; for frozen dataclasses without slots.

        A replay is made of this: one merged `__dict__` takes 0.4 us where
        `dataclasses.replace` takes 2 to 5 for 6 to 18 fields.
        """
        copy = _new(value.__class__)
        _set(copy, "__dict__", value.__dict__ | changes)
        return copy


__all__ = ["Decider", "replace"]

Command = TypeVar("Command")
State = TypeVar("State")
Event = TypeVar("Event")


@dataclass(frozen=True, slots=True)
class Decider(Generic[Command, State, Event]):
    """The rules of one category of streams."""

    initial_state: State
    decide: Callable[[Command, State], Sequence[Event]]
    evolve: Callable[[State, Event], State]

    def replay(self, events: Iterable[Event], state: State | None = None) -> State:
        """Fold *events* into *state*, from the initial one if none is given."""
        folded = self.initial_state if state is None else state
        for event in events:
            folded = self.evolve(folded, event)
        return folded
