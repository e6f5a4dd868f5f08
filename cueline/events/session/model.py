"""Facts of a model call."""

from functools import partial
from operator import is_, not_
from typing import ClassVar, Literal

from pydantic import AwareDatetime, Field

from cueline.events.agent import ModelChoice
from cueline.events.codes import Cause
from cueline.events.fact import Fact, Part
from cueline.events.message import Block, Cost, Estimate, ToolCall, Usage
from cueline.events.session.call import CallsAdded, Judgement


class ModelRequested(Fact):
    """A turn or another attempt of a turn begins; its prompt is the fold of all earlier events."""

    type: Literal["ModelRequested"] = "ModelRequested"
    effect: str
    """The effect: `<turn>.m`, or `<turn>.c` for a call that summarises the oldest messages."""
    attempt: int
    messages: tuple[int, ...] = ()
    """The inbox versions of the messages that this request includes."""
    digest: str
    """The digest of the whole prompt, chained by message."""
    prefix_digest: str
    """The digest of the part that the previous request also had; empty for another model."""
    fallback: int = 0
    """The model to call: 0 is the agent's own, n its n-th fallback."""


class ModelStarted(Fact):
    """A model call starts; a call without an outcome is a lost attempt."""

    type: Literal["ModelStarted"] = "ModelStarted"
    effect: str
    attempt: int
    grant: str | None = None
    """The ledger's reservation; None without a limit of cost or tokens."""


class Cut(Part):
    """The place at which a compaction cuts the messages of a session."""

    messages: int
    """The number of oldest messages that are summarised, including earlier summarised messages."""
    of: int
    """The number of all messages at the time of the compaction."""


class ModelReplied(Fact):
    """The model replied; the reply requests its calls, `<turn>.<index>`."""

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
    """The model that answered, by the provider's name."""
    seconds: float = 0.0
    estimates: dict[str, Estimate] = Field(default_factory=dict)  # a copy of `{}` takes 3 us
    """The estimated costs, by effect, of calls whose tools estimate each call."""
    judged: dict[str, Judgement] = Field(default_factory=dict)
    """The judgement of each call at its request, by effect."""
    lacking: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """The capabilities that the request needs and the model lacks, as `tools`."""
    cut: Cut | None = Field(default=None, exclude_if=partial(is_, None))
    """The messages that this reply summarises; None: the reply is not a compaction."""


def calls_of(replied: ModelReplied | CallsAdded) -> dict[str, ToolCall]:
    """Return the calls that a reply requests or a plan adds, by effect."""
    if replied.type == "CallsAdded":
        return replied.calls
    turn = replied.effect.partition(".")[0]
    return {f"{turn}.{index}": call for index, call in enumerate(replied.calls)}


class CapabilityDegraded(Fact):
    """A model lacks a needed capability; recorded once for each model and capability."""

    type: Literal["CapabilityDegraded"] = "CapabilityDegraded"
    FACETS: ClassVar[tuple[str, ...]] = ("capability",)
    capability: str
    """The capability. `tools`: the prompt describes the tools, and replies call them in the text.
    `images`: a text replaces each image. `thinking`: the model does not think."""
    provider: str
    model: str
    """The name of the model in the agent."""


class ModelFailed(Fact):
    """An attempt of a model call failed without a reply."""

    type: Literal["ModelFailed"] = "ModelFailed"
    FACETS: ClassVar[tuple[str, ...]] = ("kind",)
    effect: str
    attempt: int
    kind: str
    message: str
    failed_at: AwareDatetime | None = None
    """The time of the failure; None for an attempt that was lost with its host."""
    retry_after: float | None = None
    """The wait that the provider requested, in seconds."""
    retry_at: AwareDatetime | None = None
    """When the call is retried; None: never."""
    usage: Usage | None = None
    """The usage; None: unknown."""
    cost: Cost | None = None
    """The cost of the usage; an estimate if both usage and reservation are unknown."""
    seconds: float = 0.0


class AgentChanged(Fact):
    """A part of the agent changed for the rest of the session; None keeps a part."""

    type: Literal["AgentChanged"] = "AgentChanged"
    model: ModelChoice | None = None
    """The agent's own model, from the next request on."""


class ContextCompacted(Fact):
    """From now on, requests begin with a summary instead of the oldest messages.

    The log keeps these messages.
    """

    type: Literal["ContextCompacted"] = "ContextCompacted"
    effect: str
    """The model call whose reply is the summary."""
    cut: Cut
    reason: Literal["window", "too_long"]
    """The reason: the last call used much of the context window, or the prompt was too long."""
    tokens: int
    """The tokens of the last call and its reply."""
    digest: str
    """The digest of the whole prompt after the compaction; later messages are chained to it."""


PrefixReason = Literal[
    "model_switched",
    "fallback",
    "fallback_returned",
    "tools_changed",
    "compacted",
    "forked_with_another_agent",
]
"""Why a prompt begins differently: a person chose another model, the model could not answer,
the agent's own model is called again, other tools were accepted, a summary replaced old
messages, the fork has another agent."""


class PromptPrefixChanged(Fact):
    """The next request begins differently from the previous one, so no cache has its beginning."""

    type: Literal["PromptPrefixChanged"] = "PromptPrefixChanged"
    reason: PrefixReason
    before: str
    """The provider and model of the previous request."""
    after: str
    """The provider and model of the next request."""
    cause: Cause | None = None
    """The error code of the former model's failure; None: it did not fail."""
