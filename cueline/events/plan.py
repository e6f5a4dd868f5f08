"""A plan: the steps of a session that no model drives, as recorded data."""

from functools import partial
from operator import eq, is_, not_
from typing import Final, Literal

from pydantic import Field, JsonValue

from cueline.events.number import Seconds, Whole
from cueline.events.part import Part

Condition = Literal["always", "on_success", "on_issues_found"]
"""On which ends of the steps that it needs a step runs; else it is skipped."""
StepStatus = Literal["completed", "failed", "skipped"]
"""The end of a step."""
MAX_PARALLEL: Final = 10
PROCEDURE: Final = "procedure"
"""The provider of agents that run a command: their plan is a single step."""
VALUE_LIMIT: Final = 1024 * 1024
"""The most bytes of what a step passes on, as text or JSON."""


def too_large(what: str, size: int) -> str:
    """Return why *what*, of *size* bytes, is not passed on."""
    why = f"{what} has {size:,} bytes, and the most is {VALUE_LIMIT:,}"
    return f"{why}: let it write a file, and return the path"


class Step(Part):
    """One step: calls of the agent's tool with the step's name, or a wait for a message."""

    name: str
    needs: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """The steps that are over before it begins; those that its expressions read are among them."""
    arguments: dict[str, JsonValue] = Field(default={}, exclude_if=not_)
    """The arguments of its call; texts may hold `{{ EXPRESSION }}`."""
    when: str = Field(default="", exclude_if=not_)
    """The expression whose value decides whether it runs; empty: it runs."""
    for_each: str = Field(default="", exclude_if=not_)
    """The expression whose value is a list: one call for each item, and a list as value."""
    wait: str = Field(default="", exclude_if=not_)
    """The name of the message that gives it its value; such a step has no tool."""
    timeout_seconds: Seconds | None = Field(default=None, gt=0, exclude_if=partial(is_, None))
    """The longest wait for its message; None: as for an approval."""
    critical: bool = Field(default=True, exclude_if=bool)
    """Of a wait: whether the plan fails without its message."""
    condition: Condition = Field(default="on_success", exclude_if=partial(eq, "on_success"))
    auto_approve: bool = Field(default=True, exclude_if=bool)
    """Whether the calls of steps that need it may run without a question."""


class Plan(Part):
    """The steps of a session, and its result."""

    steps: tuple[Step, ...]
    max_parallel: Whole = Field(default=MAX_PARALLEL, ge=1)
    """The most calls that run at a time; others wait."""
    output: str = Field(default="", exclude_if=not_)
    """The expression whose value is the result; empty: that of the last step that completed."""
