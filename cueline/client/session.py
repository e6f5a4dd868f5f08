"""A session as its user holds it: a name in the log, and whoever drives it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from cueline.actors.decision import checked_decision
from cueline.actors.fold import fold
from cueline.actors.followed import Followed
from cueline.actors.inbox import asked_agent, check_heard, unread_of
from cueline.actors.owner import owner_of
from cueline.actors.waiter import Told, Waiter
from cueline.deciders.session import SESSION, SessionState, Status, session_of
from cueline.deciders.session.unread import will_stop
from cueline.errors import NotPendingError
from cueline.event_text import cause_text
from cueline.events.inbox import (
    DecisionGiven,
    InboxMessage,
    Lane,
    MessageSent,
    PauseAsked,
    RaiseAsked,
    ResumeAsked,
    StopAsked,
)
from cueline.events.session import (
    ApprovalRequested,
    SessionCompleted,
    SessionEvent,
    SessionFailed,
    SessionIdle,
)
from cueline.events.store import NO_STREAM
from cueline.events.stream import shown

if TYPE_CHECKING:
    from cueline.client.client import Client


@dataclass(frozen=True, slots=True)
class Result:
    """How a session stands when nothing more happens by itself."""

    status: Status
    """`completed`, `failed`, `stopped`; `idle`, or `waiting` for a person."""
    text: str
    """What the agent said last, or why the session failed or waits."""
    partial: bool = False
    """A tool that is not critical failed on the way to what it said."""


class Session:
    """One session of a log. It holds nothing: the log does, and anyone may hold another.

    Every wish is a message in the session's inbox, which counts even when
    nothing is running; whoever drives the session next reads it.
    """

    def __init__(self, client: "Client", stream: str) -> None:
        self.stream = stream
        self._log = client.log
        self._home = client.context
        self._journal = client.log.journal()

    def __repr__(self) -> str:
        return f"<Session {self.id}>"

    @property
    def id(self) -> str:
        """What a user calls it."""
        return shown(self.stream)

    async def send(self, text: str, lane: Lane = "note", *, key: str | None = None) -> None:
        """Say *text* to the agent.

        Args:
            text: what is said.
            lane: when it counts: a `note` with the next model call, a `steer` instead of
                what is left of the turn, a `followup` when the session would be done.
            key: names this message, so that sending it twice is sending it once.

        Raises:
            UnknownSessionError: there is no such session.
            SessionFinishedError: it has ended; this call recorded nothing, but with a key
                an earlier one may have.
            RejectedError: it was asked to stop; likewise.
            KeyReusedError: something else was said with this key.
            UnknownOutcomeError: send it again, with the same key if it had one.
            LogUnavailableError: the log cannot be used; do what the message says.
        """
        message = MessageSent(lane=lane, text=text)
        await self._say(message, key=None if key is None else f"send.{key}")

    async def pause(self) -> None:
        """Start nothing new; what is in flight finishes. Raises what `send` raises."""
        await self._say(PauseAsked())

    async def resume(self) -> None:
        """Go on after a pause, where it is driven; `Runtime.resume` drives it, too.

        Raises what `send` raises.
        """
        await self._say(ResumeAsked())

    async def raise_limits(
        self,
        *,
        max_cost: Decimal | str | None = None,
        max_tokens: int | None = None,
        max_turns: int | None = None,
        max_active_seconds: float | None = None,
        max_wall_seconds: float | None = None,
    ) -> None:
        """Let it have more, and go on if it was held for that.

        Raises:
            RejectedError: it has as much already, or no such limit; and what `send` raises.
            ValidationError: a value is no limit (pydantic's).
        """
        asked = {
            "max_cost": max_cost,
            "max_tokens": max_tokens,
            "max_turns": max_turns,
            "max_active_seconds": max_active_seconds,
            "max_wall_seconds": max_wall_seconds,
        }
        await self._say(RaiseAsked.model_validate(asked))

    async def stop(self, reason: str = "Session was manually stopped") -> None:
        """End it: tools get 5 s, are terminated, and killed 5 s later.

        Who drives it is asked to; where nobody does, it has ended when this returns.

        Raises:
            UnknownSessionError: there is no such session; and what `send` raises of the log.
            CuelineError: nobody drives it, and it cannot be driven here; the message says why.
        """
        state = await self._state()
        if state.finished:
            return
        if not will_stop(state, await self._unread(state)):
            await self._post(StopAsked(reason=reason))
        store, now = self._journal.store, self._log.clock.now()
        owner = await owner_of(store, self._log.board, self.stream, now)
        if owner is None and not self._home.takes_up(self.stream):
            await self._home.take_up(self.stream)
            await self.result()

    async def approve(
        self,
        request: ApprovalRequested,
        by: str | None = None,
        note: str = "",
        *,
        edit: Mapping[str, object] | None = None,
        always: Sequence[str] | None = None,
        resolution: Literal["happened", "run_again"] | None = None,
        result: str = "",
    ) -> None:
        """Allow exactly what *request* shows (I9); of a call in doubt say what became of it.

        What somebody decides sooner counts; then this is a `MessageRefused` among the events.
        Without a *resolution* a call in doubt, whose `request.question` is `did_it_happen`,
        is refused: the message says what follows from each.

        Args:
            request: what is asked.
            by: who allows it; the login of this process, where nobody is named.
            note: told to the agent.
            edit: the arguments with which it may run instead, all of them.
            always: globs of paths where the tool needs no more asking in this session; an empty
                list: the paths of this call, or where it has none exactly its arguments.
            resolution: of a call in doubt: `happened`, and it does not run again; or
                `run_again`, even if it took effect before.
            result: with `happened`: what the agent is told as the result of the call.

        Raises:
            NotPendingError: it does not wait (any more); and what `send` raises.
            RejectedError: whoever allows it may not, or not like that; or nothing was said
                of a call in doubt.
            ConfigError: the edit does not fit the tool, or a rule denies it; or the tool names
                no paths, so that no glob means anything to it.
        """
        more = {"edit": edit, "always": always, "resolution": resolution, "result": result}
        await self._decide(request, "grant", by, note, more)

    async def deny(self, request: ApprovalRequested, by: str | None = None, note: str = "") -> None:
        """Refuse what *request* shows; the agent is told, with the note.

        A call in doubt does not run again, and the agent is told that its outcome is unknown.
        Raises what `approve` raises.
        """
        in_doubt = request.question == "did_it_happen"
        more = {"resolution": "do_not_run" if in_doubt else None}
        await self._decide(request, "deny", by, note, more)

    async def _decide(
        self,
        request: ApprovalRequested,
        verdict: str,
        by: str | None,
        note: str,
        more: Mapping[str, object],
    ) -> None:
        by = self._home.user if by is None else by
        decision = DecisionGiven.model_validate(
            {
                "approval": request.approval,
                "digest": request.digest,
                "verdict": verdict,
                "by": by,
                "note": note,
                "channel": "api",
                **more,
            }
        )
        state = await self._listening(decision)
        if request.approval not in state.questions:
            raise NotPendingError(request.approval, f"{self.id} does not wait for it (any more)")
        now, check_edit = self._log.clock.now(), self._log.check_edit
        checked = await checked_decision(self._journal, self.stream, decision, now, check_edit)
        await self._post(checked, by=f"user:{by}")

    async def _state(self) -> SessionState:
        state, _ = await fold(self._journal, self.stream, SESSION, session_of(self.stream))
        return state

    async def _say(self, message: InboxMessage, *, key: str | None = None) -> None:
        # Else whoever asks for the result next takes the last one for an answer.
        await self._listening(message)
        await self._post(message, key=key)

    async def _listening(self, message: InboxMessage) -> SessionState:
        """Return the state of a session that will take *message*; see `check_heard`."""
        state = await self._state()
        agent = await asked_agent(self._journal, self.stream)
        check_heard(state, await self._unread(state), message, agent)
        return state

    async def _unread(self, state: SessionState) -> list[object]:
        return [said for _, said in await unread_of(self._journal, state)]

    async def _post(
        self, message: InboxMessage, by: str = "user", *, key: str | None = None
    ) -> None:
        agent = await asked_agent(self._journal, self.stream)
        # First: it may fail again before we are told that it was posted.
        self._home.tries_again(self.stream)
        await self._log.post(self.stream, message, agent, by=by, key=key)

    async def events(self, after: int = NO_STREAM) -> AsyncIterator[SessionEvent]:
        """Follow what happens, from the start or after a version, until nothing more does.

        It ends when the session has ended, is idle, or waits for a person.

        Raises:
            UnknownSessionError: nobody has asked for such a session.
            SessionUndrivenError: nobody drives it, so nothing more would come; resume it.
            SessionOwnedError: it was taken over from here in the middle of a call,
                which the other waits for: leave the runtime, and the call ends with it.
            CuelineError: it cannot be driven here; the message says why.
        """
        async with aclosing(self._waiter().until_it_rests()) as happening:
            async for version, fact, _ in happening:
                if version > after:
                    yield fact

    async def follow(self) -> AsyncIterator[Told]:
        """Follow version, fact and state for ever, from the start, whoever drives it.

        Raises:
            UnknownSessionError: nobody has asked for such a session.
            SessionOwnedError: it was taken over from here in the middle of a call,
                which the other waits for: leave the runtime, and the call ends with it.
        """
        async with aclosing(self._waiter().follow()) as happening:
            async for told in happening:
                yield told

    async def result(self) -> Result:
        """Wait until nothing more happens by itself, and return how the session stands.

        Raises:
            UnknownSessionError: nobody has asked for such a session.
            SessionUndrivenError: nobody drives it, so there is nothing to wait for; resume it.
            SessionOwnedError: it was taken over from here in the middle of a call,
                which the other waits for: leave the runtime, and the call ends with it.
            CuelineError: it cannot be driven here; the message says why.
        """
        if (last := await self._waiter().wait_for_answer()) is not None:
            status = Status.COMPLETED if isinstance(last, SessionCompleted) else Status.IDLE
            return Result(status, last.result, last.partial)
        text, lacks, state = "", False, session_of(self.stream)
        async with aclosing(self._waiter().until_it_rests()) as happening:
            async for _, fact, state in happening:  # noqa: B007 - the last one counts
                if isinstance(fact, SessionCompleted | SessionIdle):
                    text, lacks = fact.result, fact.partial
                elif isinstance(fact, SessionFailed):
                    text = fact.error
        if state.waiting is not None:
            text = cause_text(state.waiting.cause)
        return Result(state.status, text, lacks)

    def _waiter(self) -> Waiter:
        log = self._log
        followed = Followed(self.stream, self._journal)
        return Waiter(followed, log.lookout, log.board, log.clock, self._home)
