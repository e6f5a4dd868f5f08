"""Facts about the messages of a session's inbox."""

from operator import not_
from typing import Literal

from pydantic import AwareDatetime, Field

from cueline.events.fact import Fact
from cueline.events.inbox import InboxMessage
from cueline.events.refusal import Refusal
from cueline.events.session.question import GateAnswer


class MessageReceived(Fact):
    """The session read a message of its inbox."""

    type: Literal["MessageReceived"] = "MessageReceived"
    inbox_version: int
    recorded_at: AwareDatetime
    """When the log recorded the message; it counts from then."""
    message: InboxMessage
    gate_answer: GateAnswer | None = None
    late: bool = Field(default=False, exclude_if=not_)
    """It is the end of a child whose call has timed out; the model gets it as a message."""


class MessageRefused(Fact):
    """The session read a message of its inbox that changes nothing."""

    type: Literal["MessageRefused"] = "MessageRefused"
    inbox_version: int
    recorded_at: AwareDatetime
    message: InboxMessage
    gate_answer: GateAnswer | None = None
    refusal: Refusal
