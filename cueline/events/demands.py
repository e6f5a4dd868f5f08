"""What a call needs of its runner."""

from operator import not_
from typing import Annotated, Final

from pydantic import Field

from cueline.events.number import Number
from cueline.events.part import Part

Word = Annotated[str, Field(min_length=1)]


class Demands(Part):
    """What a call needs of the runner that executes it; an empty field is no demand."""

    runner: str = Field(default="", exclude_if=not_)
    """Its name: its label `name`, or its incarnation."""
    machine: str = Field(default="", exclude_if=not_)
    """The machine that it runs on; with a workspace, that of the workspace."""
    labels: dict[Word, str] = Field(default={}, exclude_if=not_)
    """It has all of these, with these values."""
    resources: dict[Word, Annotated[Number, Field(gt=0)]] = Field(default={}, exclude_if=not_)
    """It was started with these amounts, or more: `gpus`, `cpus` …"""

    def __bool__(self) -> bool:
        """Whether there is any demand."""
        return bool(self.runner or self.machine or self.labels or self.resources)

    def __hash__(self) -> int:
        """Return a hash, without which pydantic copies `NO_DEMANDS` for each tool."""
        return hash((self.runner, self.machine))

    def __str__(self) -> str:
        """Return them in words: `the label gpu=a100, 2 gpus`."""
        named = {"the name": self.runner, "the machine": self.machine}
        words = [f"{what} {name}" for what, name in named.items() if name]
        words += [f"the label {key}={value}" for key, value in self.labels.items()]
        return ", ".join([*words, *(f"{need:g} {name}" for name, need in self.resources.items())])


NO_DEMANDS: Final = Demands()
