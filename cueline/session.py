"""A session as its user holds it: a name in the log, and whoever drives it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol, cast

from cueline.actors.fold import fold
from cueline.actors.inbox import post
from cueline.clock import Clock
from cueline.deciders.session import SESSION, SessionState, Status, session_of
from cueline.errors import SessionFinishedError, UnknownSessionError
from cueline.events.agent import AgentSpec
from cueline.events.clean import Redactor, clean
from cueline.events.codec import Emptied
from cueline.events.inbox import (
    DecisionGiven,
    InboxMessage,
    Lane,
    MessageSent,
    PauseAsked,
    RaiseAsked,
    ResumeAsked,
    StartAsked,
    StopAsked,
)
from cueline.events.journal import Journal, Unread
from cueline.events.session import (
    ApprovalRequested,
    SessionCompleted,
    SessionEvent,
    SessionFailed,
    SessionIdle,
)
from cueline.events.store import NO_STREAM
from cueline.events.stream import shown, sibling


class OpenLog(Protocol):
    """What a session needs of the log it is in."""

    @property
    def clock(self) -> Clock:
        """The clock of this process."""
        ...

    def journal(self, agent: AgentSpec | None = None) -> Journal:
        """Return the log in facts."""
        ...

    def redactor(self, agent: AgentSpec | None) -> Redactor:
        """Return what takes the secrets of *agent* out."""
        ...


@dataclass(frozen=True, slots=True)
class Result:
    """How a session stands when nothing more happens by itself."""

    status: Status
    text: str
    """What the agent said last, or why the session failed or waits."""
    partial: bool = False
    """A tool that is not critical failed on the way to what it said."""


class Session:
    """One session of a log. It holds nothing: the log does, and anyone may hold another.

    Every wish is a message in the session's inbox, which counts even when
    nothing is running; whoever drives the session next reads it.
    """

    def __init__(self, stream: str, log: OpenLog) -> None:
        self.stream = stream
        self._log = log
        self._journal = log.journal()

    @property
    def id(self) -> str:
        """What a user calls it."""
        return shown(self.stream)

    async def send(self, text: str, lane: Lane = "note") -> None:
        """Say *text*: with the next model call, instead of what is left of the turn, or after it.

        Raises:
            UnknownSessionError: there is no such session.
            SessionFinishedError: it has ended; nothing was recorded.
        """
        # Else whoever asks for the result next takes the last one for an answer.
        state, _ = await fold(self._journal, self.stream, SESSION, session_of(self.stream))
        if state.finished:
            raise SessionFinishedError(self.id, f"the session has ended: {state.status}")
        await self._post(MessageSent(lane=lane, text=text))

    async def pause(self) -> None:
        """Start nothing new; what is in flight finishes."""
        await self._post(PauseAsked())

    async def resume(self) -> None:
        """Go on after a pause."""
        await self._post(ResumeAsked())

    async def raise_limits(
        self,
        *,
        max_cost: Decimal | str | None = None,
        max_tokens: int | None = None,
        max_turns: int | None = None,
        max_active_seconds: float | None = None,
        max_wall_seconds: float | None = None,
    ) -> None:
        """Let it have more; what it is to have no more of, or never had, it refuses."""
        asked = {
            "max_cost": max_cost,
            "max_tokens": max_tokens,
            "max_turns": max_turns,
            "max_active_seconds": max_active_seconds,
            "max_wall_seconds": max_wall_seconds,
        }
        await self._post(RaiseAsked.model_validate(asked))

    async def stop(self, reason: str = "Session was manually stopped") -> None:
        """End it: tools get 5 s, are terminated, and killed 5 s later."""
        await self._post(StopAsked(reason=reason))

    async def approve(
        self,
        request: ApprovalRequested,
        by: str = "user",
        note: str = "",
        *,
        edit: Mapping[str, object] | None = None,
        always: Sequence[str] | None = None,
    ) -> None:
        """Allow exactly what *request* shows (I9).

        Args:
            request: what is asked.
            by: who allows it.
            note: told to the agent.
            edit: the arguments with which it may run instead, all of them.
            always: globs of the paths where the tool needs no more asking in this session.
        """
        await self._decide(request, "grant", by, note, edit=edit, always=always)

    async def deny(self, request: ApprovalRequested, by: str = "user", note: str = "") -> None:
        """Refuse what *request* shows; the agent is told, with the note."""
        await self._decide(request, "deny", by, note)

    async def _decide(
        self,
        request: ApprovalRequested,
        verdict: str,
        by: str,
        note: str,
        *,
        edit: Mapping[str, object] | None = None,
        always: Sequence[str] | None = None,
    ) -> None:
        decision = DecisionGiven.model_validate(
            {
                "approval": request.approval,
                "digest": request.digest,
                "verdict": verdict,
                "by": by,
                "note": note,
                "edit": None if edit is None else dict(edit),
                "always": None if always is None else tuple(always),
                "channel": "api",
            }
        )
        await self._post(decision, by=f"user:{by}")

    async def _post(self, message: InboxMessage, by: str = "user") -> None:
        """Put *message* into the inbox, without the secrets of the session's agent (I11)."""
        async for _, asked in self._journal.read(sibling(self.stream, "inbox"), until=1):
            if isinstance(asked, StartAsked):
                message = clean(message, self._log.redactor(asked.agent))[0]
        await post(self._journal, self.stream, message, by=by)

    async def events(self, after: int = NO_STREAM) -> AsyncIterator[SessionEvent]:
        """Follow what happens, from the start or after a version, until nothing more does.

        It ends when the session has ended, is idle, or waits for a person.

        Raises:
            UnknownSessionError: nobody has asked for such a session.
        """
        async for version, fact, state in self.follow():
            if version > after:
                yield fact
                if await self._rests(version, state):
                    return

    async def follow(self) -> AsyncIterator[tuple[int, SessionEvent, SessionState]]:
        """Follow version, fact and state for ever, from the start."""
        inbox = sibling(self.stream, "inbox")
        if (await self._journal.store.head(inbox)).version == NO_STREAM:
            raise UnknownSessionError(self.id, "there is no such session in this log")
        position = await self._journal.store.last_position()
        state = session_of(self.stream)
        version = NO_STREAM
        async for recorded, fact in self._journal.read(self.stream):
            version = recorded.version
            if not isinstance(fact, Emptied):
                event = cast("SessionEvent", fact)
                state = SESSION.evolve(state, event)
                yield version, event, state
        async for recorded, told in self._journal.follow(position, {"session"}):
            if recorded.stream != self.stream or recorded.version <= version:
                continue
            if isinstance(told, Unread):
                raise told.error
            if not isinstance(told, Emptied):
                event = cast("SessionEvent", told)
                state = SESSION.evolve(state, event)
                yield recorded.version, event, state

    async def result(self) -> Result:
        """Wait until nothing more happens by itself, and return how the session stands."""
        text, lacks = "", False
        async for version, fact, state in self.follow():
            match fact:
                case SessionCompleted() | SessionIdle():
                    text, lacks = fact.result, fact.partial
                case SessionFailed(error=error):
                    text = error
                case _:
                    pass
            if await self._rests(version, state):
                why = state.waiting.why if state.waiting else text
                return Result(state.status, why, lacks)
        raise AssertionError("following never ends by itself")

    async def _rests(self, version: int, state: SessionState) -> bool:
        """Whether only a person, or nobody, can make it go on; nothing more is recorded yet."""
        wait = state.waiting
        waits = wait is not None and (wait.is_pause or wait.kind == "approval")
        if not (waits or state.finished or state.status is Status.IDLE):
            return False
        if not state.finished and (self._is_overdue(state) or await self._unread(state)):
            return False
        return (await self._journal.store.head(self.stream)).version == version

    def _is_overdue(self, state: SessionState) -> bool:
        """Whether a question to a person has expired, which the session has yet to learn."""
        wait = state.waiting
        until = wait.deadline_at if wait is not None and wait.kind == "approval" else None
        return until is not None and until <= self._log.clock.now()

    async def _unread(self, state: SessionState) -> bool:
        """Whether its inbox holds messages that it has not read."""
        inbox = await self._journal.store.head(sibling(self.stream, "inbox"))
        return inbox.version > max(state.inbox_read, 1)
