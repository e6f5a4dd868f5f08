"""What is asked at the prompt, made from facts, and the decision that an answer is."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from cueline.client.decide import permissions_of, tool_of
from cueline.console.edit import edit_arguments
from cueline.console.prompt import Answered
from cueline.console.question import Question
from cueline.deciders.approval import ApprovalState
from cueline.deciders.policy import always_scope
from cueline.deciders.session import SessionState
from cueline.environment import user_name
from cueline.event_text import RESOLUTIONS
from cueline.events.agent import AgentSpec
from cueline.events.inbox import DecisionGiven
from cueline.events.message import ToolCall
from cueline.events.sanitize import Redactor
from cueline.events.session import ApprovalRequested
from cueline.events.stream import shown
from cueline.preflight import judge_edit


def question_of(fact: ApprovalRequested, called: ToolCall | None, state: SessionState) -> Question:
    """Return what a person is asked about a call."""
    call = state.call(fact.effect)
    return Question(
        approval=fact.approval,
        digest=fact.digest,
        session=shown(state.stream),
        tool=called.name if called else fact.effect,
        arguments=called.arguments if called else {},
        deadline_at=fact.deadline_at,
        resolutions=RESOLUTIONS if fact.question == "did_it_happen" else {},
        votes=fact.votes,
        rule=fact.rule,
        cost=_cost(fact.usd, call.judged.unpriced if call is not None else ""),
        auto_at=fact.auto_at,
    )


def _cost(usd: Decimal | None, unpriced: str) -> str:
    if unpriced:
        return f"of unknown cost ({unpriced})"
    return f"about ${usd}" if usd is not None else ""


def refresh_question(question: Question, approval: ApprovalState, now: datetime) -> Question:
    """Return *question* with what only its approval tells: the change, and who may allow it."""
    if approval.opened is None:
        return question
    say = permissions_of(user_name(), approval, now)
    preview = approval.opened.preview
    return replace(question, preview=preview, barred=say.barred, fixed=say.fixed)


async def question_with_edit(
    question: Question, change: str, agent: AgentSpec, redactor: Redactor
) -> Question:
    """Return *question* with other arguments, and what they will cost.

    Raises:
        ConfigError: they do not fit the tool, or no person can allow them.
    """
    arguments = edit_arguments(question.arguments, [change])
    judged = await judge_edit(agent, tool_of(agent, question.tool), arguments)
    cost = _cost(judged.usd, redactor.redact(judged.unpriced)[0])
    # The difference that was shown is one that these would not make.
    return replace(question, arguments=arguments, cost=cost, preview="", edited=True)


def decision_of(answered: Answered, agent: AgentSpec) -> DecisionGiven:
    """Return the decision as it goes into the inbox."""
    question = answered.question
    arguments: Any = dict(question.arguments)
    tool = tool_of(agent, question.tool) if answered.always else None
    return DecisionGiven(
        approval=question.approval,
        digest=question.digest,
        verdict=answered.verdict,
        by=user_name(),
        note=answered.note,
        edit=arguments if question.edited and answered.verdict == "grant" else None,
        always=None if tool is None else always_scope(tool, arguments),
        channel="prompt",
        resolution=answered.resolution,
        result=answered.result,
    )
