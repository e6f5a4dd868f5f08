"""The life of a tool call."""

from decimal import Decimal
from typing import ClassVar, Literal

from pydantic import AwareDatetime

from cueline.events.cause import Cause
from cueline.events.fact import Fact


class ToolStarted(Fact):
    """A runner is told to run a call; nothing is known of the outcome yet."""

    type: Literal["ToolStarted"] = "ToolStarted"
    FACETS: ClassVar[tuple[str, ...]] = ("tool",)
    effect: str
    attempt: int
    tool: str
    runner: str
    """The only incarnation that may be sent the call."""
    epoch: int
    rule: str
    """Which rule, or whose grant, allows it."""
    usd: Decimal | None = None
    """What the call is estimated to cost."""
    notify: bool = False
    """People are told of it."""


class ToolReturned(Fact):
    """The tool answered."""

    type: Literal["ToolReturned"] = "ToolReturned"
    effect: str
    attempt: int
    output: str
    """What the model is told; capped."""
    whole: str | None = None
    """The blob with the whole output, or its beginning, when `output` was capped."""
    size: int | None = None
    """Of the whole output in bytes, when `output` was capped."""
    kept: int | None = None
    """So many of its first bytes are in the blob; None: all."""
    cleaned: bool = False
    """Something was taken out: secrets, or bytes that cannot be kept."""
    seconds: float = 0.0


class ToolFailed(Fact):
    """An attempt failed; with `retry_at` it is tried again, without it is over."""

    type: Literal["ToolFailed"] = "ToolFailed"
    FACETS: ClassVar[tuple[str, ...]] = ("kind",)
    effect: str
    attempt: int
    kind: str
    message: str
    failed_at: AwareDatetime | None = None
    retry_after: float | None = None
    """What the tool asked for, in seconds."""
    retry_at: AwareDatetime | None = None
    cleaned: bool = False
    seconds: float = 0.0
    degraded: bool = False
    """The tool is not critical: the work goes on without it, and its result is partial."""
    held: bool = False
    """The call never began; it is tried again once a person resumes the session."""


class ToolSkipped(Fact):
    """The call is over without having been run."""

    type: Literal["ToolSkipped"] = "ToolSkipped"
    effect: str
    reason: str
    """What the model is told."""
    rule: str = ""
    """Which rule denies it, when one does."""
    degraded: bool = False
    """The tool is not critical: the work goes on without it, and its result is partial."""


class ToolInDoubt(Fact):
    """The call was started, its runner is gone, and it must not be repeated."""

    type: Literal["ToolInDoubt"] = "ToolInDoubt"
    effect: str
    attempt: int
    cause: Cause
    """How it is known that nobody will report the outcome."""


class ToolReconciled(Fact):
    """It was found out, or decided, what became of a call in doubt."""

    type: Literal["ToolReconciled"] = "ToolReconciled"
    effect: str
    outcome: Literal["happened", "did_not_happen", "run_again", "unknown"]
    """`did_not_happen` is the word of the tool, `run_again` that of a person."""
    by: str
    """`tool`, `policy`, `steer`, or the person."""
    output: str = ""
    """What the model is told; empty when the call is run again."""
    degraded: bool = False
    """The tool is not critical: nobody is asked, and the result is partial."""


class OutcomeCameLate(Fact):
    """An outcome arrived that nobody waits for any more; it changes nothing."""

    type: Literal["OutcomeCameLate"] = "OutcomeCameLate"
    effect: str
    attempt: int
    outcome: Literal["ModelReplied", "ModelFailed", "ToolReturned", "ToolFailed"]
    """The type of the fact that it would have been."""
