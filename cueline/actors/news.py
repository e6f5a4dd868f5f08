"""What people are told by a hook: a call, and the question about it."""

import json

from cueline.actors.question import rationale, summary
from cueline.deciders.session.turn import Call
from cueline.events.agent import Hook
from cueline.events.message import ToolCall
from cueline.events.stream import shown


def news_of(session: str, hook: Hook, call: Call, asked: ToolCall) -> bytes:
    """Return what a hook gets, in JSON; secrets were taken out of it before."""
    news: dict[str, object] = {
        "on": hook.on,
        "session": shown(session),
        "effect": call.effect,
        "tool": asked.name,
        "summary": summary(asked),
        "rule": call.judged.rule,
        "usd": None if call.judged.usd is None else str(call.judged.usd),
    }
    if call.approval is not None:
        news |= {
            "approval": call.approval.id,
            "question": call.approval.question,
            "why": rationale(asked.name, call.judged),
            "votes_needed": call.judged.votes,
            "escalated": call.approval.escalated,
            "deadline_at": call.approval.deadline_at.isoformat(),
        }
    return json.dumps(news, ensure_ascii=False).encode()
