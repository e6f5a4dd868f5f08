"""What is asked at the prompt, made from facts, and the decision that an answer is."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from cueline.cli.deciding import say_of
from cueline.cli.editing import tool_of
from cueline.console.edit import edited
from cueline.console.prompt import Answered
from cueline.console.question import Question
from cueline.deciders.approval import ApprovalState
from cueline.deciders.policy import always
from cueline.deciders.session import SessionState
from cueline.environment import who
from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec
from cueline.events.inbox import DecisionGiven
from cueline.events.message import ToolCall
from cueline.events.session import ApprovalRequested
from cueline.events.stream import shown
from cueline.runtime import problem_of_edit


def question_of(fact: ApprovalRequested, called: ToolCall | None, state: SessionState) -> Question:
    """Return what a person is asked about a call."""
    return Question(
        approval=fact.approval,
        digest=fact.digest,
        session=shown(state.stream),
        tool=called.name if called else fact.effect,
        arguments=called.arguments if called else {},
        deadline_at=fact.deadline_at,
        happened=fact.question == "did_it_happen",
        votes=fact.votes,
        why=_why(fact, state),
        auto_at=fact.auto_at,
    )


def _why(fact: ApprovalRequested, state: SessionState) -> str:
    """Return which rules ask, what it costs, and who else has to say yes."""
    cost = f", about ${fact.usd}" if fact.usd is not None else ""
    call = state.call(fact.effect)
    if call is not None and call.judged.unpriced:
        cost = f", of unknown cost ({call.judged.unpriced})"
    people = f", {fact.votes} people have to allow it" if fact.votes > 1 else ""
    return f"{fact.rule}{cost}{people}"


def as_it_stands(question: Question, approval: ApprovalState, now: datetime) -> Question:
    """Return *question* with what only its approval tells: the change, and who may allow it."""
    if approval.opened is None:
        return question
    say = say_of(who(), approval, now)
    preview = approval.opened.preview
    return replace(question, preview=preview, barred=say.barred, fixed=say.fixed)


def changed(question: Question, change: str, agent: AgentSpec) -> Question:
    """Return *question* with other arguments.

    Raises:
        ConfigError: they do not fit the tool, or no person can allow them.
    """
    arguments = edited(question.arguments, [change])
    tool = tool_of(agent, question.tool)
    if (problem := problem_of_edit(agent, tool, arguments)) is not None:
        raise ConfigError("the edit", problem)
    # The difference that was shown is one that these would not make.
    return replace(question, arguments=arguments, preview="", edited=True)


def decision_of(answered: Answered, agent: AgentSpec) -> DecisionGiven:
    """Return the decision as it goes into the inbox."""
    question = answered.question
    arguments: Any = dict(question.arguments)
    tool = tool_of(agent, question.tool) if answered.always else None
    return DecisionGiven(
        approval=question.approval,
        digest=question.digest,
        verdict=answered.verdict,
        by=who(),
        edit=arguments if question.edited and answered.verdict == "grant" else None,
        always=None if tool is None else always(tool, arguments),
        channel="prompt",
    )
