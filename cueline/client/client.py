"""A client: the wishes and questions that a person or a program may have about one log."""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Unpack

from cueline.actors.breaker_reset import reset_breaker
from cueline.actors.family import Parents
from cueline.actors.fold import fold
from cueline.actors.inbox import asked_agent, new_id, unread_of
from cueline.actors.owner import check_resume, owner_of
from cueline.actors.waiter import Home
from cueline.agent import Agent
from cueline.client.context import NoPlace
from cueline.client.decide import Decision, Granted, decide, question_of
from cueline.client.message import Raised, pause, tell
from cueline.client.reader import Reader
from cueline.client.receipt import DecisionReceipt, PauseReceipt, Receipt, StopReceipt
from cueline.client.session import Session
from cueline.client.stop import stop
from cueline.client.value import made, stream_of
from cueline.config.place import DEFAULT_LOG
from cueline.deciders.session import SESSION, session_of
from cueline.deciders.session.unread import waived_secrets, will_stop
from cueline.environment import who
from cueline.events.agent import ToolSpec
from cueline.events.approval import ApprovalOpened
from cueline.events.inbox import Lane, MessageSent, RaiseAsked, ResumeAsked, StartAsked, StopAsked
from cueline.events.log_url import LogName
from cueline.events.session import ApprovalRequested
from cueline.events.stream import session_stream
from cueline.preflight import check_limits, check_resumed, recorded
from cueline.secret import waiver
from cueline.wiring import Log, open_log


