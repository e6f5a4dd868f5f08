"""A session as its user holds it: a name in the log, and whoever drives it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from cueline.actors.live_text import TextDelta
from cueline.actors.session_reader import SessionReader
from cueline.actors.session_tree import read_start_request
from cueline.client.context import Connection
from cueline.client.decide import decision_of
from cueline.client.inputs import Attachable, Output, attachments_of, read_output
from cueline.client.live_text import live_text, with_live_text
from cueline.client.receipt import DecisionReceipt, PauseReceipt, Receipt, StopReceipt
from cueline.client.session_watcher import SessionWatcher
from cueline.client.value import make_value
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
    """How a session stands when nothing more happens by itself."""

    status: Status
    """`completed`, `failed`, `stopped`; `idle`, or `waiting` for a person."""
    text: str
    """What the agent said last, or why the session failed or waits."""
    partial: bool = False
    """A tool that is not critical failed on the way to what it said."""
    output: Any = None
    """What the agent said, read as the `output` that the session was started with."""
    problem: str = ""
    """Why the text is no such output; empty where it is, or none was declared."""
    value: Any = None
    """The result of a plan, as JSON."""
    cost: Decimal = Decimal(0)
    """In US dollars, of this session alone, without its children."""
    tokens: int = 0
    """Sent and answered."""
    turns: int = 0
    """Answers of the model."""


class VersionedEvent(NamedTuple):
    """An event of a session, and its version: the place in the session's stream, from 1."""

    version: int
    event: SessionEvent


