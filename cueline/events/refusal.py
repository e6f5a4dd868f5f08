"""Why a message to a session is refused: a code and its parameters.

`cueline.events.event_text` makes the sentence for people.
"""

from decimal import Decimal
from operator import not_
from typing import Literal

from pydantic import Field

from cueline.events.part import Part

RefusalCode = Literal[
    "session_ended",
    "session_stopping",
    "never_started",
    "started_before",
    "no_such_approval",
    "already_decided",
    "other_digest",
    "too_late",
    "not_in_doubt",
    "not_resolved",
    "no_result",
    "no_person",
    "excluded",
    "not_allowed",
    "granted_before",
    "nothing_to_change",
    "needs_others",
    "no_limit_named",
    "no_such_limit",
    "not_higher",
    "plan_takes_no_messages",
    "no_such_wait",
    "procedural_agent_no_resume",
]


class Refusal(Part):
    """Why a message changes nothing; each code has the parameters that it needs."""

    code: RefusalCode
    status: str = Field(default="", exclude_if=not_)
    """The status of the session or approval."""
    by: str = Field(default="", exclude_if=not_)
    """Who decided."""
    votes: int = Field(default=0, exclude_if=not_)
    """The number of people who have to grant it."""
    may_grant: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """Who may grant it."""
    limit: str = Field(default="", exclude_if=not_)
    """The name of the limit in `Limits`."""
    of: Decimal = Field(default=Decimal(0), exclude_if=not_)
    """The value of the limit."""
    unread: bool = Field(default=False, exclude_if=not_)
    """The session will have that value once it has read its inbox."""
