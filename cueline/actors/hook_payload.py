"""Builds the JSON that a hook receives: a call, and its approval."""

import json

from cueline.actors.approval_client import summary
from cueline.deciders.session.turn import Call
from cueline.events.agent import Hook
from cueline.events.approval import ApprovalOpened
from cueline.events.event_text import rationale_text
from cueline.events.message import ToolCall
from cueline.events.stream import shown


def hook_payload(
    session: str, hook: Hook, call: Call, asked: ToolCall, opened: ApprovalOpened | None
) -> bytes:
    """Return the JSON input of a hook; *call* has no secrets.

    *opened* is the approval of the call, if a person is asked.
    """
    judged = opened or call.judged
    news: dict[str, object] = {
        "on": hook.on,
        "session": shown(session),
        "effect": call.effect,
        "tool": asked.name,
        "summary": summary(asked),
        "arguments": asked.arguments,
        "digest": call.digest,
        "rule": judged.rule,
        "usd": None if judged.usd is None else str(judged.usd),
    }
    if opened is not None and call.approval is not None:
        news |= {
            "approval": call.approval.id,
            "question": opened.question,
            "preview": opened.preview,
            "why": rationale_text(opened),
            "votes_needed": opened.votes,
            "escalated": call.approval.escalated,
            "deadline_at": opened.deadline_at.isoformat(),
            "auto_at": None if opened.auto_at is None else opened.auto_at.isoformat(),
        }
    return json.dumps(news, ensure_ascii=False).encode()
