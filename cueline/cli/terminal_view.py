"""Shows one session at the terminal, asks its questions, and ends when it rests."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from pydantic import JsonValue

from cueline.cli.approval_prompt import OpenQuestions
from cueline.client.client import Client
from cueline.client.document import document
from cueline.client.export import ending_of
from cueline.client.history import SessionView
from cueline.client.live_text import LiveTextSubscription, live_text
from cueline.client.wishes import wish
from cueline.console.entry import Entry
from cueline.console.event_renderer import EventRenderer, not_shown
from cueline.console.reply_preview import ReplyPreview
from cueline.console.screen import Screen
from cueline.console.status_line import StatusLine
from cueline.console.summary import summary
from cueline.console.text import WIDTH, Line, one_line, visible
from cueline.errors import (
    ConfigError,
    CuelineError,
    RejectedError,
    SessionOwnedError,
    SessionUndrivenError,
)
from cueline.events.event_text import wait_text
from cueline.events.inbox import ChildEnded, DecisionGiven, Lane, MessageSent, PauseAsked
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
from cueline.events.stream import trouble_message

if TYPE_CHECKING:
    from cueline.console.input_line import Live

T = TypeVar("T")
RECORD_SECONDS = 1.0
"""The time to record calls that were cancelled at the end of the grace time."""


class TerminalView:
    """Shows one session on one screen, without driving or delaying it."""

    def __init__(
        self,
        client: Client,
        stream: str,
        screen: Screen,
        *,
        attended: bool,
        hide_thinking: bool = False,
        facts: Callable[[RecordedEvent, SessionEvent], None] | None = None,
    ) -> None:
        self.telling = EventRenderer(thinking=screen.live and not hide_thinking)
        self.result = ""
        """The last reply of the agent."""
        self.value: JsonValue = None
        """The result of a plan."""
        self.error: dict[str, Any] | None = None
        """The error of a failed session."""
        self.gave_way = False
        """Whether another process has the session now."""
        self._client = client
        self._stream = stream
        self.watcher = client.session(stream).watch()
        self.screen = screen
        self._attended = attended
        self._facts = facts
        commands = {
            "/cost": self._show_cost,
            "/model": self._show_model,
            "/pause": self.pause,
            "/quit": self._quit,
            "/thinking": self._toggle_thinking,
        }
        self._status = StatusLine(self.telling)
        self._live: Live | None = None
        self._preview = ReplyPreview(screen, hide_thinking=hide_thinking)
        self._said: list[str] = []
        self._entry = Entry(screen, self._say, commands, self._switch)
        self._questions = OpenQuestions(
            client,
            screen,
            self._entry,
            self.telling,
            session=lambda: self.session,
            attended=attended,
            soon=self._soon,
            wish=self._wish,
        )
        self._posting = asyncio.Lock()
        self._over: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """Whether the session rested, once following has ended; or its error."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._warned = ""
        self._said_of_children: set[str] = set()

    @property
    def session(self) -> SessionView:
        """The state of the session, up to the read version."""
        return self.watcher.view

    def attach(self, client: Client) -> None:
        """Use *client* to follow the session and to send wishes."""
        self._client = self._questions.client = client
        self.watcher = client.session(self._stream).watch(self.watcher.reader)

    async def catch_up(self, *, show: bool) -> None:
        """Read the past, and *show* it, or only apply it."""
        async for recorded, fact in self.watcher.read():
            self._take(recorded, fact, show=show)

    async def until_it_rests(self) -> bool:
        """Show new events until the session rests; return False if the user left earlier.

        Raises:
            CuelineError: the session cannot be driven or read.
        """
        try:
            return await self._show_until_it_rests()
        except Exception as error:
            if not isinstance(error, CuelineError):
                await self._let_calls_end()
            raise

    async def _let_calls_end(self) -> None:
        """Let calls in this process end and be recorded, without output."""
        if (settled := self._client.place.settled(self._stream)) is not None:
            with suppress(Exception):
                await wish(self._client, self._stream, PauseAsked(why="signal"))
            with suppress(TimeoutError):
                async with asyncio.timeout(self._client.log.grace_seconds + RECORD_SECONDS):
                    await settled

    async def _show_until_it_rests(self) -> bool:
        async with self._at_the_bottom():
            self._offer()
            for fact in self._questions.asked.values():
                self._questions.ask(fact)
            with live_text(self._client.log, self._stream, self._client.place) as pieces:
                previewing = self._soon(self._preview_replies(pieces))
                following = asyncio.create_task(self._follow())
                await asyncio.wait({following, self._over}, return_when=asyncio.FIRST_COMPLETED)
                following.cancel()
                previewing.cancel()
            if not self._over.done():
                self._over.cancel()
                return following.result()
        return self._over.result()

    def stuck(self, stream: str, error: CuelineError) -> None:
        """Handle an error of the session's place."""
        if error.retryable:
            self._warn(f"warning: {error} (tried again until it works)")
        elif stream == self._stream:
            self._fail(error)
        else:
            self._warn(f"warning: {trouble_message(stream, error)}")

    def pause(self) -> None:
        """Ask the session to pause; leave when the session pauses, or when the time is over."""
        note = "pausing; what is in flight may finish (Ctrl-C again leaves at once)"
        self.screen.show([Line("note", note)])
        asked = PauseAsked(why="signal")
        self._soon(self._wish(wish(self._client, self._stream, asked)))
        seconds = self._client.log.grace_seconds + RECORD_SECONDS
        asyncio.get_running_loop().call_later(seconds, lambda: self._leave(rested=False))

    def let_go(self) -> None:
        """Restore the terminal."""
        if self._live is not None:
            self._live.restore()

    def _at_the_bottom(self) -> AbstractAsyncContextManager[object]:
        """Return the bottom of the terminal: the input line and the status line."""
        if not self._attended:
            return nullcontext()
        from cueline.console.input_line import Live

        prompts, status, reply = self._questions.prompts, self._status.text, self._preview.rows
        self._live = Live(self.screen, prompts, status, self._said, reply=reply, ended=self._done)
        return self._live

    async def _preview_replies(self, pieces: LiveTextSubscription) -> None:
        """Show replies and the progress of calls while they arrive, without end."""
        while True:
            for piece in await pieces.take():
                self._preview.add(piece)
            for progress in pieces.take_progress():
                self._status.show_progress(progress)
            if self._live is not None and self.screen.live:
                self._live.refresh()
            elif not self.screen.live:
                self._preview.show_lines()

    async def _follow(self) -> bool:
        """Show new events; return whether the session then rests."""
        try:
            async with aclosing(self.watcher.until_it_rests(self._stays)) as happening:
                async for recorded, fact in happening:
                    # The inherited events of a fork were shown in its parent.
                    self._take(recorded, fact, show=recorded.stream == self._stream)
        except SessionOwnedError:
            self.gave_way = True
            return False
        except SessionUndrivenError as error:
            self._warn(f"{self.session.id}: nobody drives it now ({error.why})")
            return False
        return True

    async def _stays(self) -> bool:
        """Whether a resting session continues after an answer of the person here."""
        session = self.session
        if session.finished:
            return await self.watcher.reader.unread()  # an accepted message is answered
        if session.waiting is None:
            return self._entry.open
        if self._attended:
            self._show_waiting_children()
        return self._attended and not session.waiting.is_pause

    def _show_waiting_children(self) -> None:
        """Ask the questions of the children, and print once their other waits."""
        for child in self.watcher.children:
            assert child.waiting is not None, "a child at rest waits"
            self._questions.ask_for_child(child)
            why = wait_text(child.waiting.kind, child.waiting.cause, paused=child.waiting.is_pause)
            said = f"child {child.id}: {why}"
            if said not in self._said_of_children:
                self._said_of_children.add(said)
                self.screen.show([Line("note", one_line(said, WIDTH))])

    def _take(self, recorded: RecordedEvent, fact: SessionEvent, *, show: bool) -> None:
        lines = self.telling.render(recorded, fact)
        try:
            lines = self._preview.not_shown(lines)
            self._preview.learn(fact)
            self._status.learn(fact, recorded.recorded_at)
        except Exception as error:  # noqa: BLE001 - what happens goes on, shown or not
            lines.append(not_shown(recorded, error))
        if show and self._facts is not None:
            self._facts(recorded, fact)
        if show and not self._is_asked(fact):
            self.screen.show(lines)
        self._note(fact, show=show)

    def _note(self, fact: SessionEvent, *, show: bool) -> None:
        match fact:
            case ApprovalRequested() if not self.session.automatic:
                self._questions.add(fact, ask=show)
            case ApprovalResolved(approval=approval):
                self._questions.withdraw(approval)
            case MessageRefused(message=DecisionGiven(approval=approval)) if show:
                # The question is still open: the answer was refused.
                self._questions.ask(self._questions.asked.get(approval))
            case SessionStarted() | SessionForked():
                self._questions.withdraw_all()  # of the past that a fork shares
                self._offer(show=show)
            case SessionCompleted(result=result) | SessionIdle(result=result):
                self.result = result
                self.value = fact.value if isinstance(fact, SessionCompleted) else None
            case SessionFailed() | SessionStopped():
                self.error = document(ending_of(fact))
            case MessageReceived(message=MessageSent(text=text)):
                self._said.append(text)
            case MessageReceived(message=ChildEnded(child=child)):
                self._questions.withdraw_child(child)
            case _:
                pass

    def _is_asked(self, fact: SessionEvent) -> bool:
        """Whether the shown question already contains *fact*."""
        if not self._attended or self.session.automatic:
            return False
        waits = isinstance(fact, SessionWaiting) and fact.kind == "approval"
        return waits or isinstance(fact, ApprovalRequested)

    def _offer(self, *, show: bool = True) -> None:
        """Let the person here send messages, if the session stays open."""
        if show and self._attended and self.session.open:
            self._entry.offer()

    def _say(self, lane: Lane, text: str) -> None:
        self._soon(self._wish(self._client.session(self._stream).send(text, lane)))

    def _quit(self) -> None:
        """Leave as soon as the session rests; an open question counts as rest, and stays open."""
        if self._questions.asked:
            self.pause()
        self._entry.open = False
        self._soon(self._look_whether_it_rests())

    def _show_cost(self) -> None:
        self.screen.show(summary(self.session.id, self.session.status, self.telling.tally))

    def _toggle_thinking(self) -> None:
        self._preview.toggle_thinking()
        hidden = self._preview.hide_thinking
        self.telling.thinking = self.screen.live and not hidden
        said = f"the model's thoughts are {'hidden' if hidden else 'shown'}"
        self.screen.show([Line("dim", said)])

    def _show_model(self) -> None:
        if (agent := self.session.agent) is not None:
            named = f"{agent.provider} {agent.model}"
            self.screen.show([Line("dim", f"{named}; /model PROVIDER/NAME changes it")])

    def _switch(self, model: str) -> None:
        self._soon(self._wish(self._client.session(self._stream).switch_model(model)))

    async def _look_whether_it_rests(self) -> None:
        async with self._posting:  # after the requests sent before
            if await self.watcher.rests() and not await self._stays():
                self._leave(rested=True)

    async def _wish(self, wish: Coroutine[object, object, T]) -> T | None:
        """Return the receipt of *wish*; None if the wish is refused; the reason is then shown."""
        try:
            async with self._posting:  # requests are sent in their order
                return await wish
        except (RejectedError, ConfigError) as error:
            self.screen.show([Line("bad", str(error))])
        except CuelineError as error:
            self._fail(error)
        return None

    def _leave(self, *, rested: bool) -> None:
        if not self._over.done():
            self._over.set_result(rested)

    def _fail(self, error: BaseException) -> None:
        if not self._over.done():
            self._over.set_exception(error)

    def _warn(self, warning: str) -> None:
        if warning != self._warned:
            self._warned = warning
            redactor = self._client.log.redactor(self.session.agent)
            with self.screen.above():
                typer.echo(visible(redactor.redact(warning)[0]), err=True)

    def _soon(self, work: Coroutine[object, object, object]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        # Without this, a person would wait for a question that is never shown.
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)
