"""The form of the rules of a category of streams: `decide`, `evolve` and the initial state."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

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
        """Return *state*, by default the initial state, after *events*."""
        folded = self.initial_state if state is None else state
        for event in events:
            folded = self.evolve(folded, event)
        return folded
