"""The shape that all rules share: decide, evolve, initial state."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from dataclasses import replace
else:

    def replace(value: Any, /, **changes: Any) -> Any:
        """Return *value* with *changes*; for frozen dataclasses without slots.

        A replay is made of this: a copied `__dict__` takes 1.1 us where
        `dataclasses.replace` takes 3 to 8 for 6 to 18 fields.
        """
        copy = object.__new__(value.__class__)
        fields = copy.__dict__
        fields.update(value.__dict__)
        fields.update(changes)
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
