"""What is asked at the prompt, and the decision that an answer is."""

from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

from cueline.agents.preflight import judge_edit
from cueline.client.client import Client
from cueline.client.decide import decision_of, tool_of
from cueline.client.decide import question_of as open_question
from cueline.client.question import PersonalQuestion, always_text
from cueline.client.session_view import SessionView
from cueline.console.edit import edit_arguments
from cueline.console.prompt import Answered
from cueline.console.question import Question
from cueline.events.agent import AgentSpec
from cueline.events.event_text import RESOLUTIONS
from cueline.events.fact import shared_fields
from cueline.events.inbox import DecisionGiven
from cueline.events.message import ToolCall
from cueline.events.sanitize import Redactor
from cueline.events.session import ApprovalRequested


class ChildQuestion(NamedTuple):
    """A question of a child, which is asked at the terminal of its parent."""

    child: SessionView
    asked: ApprovalRequested
    call: ToolCall


async def question_of_child(client: Client, child: SessionView, approval: str) -> ChildQuestion:
    """Return what the child asks.

    Raises:
        NotPendingError: it is over.
    """
    opened = await open_question(client, approval)
    asked = ApprovalRequested(approval=approval, **shared_fields(opened, ApprovalRequested))
    call = ToolCall(id=opened.effect, name=opened.tool, arguments=opened.arguments)
    return ChildQuestion(child, asked, call)


def question_of(
    session: str, fact: ApprovalRequested, called: ToolCall | None, here: PersonalQuestion
) -> Question:
    """Return what a person is asked about a call."""
    return Question(
        approval=fact.approval,
        session=session,
        tool=called.name if called else fact.effect,
        arguments=called.arguments if called else {},
        deadline_at=fact.deadline_at,
        resolutions=RESOLUTIONS if fact.question == "did_it_happen" else {},
        votes=fact.votes,
        rule=fact.rule,
        cost=_cost(fact.usd, here.unpriced),
        auto_at=fact.auto_at,
        preview=here.preview,
        barred=here.barred,
        fixed=here.fixed,
        covers=here.covers,
    )


def _cost(usd: Decimal | None, unpriced: str) -> str:
    if unpriced:
        return f"of unknown cost ({unpriced})"
    return f"about ${usd}" if usd is not None else ""


async def question_with_edit(
    question: Question, change: str, agent: AgentSpec, redactor: Redactor
) -> Question:
    """Return *question* with other arguments, and what they will cost.

    Raises:
        ConfigError: they do not fit the tool, or no person can allow them.
    """
    arguments = edit_arguments(question.arguments, [change])
    judged = await judge_edit(agent, tool_of(agent, question.tool), arguments)
    covers = always_text(tool_of(agent, question.tool), arguments)
    cost = _cost(judged.usd, redactor.redact(judged.unpriced)[0])
    # The difference that was shown is one that these would not make.
    return replace(question, arguments=arguments, cost=cost, preview="", edited=True, covers=covers)


def decision_on(asked: ApprovalRequested, answered: Answered) -> DecisionGiven:
    """Return the decision that an answer is."""
    question = answered.question
    edited = question.edited and answered.verdict == "grant"
    return decision_of(
        answered.verdict,
        asked,
        channel="prompt",
        note=answered.note,
        edit=dict(question.arguments) if edited else None,
        always=() if answered.always else None,
        resolution=answered.resolution,
        result=answered.result,
    )
