"""Asks the questions of a session and its children at the terminal, and sends the answers."""

import asyncio
import shlex
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

from cueline.agents.preflight import judge_edit
from cueline.client.answer import answer_of
from cueline.client.client import Client
from cueline.client.decide import decision_of, tool_of
from cueline.client.decide import question_of as open_question
from cueline.client.history import SessionView
from cueline.client.question import PersonalQuestion, always_text, personal_question
from cueline.client.receipt import DecisionReceipt
from cueline.client.wishes import wish
from cueline.console.entry import Entry
from cueline.console.event_renderer import EventRenderer
from cueline.console.prompt import Answered, Prompts
from cueline.console.question import Question, edit_arguments
from cueline.console.screen import Screen
from cueline.console.text import Line
from cueline.errors import ConfigError, NotPendingError
from cueline.events.agent import AgentSpec
from cueline.events.event_text import RESOLUTIONS
from cueline.events.fact import shared_fields
from cueline.events.inbox import DecisionGiven
from cueline.events.message import ToolCall
from cueline.events.sanitize import Redactor
from cueline.events.session import ApprovalRequested


class ChildQuestion(NamedTuple):
    """A question of a child, asked at the terminal of its parent."""

    child: SessionView
    asked: ApprovalRequested
    call: ToolCall


async def question_of_child(client: Client, child: SessionView, approval: str) -> ChildQuestion:
    """Return the question *approval* of the session *child*.

    Raises:
        NotPendingError: the approval is over.
    """
    opened = await open_question(client, approval)
    asked = ApprovalRequested(approval=approval, **shared_fields(opened, ApprovalRequested))
    call = ToolCall(id=opened.effect, name=opened.tool, arguments=opened.arguments)
    return ChildQuestion(child, asked, call)