class Session:
    """One session of a log. It holds nothing: the log does, and anyone may hold another.

    Every wish is a message in the session's inbox, which counts even when
    nothing is running; whoever drives the session next reads it.
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
        """Its stream in the log."""
        self._name = name
        """What it was asked for by, perhaps the beginning of its id; None once it was found."""
        self._output = output
        """The form of the agent's last reply; not known before it is needed, of one looked up."""
        self.receipt = receipt
        """What became of the wish that returned this; None of one that was only looked up."""
        self._client = client

    def __repr__(self) -> str:
        return f"<Session {self.id}>"

    @property
    def id(self) -> str:
        """What a user calls it."""
        return shown(self.stream_name)

    async def _find(self) -> str:
        """Return its stream; look it up at the first use of one that was only named."""
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
        """Say *text* to the agent.

        Args:
            text: what is said.
            lane: when it counts: a `note` with the next model call, a `steer` instead of
                what is left of the turn, a `followup` when the session would be done.
            key: names this message, so that sending it twice is sending it once.
            attachments: paths or bytes of images (PNG, JPEG, GIF, WebP, up to 5 MB each) and
                files (PDF or UTF-8 text, up to 20 MB each).
            model: the agent gets this model first; see `switch_model`.
            name: of the message that a step of a plan waits for: the text, read as JSON if it
                is some, is the value of that step.

        Raises:
            UnknownSessionError: there is no such session.
            SessionFinishedError: it has ended; this call recorded nothing, but with a key
                an earlier one may have.
            RejectedError: it was asked to stop; likewise. Or nobody in it reads the message.
            KeyReusedError: something else was said with this key.
            ConfigError: a file cannot be attached, or the model cannot be used; the message
                names it.
            UnknownOutcomeError: send it again, with the same key if it had one.
            LogUnavailableError: the log cannot be used; do what the message says.
        """
        files = attachments_of(attachments)
        said = make_wish(MessageSent, text=text, lane=lane, attachments=files, name=name)
        if model is not None:
            await self.switch_model(model, key=key)
        return await wish(self._client, await self._find(), said, key=key)

    async def switch_model(self, model: str | ModelChoice, *, key: str | None = None) -> Receipt:
        """Give the agent another model, from its next request on.

        A model call that runs is finished first; tool calls go on. The fallbacks stay.

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
        """Start nothing new; what is in flight finishes. Raises what `send` raises."""
        return await wish(self._client, await self._find(), PauseAsked())

    async def resume(self) -> Receipt:
        """Go on after a pause, where it is driven; `Runtime.resume` drives it, too.

        Raises what `send` raises.
        """
        return await wish(self._client, await self._find(), ResumeAsked())

    async def raise_limits(self, /, **limits: Decimal | str | float | None) -> Receipt:
        """Let it have more, and go on if it was held for that.

        Args:
            limits: `max_cost` in US dollars, `max_tokens`, `max_turns`, `max_active_seconds`
                and `max_wall_seconds`, as they are to be.

        Raises:
            RejectedError: it has as much already, or no such limit; and what `send` raises.
            ConfigError: a value is no limit.
        """
        more = make_wish(RaiseAsked, **limits)
        return await wish(self._client, await self._find(), more)

    async def stop(self, reason: str = "") -> StopReceipt:
        """End it: tools get 5 s, are terminated, and killed 5 s later.

        Who drives it is asked to; where nobody does, it has ended when this returns.

        Raises:
            UnknownSessionError: there is no such session; and what `send` raises of the log.
            CuelineError: nobody drives it, and it cannot be driven here; the message says why.
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
        """Allow exactly what *request* shows (I9); of a call in doubt say what became of it.

        What somebody decides sooner counts; then this is a `MessageRefused` among the events.
        Without a *resolution* a call in doubt, whose `request.question` is `did_it_happen`,
        is refused: the message says what follows from each.

        Args:
            request: what is asked, or its id.
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
        """Refuse what *request* shows; the agent is told, with the note.

        A call in doubt does not run again, and the agent is told that its outcome is unknown.
        Raises what `approve` raises.
        """
        given = decision_of("deny", request, by, note=note)
        return await wish(self._client, await self._find(), given)

    async def events(self, after: int = NO_STREAM) -> AsyncIterator[VersionedEvent]:
        """Follow what happens, from the start or after a version, until nothing more does.

        Each item has its version: `events(after=version)` goes on after it.

        It ends when the session has ended, is idle, or waits for a person.

        Raises:
            UnknownSessionError: nobody has asked for such a session.
            SessionUndrivenError: nobody drives it, so nothing more would come; resume it.
            SessionOwnedError: it was taken over from here in the middle of a call,
                which the other waits for: leave the runtime, and the call ends with it.
            CuelineError: it cannot be driven here; the message says why.
        """
        await self._find()
        async with aclosing(self.watch().until_it_rests()) as happening:
            async for recorded, fact in happening:
                if recorded.version > after:
                    yield VersionedEvent(recorded.version, fact)

    async def stream(self, after: int = NO_STREAM) -> AsyncIterator[TextDelta | VersionedEvent]:
        """Follow what happens as `events` does, and each reply piece by piece while it comes.

        A piece is a `TextDelta`. The pieces of a reply come before the event that records it;
        the event has the whole reply, pieces of it may be missing. Pieces are not recorded: of
        a reply that had begun before, or whose pieces are taken too slowly, only the event
        comes. A call that broke off is repeated as another attempt, with pieces of its own.

        Raises what `events` raises.
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
        """Follow version, fact and state for ever, from the start, whoever drives it.

        Raises what `events` raises, but not that nobody drives it.
        """
        await self._find()
        watcher = self.watch()
        async with aclosing(watcher.follow()) as happening:
            async for recorded, fact in happening:
                yield recorded.version, fact, watcher.reader.state

    async def result(self) -> Result:
        """Wait until nothing more happens by itself, and return how the session stands.

        Raises what `events` raises.
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
        """Return *result* with what the session used, and with its output."""
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
        """Return what follows it, from the start or from where *reader* has come."""
        log = self._client.log
        reader = reader or SessionReader(self.stream_name, log.journal())
        return SessionWatcher(reader, log.notifier, log.board, log.clock, self._client.place)
