"""What comes before all messages of a prompt, by the number of the fold.

A session keeps the fold that it started with, so that it is decided again as
it was, whatever else an agent can be told since.
"""

import hashlib
from typing import Any, Final

from cueline.events.agent import AgentSpec

FOLD: Final = 2
"""Of the sessions that start now."""
_TOLD: Final[Any] = {
    "provider": True,
    "model": True,
    "parameters": True,
    "instructions": True,
    "tools": {"__all__": {"name", "description", "parameters"}},
}
_ALL_AT_FIRST: Final[Any] = {
    **dict.fromkeys(("name", "provider", "model", "parameters", "instructions"), True),
    "tools": {
        "__all__": {
            "name",
            "description",
            "parameters",
            "declared",
            "sensitive",
            "target",
            "version",
            "timeout_seconds",
            "in_loop",
            "needs_workspace",
            "digest",
        }
    },
    "limits": {"max_turns", "max_output_tokens"},
    "limit_sources": True,
    "retry": {"max_retries", "base_seconds", "factor", "cap_seconds", "jitter"},
    "policy": {"approval", "in_doubt", "auto_approve", "approval_seconds"},
    **dict.fromkeys(("workspace", "secrets", "base_url", "key_variable"), True),
}
"""What an agent was when there was no other fold, in today's order, which is that one's."""


def opening_digest(agent: AgentSpec, fold: int = FOLD) -> str:
    """Return the digest of model, system prompt and tools."""
    opening = _whole(agent) if fold == 1 else agent.model_dump_json(include=_TOLD)
    return hashlib.sha256(opening.encode()).hexdigest()


def _whole(agent: AgentSpec) -> str:
    """Return all that an agent was at first, as it was written then: with one profile."""
    policy = agent.policy.model_copy(update={"approval": agent.policy.approval[0]})
    as_it_was = agent.model_copy(update={"policy": policy})
    return as_it_was.model_dump_json(include=_ALL_AT_FIRST, warnings=False)