def question_of(
    session: str, fact: ApprovalRequested, called: ToolCall | None, here: PersonalQuestion
) -> Question:
    """Return the question about the call *called*, for the person here."""
    return Question(
        approval=fact.approval,
        session=session,
        tool=called.name if called else fact.effect,
        arguments=called.arguments if called else {},
        deadline_at=fact.deadline_at,
        requests=fact.requests,
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
    """Return *question* with the changed arguments and their estimated cost.

    Raises:
        ConfigError: the arguments do not fit the tool, or no person can allow them.
    """
    arguments = edit_arguments(question.arguments, [change])
    judged = await judge_edit(agent, tool_of(agent, question.tool), arguments)
    covers = always_text(tool_of(agent, question.tool), arguments)
    cost = _cost(judged.usd, redactor.redact(judged.unpriced)[0])
    # The difference that was shown is one that these would not make.
    return replace(question, arguments=arguments, cost=cost, preview="", edited=True, covers=covers)


def decision_on(asked: ApprovalRequested, answered: Answered) -> DecisionGiven:
    """Return the decision that the answer of a person means.

    Raises:
        ConfigError: the answer does not fit what the call asks for.
    """
    question, result = answered.question, answered.result
    if question.requests and answered.verdict == "grant":
        one = len([name for each in question.requests for name in each.values]) < 2  # noqa: PLR2004
        result = answer_of(question.requests, [result] if one else _words(result))
    edited = question.edited and answered.verdict == "grant"
    return decision_of(
        answered.verdict,
        asked,
        channel="prompt",
        note=answered.note,
        edit=dict(question.arguments) if edited else None,
        always=() if answered.always else None,
        resolution=answered.resolution,
        result=result,
    )


def _words(typed: str) -> list[str]:
    """Return the words that a person *typed*, of which some may be in quotes.

    Raises:
        ConfigError: a quote is not closed.
    """
    try:
        return shlex.split(typed)
    except ValueError as error:
        raise ConfigError("the answer", str(error).lower()) from error


Decide = Coroutine[object, object, DecisionReceipt]


class OpenQuestions:
    """The open questions of a session; if *attended* is false, no question is asked."""

    def __init__(
        self,
        client: Client,
        screen: Screen,
        entry: Entry,
        telling: EventRenderer,
        *,
        session: Callable[[], SessionView],
        attended: bool,
        soon: Callable[[Coroutine[object, object, object]], object],
        wish: Callable[[Decide], Coroutine[object, object, DecisionReceipt | None]],
    ) -> None:
        self.client = client
        """The client that sends the decisions."""
        self.asked: dict[str, ApprovalRequested] = {}
        """The open questions of the session, by approval."""
        self.prompts = Prompts(
            screen,
            client.log.clock.now,
            lambda answered: soon(self._give(answered)),
            entry,
            lambda question, change: soon(self._change(question, change)),
        )
        self._screen = screen
        self._telling = telling
        self._session = session
        self._attended = attended
        self._soon = soon
        self._wish = wish
        self._asking = asyncio.Lock()
        self._of_children: dict[str, ChildQuestion] = {}
        """The open questions of children, by approval."""

    def add(self, fact: ApprovalRequested, *, ask: bool) -> None:
        """Store the question of the session and, if *ask*, ask it."""
        self.asked[fact.approval] = fact
        if ask:
            self.ask(fact)

    def ask(self, fact: ApprovalRequested | None) -> None:
        """Ask an undecided question; after a refused decision, ask again."""
        if self._attended and fact is not None:
            self._soon(self._ask_as_it_stands(fact))

    def ask_for_child(self, child: SessionView) -> None:
        """Ask the question of *child*, once."""
        for each in child.questions:
            if each.id not in self._of_children and not child.automatic:
                self._soon(self._ask_for_child(child, each.id))

    def withdraw(self, approval: str) -> None:
        """Remove a decided question."""
        self.asked.pop(approval, None)
        self.prompts.withdraw(approval)

    def withdraw_all(self) -> None:
        """Remove all questions."""
        for approval in list(self.asked):
            self.withdraw(approval)

    def withdraw_child(self, stream: str) -> None:
        """Remove the questions of an ended child."""
        for approval, question in self._of_children.items():
            if question.child.state.stream == stream:
                self.withdraw(approval)

    async def _ask_for_child(self, child: SessionView, approval: str) -> None:
        with suppress(NotPendingError):  # it was answered elsewhere
            found = await question_of_child(self.client, child, approval)
            if approval not in self._of_children:
                self._of_children[approval] = found
                self.asked[approval] = found.asked
                await self._ask_as_it_stands(found.asked)

    async def _ask_as_it_stands(self, fact: ApprovalRequested) -> None:
        async with self._asking:  # questions are asked in their order
            session, found = self._view_of(fact.approval), self._of_children.get(fact.approval)
            here = await personal_question(self.client.log, session.state, fact)
            if here is not None and fact.approval in self.asked:
                called = self._telling.calls.get(fact.effect) if found is None else found.call
                self.prompts.ask(question_of(session.id, fact, called, here))

    def _view_of(self, approval: str) -> SessionView:
        """Return the session of the question *approval*: a child, or this session."""
        found = self._of_children.get(approval)
        return self._session() if found is None else found.child

    async def _give(self, answered: Answered) -> None:
        fact = self.asked.get(answered.question.approval)
        if fact is None:
            return  # it was decided meanwhile
        stream = self._view_of(fact.approval).state.stream
        try:
            decision = decision_on(fact, answered)
        except ConfigError as error:
            self._screen.show([Line("bad", str(error))])
            self.ask(fact)
            return
        receipt = await self._wish(wish(self.client, stream, decision))
        if receipt is None:
            self.ask(self.asked.get(fact.approval))
        elif receipt.votes > 1 and receipt.verdict == "grant":
            said = f"allowed by {receipt.by}; it takes {receipt.votes} people"
            self._screen.show([Line("note", said)])

    async def _change(self, question: Question, change: str) -> None:
        agent = self._view_of(question.approval).agent
        assert agent is not None, "a session that asks has begun"
        redactor = self.client.log.redactor(agent)
        try:
            self.prompts.change(await question_with_edit(question, change, agent, redactor))
        except ConfigError as error:
            self._screen.show([Line("bad", str(error))])
