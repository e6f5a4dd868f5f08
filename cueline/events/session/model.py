"""The life of a model call."""

from typing import ClassVar, Literal

from pydantic import AwareDatetime, Field

from cueline.events.cause import Cause
from cueline.events.fact import Fact
from cueline.events.message import Block, Cost, Estimate, ToolCall, Usage
from cueline.events.session.judgement import Judgement


class ModelRequested(Fact):
    """A turn, or one more attempt at it, begins; the prompt is a fold up to here."""

    type: Literal["ModelRequested"] = "ModelRequested"
    effect: str
    """`<turn>.m`."""
    attempt: int
    messages: tuple[int, ...] = ()
    """Inbox versions of the messages that this call tells the model first."""
    digest: str
    """Of the whole prompt, chained message by message."""
    prefix_digest: str
    """Of the part that the previous request already had; empty when another model is asked."""
    fallback: int = 0
    """Which of the agent's models is asked: 0 its own, n its n-th fallback."""


class ModelStarted(Fact):
    """The call goes out now; without an outcome it is a lost attempt."""

    type: Literal["ModelStarted"] = "ModelStarted"
    effect: str
    attempt: int
    grant: str | None = None
    """The ledger's grant, when a limit of money or tokens applies."""


class ModelReplied(Fact):
    """The model answered; the calls in it are thereby requested, `<turn>.<index>`."""

    type: Literal["ModelReplied"] = "ModelReplied"
    FACETS: ClassVar[tuple[str, ...]] = ("model",)
    effect: str
    attempt: int
    content: tuple[Block, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    stop_reason: str
    usage: Usage = Usage()
    cost: Cost | None = None
    model: str = ""
    """The model that answered, as the provider names it."""
    seconds: float = 0.0
    estimates: dict[str, Estimate] = Field(default_factory=dict)  # a copy of `{}` takes 3 us
    """By effect: of the calls whose tools estimate what each will cost."""
    judged: dict[str, Judgement] = Field(default_factory=dict)
    """By effect: what the rules said of each call when it was requested."""


def calls_of(replied: ModelReplied) -> dict[str, ToolCall]:
    """Return the calls that a reply requests, by their effect."""
    turn = replied.effect.partition(".")[0]
    return {f"{turn}.{index}": call for index, call in enumerate(replied.calls)}


class ModelFailed(Fact):
    """An attempt brought no answer."""

    type: Literal["ModelFailed"] = "ModelFailed"
    FACETS: ClassVar[tuple[str, ...]] = ("kind",)
    effect: str
    attempt: int
    kind: str
    message: str
    failed_at: AwareDatetime | None = None
    """None for an attempt that was lost with its host."""
    retry_after: float | None = None
    """What the provider asked for, in seconds."""
    retry_at: AwareDatetime | None = None
    """None: it is not tried again for its own sake."""
    usage: Usage | None = None
    """None: nobody knows what it used."""
    cost: Cost | None = None
    """Of that; an estimate where nobody knows and no ledger was asked."""
    seconds: float = 0.0


class PromptPrefixChanged(Fact):
    """The next request's beginning differs from what the last one sent."""

    type: Literal["PromptPrefixChanged"] = "PromptPrefixChanged"
    before: str
    """Provider and model that the last request went to."""
    after: str
    """Provider and model that the next one goes to."""
    cause: Cause | None = None
    """Why the one before is not asked; None: its turn is over."""
