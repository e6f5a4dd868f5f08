"""What people are told by a hook: a call, and the question about it."""

import json

from cueline.actors.question import IN_DOUBT, doubt, rationale, summary
from cueline.deciders.session.turn import Call
from cueline.events.agent import Hook
from cueline.events.message import ToolCall
from cueline.events.stream import shown


def news_of(session: str, hook: Hook, call: Call, asked: ToolCall) -> bytes:
    """Return what a hook gets, in JSON; secrets were taken out of it before."""
    asking = call.approval
    in_doubt = asking is not None and asking.question == "did_it_happen"
    judged = IN_DOUBT if in_doubt else call.judged
    news: dict[str, object] = {
        "on": hook.on,
        "session": shown(session),
        "effect": call.effect,
        "tool": asked.name,
        "summary": summary(asked),
        "rule": judged.rule,
        "usd": None if judged.usd is None else str(judged.usd),
    }
    if asking is not None:
        news |= {
            "approval": asking.id,
            "question": asking.question,
            "why": doubt(call) if in_doubt else rationale(asked.name, judged),
            "votes_needed": judged.votes,
            "escalated": asking.escalated,
            "deadline_at": asking.deadline_at.isoformat(),
            "auto_at": None if asking.auto_at is None else asking.auto_at.isoformat(),
        }
    return json.dumps(news, ensure_ascii=False).encode()
