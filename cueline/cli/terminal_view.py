"""Watches one session from the log: shows it, asks what it asks, says when to leave."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from typing import TYPE_CHECKING, Any

import typer

from cueline.actors.background_task import trouble_message
from cueline.actors.inbox import unread_of
from cueline.actors.session_reader import SessionReader
from cueline.cli.approval_prompt import (
    decision_of,
    question_of,
    question_with_edit,
    refresh_question,
)
from cueline.client.decide import approval_of
from cueline.client.document import document
from cueline.client.export import ending_of
from cueline.client.show import is_decided
from cueline.console.entry import Entry
from cueline.console.event_renderer import EventRenderer
from cueline.console.line import Line
from cueline.console.prompt import Answered, Prompts
from cueline.console.question import Question
from cueline.console.screen import Screen
from cueline.console.status_line import StatusLine
from cueline.console.summary import summary
from cueline.console.text import visible
from cueline.deciders.session import SessionState, rests
from cueline.environment import user_name
from cueline.errors import ConfigError, CuelineError
from cueline.events.inbox import DecisionGiven, InboxMessage, Lane, MessageSent, PauseAsked
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    MessageReceived,
    MessageRefused,
    SessionCompleted,
    SessionEvent,
    SessionFailed,
    SessionForked,
    SessionIdle,
    SessionStarted,
    SessionStopped,
    SessionWaiting,
)
from cueline.events.store import RecordedEvent
from cueline.events.stream import shown, tenant_of
from cueline.wiring import OpenLog

if TYPE_CHECKING:
    from cueline.console.live import Live

Facts = Callable[[RecordedEvent, SessionEvent], None]
"""Handed each fact as it comes."""
RECORD_SECONDS = 1.0
"""What was cancelled at the end of the grace may be recorded for so long."""


class TerminalView:
    """One session on one screen. It drives nothing, and holds nothing up."""

    def __init__(
        self,
        log: OpenLog,
        stream: str,
        screen: Screen,
        *,
        attended: bool,
        facts: Facts | None = None,
    ) -> None:
        self.telling = EventRenderer()
        self.result = ""
        """What the agent said last, when it was done."""
        self.error: dict[str, Any] | None = None
        """Why it failed."""
        self.gave_way = False
        """Whether another process has the session now."""
        self._log = log
        self._journal = log.journal()
        self._stream = stream
        self.screen = screen
        self._attended = attended
        self._facts = facts
        self._followed = SessionReader(stream, self._journal)
        self._questions: dict[str, Question] = {}
        commands = {
            "/cost": self._show_cost,
            "/model": self._show_model,
            "/pause": self.pause,
            "/quit": self._quit,
        }
        self._status = StatusLine(self.telling)
        self._live: Live | None = None
        self._said: list[str] = []
        self._entry = Entry(screen, self._say, commands)
        self._prompts = Prompts(
            screen,
            log.clock.now,
            lambda answered: self._soon(self._give(answered)),
            self._entry,
            lambda question, change: self._soon(self._change(question, change)),
        )
        self._posting, self._asking = asyncio.Lock(), asyncio.Lock()
        self._leaving, self._resting = asyncio.Event(), asyncio.Event()
        self._trouble: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._warned = ""

    @property
    def state(self) -> SessionState:
        """The session, as far as it was read."""
        return self._followed.state

    @property
    def version(self) -> int:
        """How far it was read."""
        return self._followed.version

    async def catch_up(self, *, show: bool) -> None:
        """Read the past, and *show* it, or only keep it in mind."""
        async for recorded, fact in self._followed.read():
            self._take(recorded, fact, show=show)

    async def until_it_rests(self) -> bool:
        """Show what happens until only a person can make it go on; False if it was left before.

        Raises:
            CuelineError: it cannot be driven, or not be read.
        """
        async with self._at_the_bottom():
            self._offer()
            for question in self._questions.values():
                self._ask(question)
            following = asyncio.create_task(self._follow())
            leaving = asyncio.create_task(self._leaving.wait())
            resting = asyncio.create_task(self._resting.wait())
            waits: set[asyncio.Future[Any]] = {following, leaving, resting, self._trouble}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        if following.done() and not following.cancelled():
            following.result()
            return True
        if self._trouble.done() and not self._trouble.cancelled():
            self._trouble.result()
        return self._resting.is_set()

    def stuck(self, stream: str, error: CuelineError) -> None:
        """Hear that the session cannot be driven, or that what drives it has trouble."""
        if error.retryable:
            self._warn(f"warning: {error} (tried again until it works)")
        elif stream == self._stream:
            self._fail(error)
        else:
            self._warn(f"warning: {trouble_message(stream, error)}")

    def pause(self) -> None:
        """Ask the session to pause, and leave when it does, or when time is up."""
        note = "pausing; what is in flight may finish (Ctrl-C again leaves at once)"
        self.screen.show([Line("note", note)])
        self._soon(self._post(PauseAsked(why="signal")))
        asyncio.get_running_loop().call_later(self._log.grace_seconds + RECORD_SECONDS, self.leave)

    def leave(self) -> None:
        """Leave the session as it is."""
        self._leaving.set()

    def give_way(self) -> None:
        """Leave the session to another process."""
        self.gave_way = True
        self.leave()

    def let_go(self) -> None:
        """Give the terminal back as it was."""
        if self._live is not None:
            self._live.restore()

    def _at_the_bottom(self) -> AbstractAsyncContextManager[object]:
        """Return what stays at the bottom of a terminal: what is typed, and what is in flight."""
        if not self._attended:
            return nullcontext()
        from cueline.console.live import Live

        prompts, status = self._prompts, self._status.text
        self._live = Live(self.screen, prompts, status, self._said, self._done)
        return self._live

    async def _follow(self) -> None:
        async with aclosing(self._log.notifier.changes(self._stream)) as growing:
            async for _ in growing:
                async for recorded, fact in self._followed.read():
                    # What a fork inherited has been seen in its parent.
                    self._take(recorded, fact, show=recorded.stream == self._stream)
                if await self._rests():
                    return

    async def _rests(self) -> bool:
        if not rests(self.state, self._log.clock.now()) or self._is_for_who_is_here:
            return False
        return not await self._followed.unread()

    @property
    def _is_for_who_is_here(self) -> bool:
        """Whether it rests for a word that the person here may give."""
        state = self.state
        if state.finished:
            return False
        if state.waiting is None:
            return self._entry.open
        return self._attended and not state.waiting.is_pause

    def _take(self, recorded: RecordedEvent, fact: SessionEvent | None, *, show: bool) -> None:
        if fact is None:
            return
        lines = self._learn(recorded, fact)
        if show and self._facts is not None:
            self._facts(recorded, fact)
        if show and not self._is_asked(fact):
            self.screen.show(lines)
        match fact:
            case ApprovalRequested() if not self._automatic:
                self._question(fact, ask=show)
            case ApprovalResolved(approval=approval):
                self._withdraw(approval)
            case MessageRefused(message=DecisionGiven(approval=approval)) if show:
                self._ask_again(approval)
            case SessionStarted() | SessionForked():
                self._begin(show=show)
            case SessionCompleted(result=result) | SessionIdle(result=result):
                self.result = result
            case SessionFailed() | SessionStopped():
                self.error = document(ending_of(fact))
            case _:
                pass

    def _learn(self, recorded: RecordedEvent, fact: SessionEvent) -> list[Line]:
        lines = self.telling.render(recorded, fact)
        self._status.learn(fact, recorded.recorded_at)
        if isinstance(fact, MessageReceived) and isinstance(fact.message, MessageSent):
            self._said.append(fact.message.text)
        return lines

    def _begin(self, *, show: bool) -> None:
        for approval in list(self._questions):  # of the past that a fork shares
            self._withdraw(approval)
        if show:
            self._offer()

    def _is_asked(self, fact: SessionEvent) -> bool:
        """Whether the question to the person here says it already."""
        if not self._attended or self._automatic:
            return False
        waits = isinstance(fact, SessionWaiting) and fact.kind == "approval"
        return waits or isinstance(fact, ApprovalRequested)

    @property
    def _automatic(self) -> bool:
        return self.state.setup is not None and self.state.agent.policy.auto_approve

    def _question(self, fact: ApprovalRequested, *, ask: bool) -> None:
        question = question_of(fact, self.telling.calls.get(fact.effect), self.state)
        self._questions[question.approval] = question
        if ask:
            self._ask(question)

    def _ask(self, question: Question) -> None:
        if self._attended:
            self._soon(self._ask_as_it_stands(question))

    def _ask_again(self, approval: str) -> None:
        """Ask what is open still, though somebody answered."""
        if approval in self._questions:
            self._ask(self._questions[approval])

    async def _ask_as_it_stands(self, question: Question) -> None:
        """Ask, with what the approval's own stream tells: the change, and who may allow it.

        What was answered elsewhere already is not asked, unless that is refused.
        """
        name = f"{tenant_of(self._stream)}/{question.approval}"
        async with self._asking:  # what was asked first comes first
            unread = await unread_of(self._journal, self.state)
            approval = await approval_of(self._journal, name)
            if is_decided(question.approval, approval, unread):
                return
            question = refresh_question(question, approval, self._log.clock.now())
            if question.approval in self._questions:
                self._prompts.ask(question)

    def _withdraw(self, approval: str) -> None:
        self._questions.pop(approval, None)
        self._prompts.withdraw(approval)

    async def _give(self, answered: Answered) -> None:
        question = answered.question
        await self._post(decision_of(answered, self.state.agent))
        if question.votes > 1 and answered.verdict == "grant":
            said = f"allowed by {user_name()}; it takes {question.votes} people"
            self.screen.show([Line("note", said)])

    async def _change(self, question: Question, change: str) -> None:
        agent = self.state.agent
        try:
            self._prompts.change(
                await question_with_edit(question, change, agent, self._log.redactor(agent))
            )
        except ConfigError as error:
            self.screen.show([Line("bad", str(error))])

    def _offer(self) -> None:
        """Let the person here say more, where the session stays open for it."""
        setup = self.state.setup
        if self._attended and setup is not None and setup.open and not self.state.finished:
            self._entry.offer()

    def _say(self, lane: Lane, text: str) -> None:
        self._soon(self._post(MessageSent(lane=lane, text=text)))

    def _quit(self) -> None:
        """Leave as soon as it rests; a question that waits keeps it from that, and is left open."""
        if self._questions:
            self.pause()
        self._entry.open = False
        self._soon(self._look_whether_it_rests())

    def _show_cost(self) -> None:
        tally = self.telling.tally
        self.screen.show(summary(shown(self._stream), str(self.state.status), tally))

    def _show_model(self) -> None:
        named = f"{self.state.agent.provider} {self.state.agent.model}"
        self.screen.show([Line("dim", f"{named}; a session keeps its model for now")])

    async def _look_whether_it_rests(self) -> None:
        async with self._posting:  # what was said before still counts
            if await self._rests():
                self._resting.set()

    async def _post(self, message: InboxMessage) -> None:
        agent = self.state.agent if self.state.setup is not None else None
        try:
            async with self._posting:  # what was said first comes first
                await self._log.post(self._stream, message, agent, by=f"user:{user_name()}")
        except CuelineError as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._trouble.done():
            self._trouble.set_exception(error)

    def _warn(self, warning: str) -> None:
        if warning != self._warned:
            self._warned = warning
            agent = self.state.agent if self.state.setup is not None else None
            with self.screen.above():
                typer.echo(visible(self._log.redactor(agent).redact(warning)[0]), err=True)

    def _soon(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        # Else a person would wait for a question that nobody asks.
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)
