"""One session of a log, for its user: follows its events, and sends messages to it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from cueline.actors.live_text import TextDelta
from cueline.actors.session_reader import SessionReader
from cueline.actors.session_tree import read_start_request
from cueline.client.argument_check import make_value
from cueline.client.context import Connection
from cueline.client.decide import decision_of
from cueline.client.inputs import Attachable, Output, attachments_of, read_output
from cueline.client.live_text import live_text, with_live_text
from cueline.client.receipt import DecisionReceipt, PauseReceipt, Receipt, StopReceipt
from cueline.client.session_watcher import SessionWatcher
from cueline.client.wishes import make_wish, wish
from cueline.deciders.session import SessionState, Status
from cueline.deciders.session.limit_state import Used
from cueline.events.agent import ModelChoice
from cueline.events.event_text import cause_text, end_text
from cueline.events.inbox import (
    Lane,
    MessageSent,
    ModelChangeAsked,
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


@dataclass(frozen=True, slots=True)
class Result:
    """The state of a session that has come to rest."""

    status: Status
    """`completed`, `failed`, `stopped`; `idle`, or `waiting` for a person."""
    text: str
    """The last reply of the agent, or the reason why the session failed or waits."""
    partial: bool = False
    """Whether a call of a tool that is not critical failed earlier."""
    output: Any = None
    """The last reply, read as the declared `output` of the session."""
    problem: str = ""
    """The reason why the text does not fit `output`; empty if it fits, or none was declared."""
    value: Any = None
    """The result of a plan, as JSON."""
    cost: Decimal = Decimal(0)
    """The cost of this session in US dollars, without its children."""
    tokens: int = 0
    """Input and output tokens."""
    turns: int = 0
    """The number of the model's answers."""


class VersionedEvent(NamedTuple):
    """An event of a session with its version, its place in the stream from 1."""

    version: int
    event: SessionEvent