class Client(Reader):
    """An open log, and what is known of who drives its sessions."""

    def __init__(self, log: Log, context: Home) -> None:
        super().__init__(log)
        self.context = context
        self._parents = Parents(log.journal())

    async def start(
        self,
        agent: Agent,
        goal: str | None = None,
        *,
        open: bool = False,  # noqa: A002 - the word of the log
        id: str | None = None,  # noqa: A002 - the word of the log
        labels: Mapping[str, str] | None = None,
        parent: str | None = None,
        without_secrets: Collection[str] = (),
    ) -> Session:
        """Start a session of *agent*, and drive it as long as this runtime is open.

        Who wanted it is the login of this process: rules may exclude that from allowing its calls.

        Cancelled before it returns, it may have recorded the session, or not: who gave it
        an id can `resume` that, which drives it, or says that there is none.

        Args:
            agent: who works.
            goal: what the agent is told first; without one the session is idle
                until the first message.
            open: it stays for more messages after its goal, instead of ending.
            id: what it is called, in letters a-z, digits, `.` and `-`; chosen
                where none is given.
            labels: words of your own, by which `cueline list --json` and SQL find it.
            parent: the session whose child it is, by its id or stream: what it spends
                counts for the limits of all sessions above it, and the parent's log
                says when it was asked for, how it ended and what it spent.
            without_secrets: secrets of the agent that may be unknown where it is driven: what
                has their values in it is recorded as it is. Recorded, with who said so.

        Raises:
            ConfigError: mend the setting, file or variable it names; nothing was recorded.
            ToolImportError: make the tool importable where it will run.
            InvalidNameError: the id, or the parent's, has another form.
            RejectedError: there is a session of that id, or the tree is too deep or too large.
            UnknownSessionError: there is no such parent.
            SessionFinishedError: the parent has ended.
            UnknownOutcomeError: it may be recorded; who gave it an id can `resume` that.
            LogUnavailableError: the log cannot be used; do what the message says.
        """
        spec = recorded(agent, waived=without_secrets)
        said = waiver(spec, without_secrets, who())
        asked = StartAsked(
            agent=spec,
            goal=goal,
            open=open,
            labels=dict(labels or {}),
            asked_by=who(),
            asked_at=self.log.clock.now(),
        )
        if parent is not None:
            asked = await self._parents.child_of(session_stream(parent), asked)
            check_limits(spec, asked.allowances)
        name = new_id() if id is None else id
        stream = await self.log.ask_start(name, asked, by=f"user:{who()}", waived=said)
        await self.context.take_up(stream, asked.parent)
        return self._session(stream)

    async def resume(
        self,
        id: str,  # noqa: A002 - the word of the log
        *,
        accept_changed_tools: bool = False,
        without_secrets: Collection[str] = (),
    ) -> Session:
        """Go on with a session, by its id or stream, that crashed, was paused or interrupted.

        Args:
            id: which session.
            accept_changed_tools: go on with the session's tools as they are now, where they
                have changed since they were recorded; that is recorded.
            without_secrets: as for `start`.

        Raises:
            InvalidNameError: no id has this form.
            UnknownSessionError: there is no such session.
            SessionFinishedError: it has ended; fork it, or start another.
            SessionOwnedError: another living process drives it, and it is not paused;
                ask that one, with `session(id)`.
            ConfigError: mend the setting, folder or variable that it names; nothing was
                recorded.
            ToolChangedError: a tool has changed; accept that, or put it back; nothing was recorded.
            ToolImportError: make the tool importable again; nothing was recorded.
            UnknownOutcomeError: resume it again.
            LogUnavailableError: the log cannot be used; do what the message says.
        """
        stream = session_stream(id)
        session = self._session(stream)
        journal = self.log.journal()
        agent = await asked_agent(journal, stream)
        state, _ = await fold(journal, stream, SESSION, session_of(stream))
        owner = await owner_of(self.log.store, self.log.board, stream, self.log.clock.now())
        ours = owner is not None and self.context.has(owner.incarnation)
        unread = [said for _, said in await unread_of(journal, state)]
        check_resume(state, unread, None if ours else owner)
        said = waiver(agent, without_secrets, who())
        tools: tuple[ToolSpec, ...] = ()
        if not will_stop(state, unread):  # nothing starts in one that ends
            tools = check_resumed(
                agent if state.setup is None else state.agent,
                self.log.url,
                waived=waived_secrets(state, [*unread, said]),
                accept_changed_tools=accept_changed_tools,
                accept_with=f"await runtime.resume({id!r}, accept_changed_tools=True)",
            )
        # Though it may have been asked to stop, and refuse it: a host that has set it aside hears.
        self.context.tries_again(stream)
        if said is not None:
            await self.log.post(stream, said, agent, by=f"user:{who()}")
        await self.log.post(stream, ResumeAsked(tools=tools), agent, by=f"user:{who()}")
        await self.context.take_up(stream)
        return session

    async def send(
        self, session: str, text: str, lane: Lane = "note", *, key: str | None = None
    ) -> Receipt:
        """Say *text* to the agent of a session; see `Session.send`."""
        message = made(MessageSent, lane=lane, text=text)
        name = None if key is None else f"send.{key}"
        return await tell(self, stream_of(session), message, key=name)

    async def pause(self, session: str) -> PauseReceipt:
        """Have a session start nothing new; see `Session.pause`."""
        return await pause(self, stream_of(session))

    async def raise_limits(self, session: str, **limits: Unpack[Raised]) -> Receipt:
        """Let a session have more; see `Session.raise_limits`."""
        return await tell(self, stream_of(session), made(RaiseAsked, **limits))

    async def stop(self, session: str, reason: str = "") -> StopReceipt:
        """End a session; see `Session.stop`."""
        return await stop(self, stream_of(session), made(StopAsked, reason=reason))

    async def approve(
        self, approval: str | ApprovalRequested, **said: Unpack[Granted]
    ) -> DecisionReceipt:
        """Allow what waits for a person, by its id or its event; see `Session.approve`."""
        return await decide(self, approval, Decision(verdict="grant", **said))

    async def deny(
        self,
        approval: str | ApprovalRequested,
        by: str | None = None,
        note: str = "",
        *,
        channel: str = "api",
    ) -> DecisionReceipt:
        """Refuse what waits for a person, by its id or its event; see `Session.deny`."""
        decision = Decision(verdict="deny", by=by, note=note, channel=channel)
        return await decide(self, approval, decision)

    async def question(self, approval: str) -> ApprovalOpened:
        """Return what a person is asked.

        Raises:
            NotPendingError: nothing is, any more; the message says what became of it.
        """
        return await question_of(self, approval)

    async def reset_breaker(self, name: str, by: str | None = None) -> bool:
        """Have calls go out again that a breaker keeps back.

        Args:
            name: of the breaker, as `cueline breakers` shows it.
            by: who resets it; the login of this process, where nobody is named.

        Returns:
            Whether it was anything but closed.

        Raises:
            RejectedError: there is no such breaker.
            LogUnavailableError: the log cannot be used; do what the message says.
        """
        by = who() if by is None else by
        return await reset_breaker(self.log.journal(), name, by, self.log.clock.now())

    def session(self, id: str) -> Session:  # noqa: A002 - the word of the log
        """Return the session of that id, or stream, to look at or to send messages to.

        Nothing is read yet: whether there is one is seen when it is used.

        Raises:
            InvalidNameError: no id has this form.
        """
        return self._session(stream_of(id))

    def _session(self, stream: str) -> Session:
        return Session(self, stream)


@asynccontextmanager
async def open_client(
    path: LogName = DEFAULT_LOG, *, must_exist: bool = True
) -> AsyncIterator[Client]:
    """Open the log at *path* without a place for its sessions: what is asked is recorded.

    Raises:
        LogUnavailableError: the log cannot be used; the message says what to do.
        LogFormatError: another format wrote it.
    """
    async with open_log(path, must_exist=must_exist) as log:
        yield Client(log, NoPlace(log))