class Session:
    """One session of a log. The object has no data of the session; the log has the data.

    Every request is a message in the session's inbox, which counts even if no process
    runs; the next driver of the session reads it.
    """

    def __init__(
        self,
        client: Connection,
        stream: str,
        receipt: Receipt | None = None,
        output: tuple[Output | None] | None = None,
        *,
        name: str | None = None,
    ) -> None:
        self.stream_name = stream
        """The stream of the session."""
        self._name = name
        """The given name, perhaps the beginning of the id; None once the session was found."""
        self._output = output
        """The schema of the agent's last reply; for a found session, read at its first use."""
        self.receipt = receipt
        """The receipt of the start; None for a session that was only looked up."""
        self._client = client

    def __repr__(self) -> str:
        return f"<Session {self.id}>"

    @property
    def id(self) -> str:
        """The id for users."""
        return shown(self.stream_name)

    async def _find(self) -> str:
        """Return the stream; find the session at its first use."""
        if self._name is not None:
            self.stream_name, self._name = await self._client.find(self._name), None
        return self.stream_name

    async def send(
        self,
        text: str,
        lane: Lane = "note",
        *,
        key: str | None = None,
        attachments: Sequence[Attachable] = (),
        model: str | ModelChoice | None = None,
        name: str = "",
    ) -> Receipt:
        """Send *text* to the agent.

        Args:
            text: the text of the message.
            lane: when the model gets it: a `note` with the next model call, a `steer` instead of
            the rest of the turn, a `followup` when the session would be done.
            key: the key of this message; a second message with it is not recorded.
            attachments: paths or bytes of images (PNG, JPEG, GIF, WebP, up to 5 MB each) and
                files (PDF or UTF-8 text, up to 20 MB each).
            model: the agent gets this model first; see `switch_model`.
            name: the name of the message for which a step of a plan waits; the value of the step
            is the text, read as JSON if it is JSON.

        Raises:
            UnknownSessionError: there is no such session.
            SessionFinishedError: the session has ended; this call recorded nothing, but an earlier
            one with the same key may have.
            RejectedError: the session was asked to stop, or neither a model nor a step reads the
            message.
            KeyReusedError: the key was used for another message.
            ConfigError: a file cannot be attached, or the model cannot be used; the message
            names it.
            UnknownOutcomeError: send the message again, with the same key.
            LogUnavailableError: the log cannot be used; see the message.
        """
        files = attachments_of(attachments)
        said = make_wish(MessageSent, text=text, lane=lane, attachments=files, name=name)
        if model is not None:
            await self.switch_model(model, key=key)
        return await wish(self._client, await self._find(), said, key=key)

    async def switch_model(self, model: str | ModelChoice, *, key: str | None = None) -> Receipt:
        """Give the agent another model, from its next request on.

        A running model call is finished first; tool calls continue. The fallbacks stay.

        Args:
            model: `PROVIDER/NAME`; NAME alone keeps the provider, its parameters, address and
                key. Another provider begins without these: give a `ModelChoice` to set them.
            key: as for `send`.

        Raises:
            ConfigError: the provider is unknown, its key is not set here, or a parameter or
                price is missing; nothing was recorded.
            CuelineError: as `send` raises it.
        """
        if not isinstance(model, ModelChoice):
            model = make_value(ModelChoice, provider="", model=model)
        return await wish(self._client, await self._find(), ModelChangeAsked(model=model), key=key)

    async def pause(self) -> PauseReceipt:
        """Pause the session: no call starts, running calls finish. Raises the errors of `send`."""
        return await wish(self._client, await self._find(), PauseAsked())

    async def resume(self) -> Receipt:
        """Ask the session's driver to continue after a pause; `Runtime.resume` also runs it.

        Raises the errors of `send`.
        """
        return await wish(self._client, await self._find(), ResumeAsked())

    async def raise_limits(self, /, **limits: Decimal | str | float | None) -> Receipt:
        """Raise limits of the session, which continues if it was waiting for this.

        Args:
            limits: the new values of `max_cost` in US dollars, `max_tokens`, `max_turns`,
            `max_active_seconds` and `max_wall_seconds`.

        Raises:
            RejectedError: the limit is already as high, or not set; and the errors of `send`.
            ConfigError: a value is no limit.
        """
        more = make_wish(RaiseAsked, **limits)
        return await wish(self._client, await self._find(), more)

    async def stop(self, reason: str = "") -> StopReceipt:
        """End the session: tools get 5 s, are terminated, and killed 5 s later.

        The session's driver ends it; without a driver, this call does, and the session has then
        ended.

        Raises:
            UnknownSessionError: there is no such session; and the errors of `send` about the log.
            CuelineError: the session has no driver, and cannot run here; the message says why.
        """
        asked = make_wish(StopAsked, reason=reason)
        return await wish(self._client, await self._find(), asked)

    async def approve(
        self,
        request: ApprovalRequested | str,
        by: str | None = None,
        note: str = "",
        *,
        edit: Mapping[str, object] | None = None,
        always: Sequence[str] | None = None,
        resolution: Literal["happened", "run_again"] | None = None,
        result: str = "",
    ) -> DecisionReceipt:
        """Allow exactly the call of *request* (I9); resolve a call in doubt.

        An earlier decision of another person counts; this decision is then a `MessageRefused` among
        the events. A call in doubt, whose `request.question` is `did_it_happen`, needs a
        *resolution*: the error has the effect of each.

        Args:
            request: the event of the question, or the approval's id.
            by: the person who allows it; by default the login of this process.
            note: a text for the agent.
            edit: all arguments with which the call runs instead.
            always: globs of paths for which the tool is not asked about again in this session; an
            empty list: the paths of this call, or its exact arguments if it has no paths.
            resolution: for a call in doubt: `happened`, and it does not run again; or
            `run_again`, even if it took effect before.
            result: with `happened`: the result of the call for the agent.

        Raises:
            NotPendingError: the approval is not open; and the errors of `send`.
            RejectedError: the person may not allow the call in this way; or a call in doubt has
            no resolution.
            ConfigError: the edit does not fit the tool, or a rule denies it; or globs are given for
            a tool without paths.
        """
        given = decision_of(
            "grant",
            request,
            by,
            note=note,
            edit=edit,
            always=always,
            resolution=resolution,
            result=result,
        )
        return await wish(self._client, await self._find(), given)

    async def deny(
        self, request: ApprovalRequested | str, by: str | None = None, note: str = ""
    ) -> DecisionReceipt:
        """Refuse the call of *request*; the agent gets the denial with the note.

        A call in doubt does not run again, and the agent gets the result that its outcome is
        unknown. Raises the errors of `approve`.
        """
        given = decision_of("deny", request, by, note=note)
        return await wish(self._client, await self._find(), given)

    async def events(self, after: int = NO_STREAM) -> AsyncIterator[VersionedEvent]:
        """Follow the events, from the start or after a version, until the session rests.

        Each item has its version: `events(after=version)` continues after it.

        The iteration ends when the session has ended, is idle, or waits for a person.

        Raises:
            UnknownSessionError: there is no such session.
            SessionUndrivenError: no process drives it, so no event would come; resume it.
            SessionOwnedError: another process has taken it over in the middle of a call of this
            one, and waits for the call's end: leave the runtime, which ends the call.
            CuelineError: the session cannot run here; the message says why.
        """
        await self._find()
        async with aclosing(self.watch().until_it_rests()) as happening:
            async for recorded, fact in happening:
                if recorded.version > after:
                    yield VersionedEvent(recorded.version, fact)

    async def stream(self, after: int = NO_STREAM) -> AsyncIterator[TextDelta | VersionedEvent]:
        """Follow the events like `events`, and yield the pieces of each reply while it arrives.

        A piece is a `TextDelta`. The pieces of a reply come before the event that records the
        reply, and the event has the whole reply. Pieces are not recorded, and can be missing: a
        reply that began before `stream` has no pieces, and a slow reader, or one in another
        process, may lose the last pieces.
        A repeated model call sends its reply again from the beginning, with a higher `attempt`.

        Raises the errors of `events`.
        """
        with live_text(self._client.log, await self._find(), self._client.place) as pieces:
            happening = with_live_text(self.watch().until_it_rests(), pieces)
            async with aclosing(happening):
                async for each in happening:
                    if isinstance(each, TextDelta):
                        yield each
                    elif each[0].version > after:
                        yield VersionedEvent(each[0].version, each[1])

    async def follow(self) -> AsyncIterator[tuple[int, SessionEvent, SessionState]]:
        """Follow version, fact and state from the start, without end, in any process.

        Raises the errors of `events`, except `SessionUndrivenError`.
        """
        await self._find()
        watcher = self.watch()
        async with aclosing(watcher.follow()) as happening:
            async for recorded, fact in happening:
                yield recorded.version, fact, watcher.reader.state

    async def result(self) -> Result:
        """Wait until the session rests, and return its result.

        Raises the errors of `events`.
        """
        await self._find()
        watcher = self.watch()
        if (last := await watcher.wait_for_answer()) is not None:
            status = Status.COMPLETED if isinstance(last, SessionCompleted) else Status.IDLE
            used = Used(last.turns, last.tokens, last.usd)
            value = last.value if isinstance(last, SessionCompleted) else None
            said = Result(status, last.result, last.partial, value=value)
            return await self._read_output(said, used)
        text, lacks, value, watcher = "", False, None, self.watch()
        async with aclosing(watcher.until_it_rests()) as happening:
            async for _, fact in happening:
                if isinstance(fact, SessionCompleted | SessionIdle):
                    text, lacks = fact.result, fact.partial
                    value = fact.value if isinstance(fact, SessionCompleted) else None
                elif isinstance(fact, SessionFailed):
                    text = end_text(fact)
        state = watcher.reader.state
        if state.waiting is not None:
            text = cause_text(state.waiting.cause)
        return await self._read_output(Result(state.status, text, lacks, value=value), state.used)

    async def _read_output(self, result: Result, used: Used) -> Result:
        """Return *result* with the usage of the session, and with its output."""
        result = replace(result, cost=used.usd, tokens=used.tokens, turns=used.turns)
        if result.status not in (Status.COMPLETED, Status.IDLE):
            return result
        if self._output is None:
            asked = await read_start_request(self._client.log.journal(), self.stream_name)
            self._output = (asked.agent.output,)
        (form,) = self._output
        if form is None:
            return result
        output, problem = read_output(result.text, form)
        return replace(result, output=output, problem=problem)

    def watch(self, reader: SessionReader | None = None) -> SessionWatcher:
        """Return a watcher of the session, from the start or from the position of *reader*."""
        log = self._client.log
        reader = reader or SessionReader(self.stream_name, log.journal())
        return SessionWatcher(reader, log.notifier, log.board, log.clock, self._client.place)
