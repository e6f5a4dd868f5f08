"""One session that an editor has open: follows it, prompts it, and asks its questions there."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final, Literal, NamedTuple

from acp import RequestError, helpers
from acp.schema import (
    AllowedOutcome,
    PermissionOption,
    PermissionOptionKind,
    StopReason,
    ToolCallStatus,
    ToolCallUpdate,
)

from cueline.client.client import Client
from cueline.client.decide import decision_of
from cueline.client.history import SessionView
from cueline.client.live_text import TextDelta, live_text, with_live_text
from cueline.client.question import PersonalQuestion, approval_of, personal_question
from cueline.client.resume import resume_request
from cueline.client.session import Session
from cueline.client.session_by_name import over_tree
from cueline.client.wishes import wish
from cueline.deciders.session import SessionState, Status
from cueline.errors import (
    CuelineError,
    NotPendingError,
    RejectedError,
    SessionFinishedError,
    SessionOwnedError,
)
from cueline.events.approval import ApprovalOpened
from cueline.events.event_text import RESOLUTIONS, end_text, wait_text
from cueline.events.fact import shared_fields
from cueline.events.inbox import DecisionGiven, Lane
from cueline.events.input_request import choices_of, request_text
from cueline.events.message import ToolCall
from cueline.events.session import (
    ApprovalRequested,
    MessageReceived,
    MessageRefused,
    SessionEvent,
    SessionFailed,
    SessionForked,
    SessionStarted,
)
from cueline.events.stream import tenant_of
from cueline.gateway.acp_updates import Updates, call_start, preview_content

Start = Callable[[str, Sequence[bytes]], Awaitable[Session]]
"""Starts the session with the text and the files of its first prompt."""
_MESSAGES: Final = (MessageReceived, SessionStarted, SessionForked)
_BY_A_PERSON: Final = ("asked", "signal")
_LIMITS: Final[dict[str, StopReason]] = {
    "max_turns": "max_turn_requests",
    "max_tokens": "max_tokens",
}


class _Answer(NamedTuple):
    """A possible answer to a question, and the decision that it means."""

    text: str
    kind: PermissionOptionKind
    verdict: Literal["grant", "deny"]
    more: dict[str, Any]


_ANSWERS: Final = {
    "allow": _Answer("Allow", "allow_once", "grant", {}),
    "always": _Answer("Allow in this session: ", "allow_always", "grant", {"always": ()}),
    "deny": _Answer("Deny", "reject_once", "deny", {}),
    "happened": _Answer("Done: ", "allow_once", "grant", {"resolution": "happened"}),
    "run_again": _Answer("Again: ", "allow_once", "grant", {"resolution": "run_again"}),
    "do_not_run": _Answer("Leave: ", "reject_once", "deny", {}),
}


class EditorSession:
    """A session of the log that is open in an editor.

    A turn is followed from a prompt, or from the load of a working session, until the session
    rests. Its updates go to the editor also between prompts.
    """

    def __init__(
        self,
        client: Client,
        editor: Any,
        name: str,
        say: Callable[[str], None],
        start: Start | None = None,
    ) -> None:
        """Open the session *name*; if it does not exist yet, *start* starts it."""
        self._client = client
        self._editor = editor
        self._name = name
        self._say = say
        self._start = start
        self._session = client.session(name)
        self._watcher = self._session.watch()
        self._updates = Updates()
        self._turn: asyncio.Task[StopReason] | None = None
        self._cancelled = asyncio.Event()
        self._said: set[int] = set()
        """The inbox versions of the messages from this editor, which shows them itself."""
        self._asked: dict[str, asyncio.Task[None]] = {}
        """The questions that the editor shows or has answered, by approval."""
        self._end = ""
        self._sending = asyncio.Lock()

    @property
    def _state(self) -> SessionState:
        return self._watcher.reader.state

    async def read(self, *, shown: bool) -> None:
        """Read the past of the session, and if *shown* send its updates; go on with its turn.

        The turn goes on here, unless another process runs it. A paused session stays paused.

        Raises:
            UnknownSessionError: there is no such session.
        """
        self._session = self._client.session(await self._client.find(self._name))
        self._watcher = self._session.watch()
        async for _, fact in self._watcher.read():
            await self._show(fact, shown=shown)
        asks = self._watcher.view.questions or self._state.waiting is not None
        if self._is_paused() or (await self._watcher.rests() and not asks) or self._state.finished:
            return
        try:
            await self._run()
        except CuelineError as error:  # it can be looked at; a prompt is told of it again
            await self._send([helpers.update_agent_message_text(f"cueline: {error}")])
        else:
            self._follow()

    async def prompt(self, text: str, files: Sequence[bytes]) -> StopReason:
        """Send a message, and return why the turn that answers it has ended.

        A message after a cancelled turn replaces what was left of the turn.

        Raises:
            SessionFinishedError: the session has ended: fork it.
            RequestError: the session failed, or is paused by an error; the next prompt resumes it.
        """
        async with self._sending:
            version = await self._post(text, files)
            if self._cancelled.is_set():
                self._cancelled = asyncio.Event()
            cancelled = self._cancelled
            self._follow()
        while True:
            turn, leaving = self._follow(), asyncio.ensure_future(cancelled.wait())
            await asyncio.wait((turn, leaving), return_when=asyncio.FIRST_COMPLETED)
            leaving.cancel()
            if cancelled.is_set():
                await asyncio.wait((turn,), timeout=self._client.log.grace_seconds)
                return "cancelled"
            reason = turn.result()
            if self._state.finished or self._state.inbox_seen >= version:
                return reason

    async def _post(self, text: str, files: Sequence[bytes]) -> int:
        """Record a message, and run the session; return the version of the last message."""
        if self._start is not None:
            self._said.add(1)
            self._session = await self._start(text, files)
            self._watcher, self._start = self._session.watch(), None
            return 1
        hold = self._state.hold
        held = hold is not None and hold.cause.code in _BY_A_PERSON
        lane: Lane = "steer" if held or self._cancelled.is_set() else "note"
        sent = (await self._session.send(text, lane, attachments=files)).version or 1
        self._said.add(sent)
        return await self._run() or sent

    async def cancel(self) -> None:
        """Pause a working session, and stop its children; the next prompt resumes it.

        Running calls of tools finish; the prompt does not wait for them longer than for the tools
        of a stopped session.
        """
        async with self._sending:
            if self._turn is None or self._turn.done() or self._cancelled.is_set():
                return
            self._cancelled.set()

            async def end(name: str) -> object:
                own = name == self._session.id
                return await (self._client.pause(name) if own else self._client.stop(name))

            with suppress(SessionFinishedError, RejectedError):
                await over_tree(self._client, self._session.id, end, tree=True)

    async def close(self) -> None:
        """Follow the session no more."""
        tasks = [*self._asked.values(), *([] if self._turn is None else [self._turn])]
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> int | None:
        """Run the session here, unless another process runs it.

        Returns the version of the message that resumes a paused session.

        Raises:
            CuelineError: the session cannot run here; the message says why.
        """
        with suppress(SessionOwnedError):
            request = await resume_request(
                self._client,
                self._session.stream_name,
                accept_changed_tools=False,
                accept_with=f"cueline resume {self._session.id} --accept-changed-tools",
                without_secrets=(),
            )
            resumed = (await request.submit(self._client)).receipt
            return None if resumed is None else resumed.version
        return None

    def _is_paused(self) -> bool:
        return self._state.waiting is not None and self._state.waiting.is_pause

    def _follow(self) -> asyncio.Task[StopReason]:
        if self._turn is None or self._turn.done():
            self._turn = asyncio.create_task(self._follow_turn())
            self._turn.add_done_callback(self._tell_trouble)
        return self._turn

    def _tell_trouble(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._say(f"{self._name}: {error}")

    async def _follow_turn(self) -> StopReason:
        """Send the updates of the session until it rests; return the reason."""
        log, stream = self._client.log, self._session.stream_name
        self._watcher = self._session.watch(self._watcher.reader)
        with live_text(log, stream, self._client.place) as pieces:
            happening = with_live_text(self._watcher.until_it_rests(self._stays), pieces)
            async with aclosing(happening) as updates:
                async for each in updates:
                    if isinstance(each, TextDelta):
                        await self._send(self._updates.piece(each))
                        continue
                    recorded, fact = each
                    async with self._sending:  # the version of a message is known after its send
                        # The past that a new fork shares was shown in the other session.
                        await self._show(fact, shown=recorded.stream == stream)
                    self._ask()
        return self._reason()

    async def _stays(self) -> bool:
        """Ask the open questions; whether the session waits for their answers."""
        self._ask()
        return self._state.waiting is not None and not self._is_paused()

    def _reason(self) -> StopReason:
        """Return why the session rests.

        Raises:
            RequestError: it failed, or an error paused it.
        """
        wait = self._state.waiting
        if self._state.status is Status.FAILED:
            raise RequestError(-32603, self._end)
        if self._state.status is Status.STOPPED:
            return "cancelled"
        if wait is None or not wait.is_pause:
            return "end_turn"
        if wait.cause.code in _BY_A_PERSON:
            return "cancelled"
        if (reason := _LIMITS.get(wait.raisable)) is not None:
            return reason
        raise RequestError(-32603, wait_text(wait.kind, wait.cause, paused=True))

    async def _show(self, fact: SessionEvent, *, shown: bool) -> None:
        updates = self._updates.fact(fact, self._state)
        match fact:
            case MessageRefused(message=DecisionGiven(approval=approval)):
                self._asked.pop(approval, None)  # it is asked again
            case SessionFailed():
                self._end = end_text(fact)
            case ApprovalRequested(approval=approval):
                opened = await self._opened(self._session.stream_name, approval)
                updates.append(self._updates.preview(opened, self._state))
            case _ if isinstance(fact, _MESSAGES):
                if getattr(fact, "inbox_version", 1) in self._said:
                    updates = updates[1:]
        if shown:
            await self._send(updates)

    async def _send(self, updates: Sequence[Any]) -> None:
        for each in updates:
            await self._editor.session_update(self._name, each)

    def _ask(self) -> None:
        """Ask the open questions of the session and its children; withdraw the others."""
        views = [self._watcher.view, *self._watcher.children]
        asking = {each.id: view for view in views if not view.automatic for each in view.questions}
        for name in self._asked.keys() - asking.keys():
            self._asked.pop(name).cancel()
        for name in asking.keys() - self._asked.keys():
            self._asked[name] = asyncio.create_task(self._question(asking[name], name))
            self._asked[name].add_done_callback(self._tell_trouble)

    async def _question(self, view: SessionView, approval: str) -> None:
        """Request the permission for one call, and send the decision."""
        cancelled = self._cancelled
        opened = await self._opened(view.state.stream, approval)
        asked = ApprovalRequested(approval=approval, **shared_fields(opened, ApprovalRequested))
        here = await personal_question(self._client.log, view.state, asked)
        if here is None:
            return  # it was decided elsewhere
        own = view.state.stream == self._session.stream_name
        name, title = (opened.effect, "") if own else (approval, f"{view.id}: {opened.tool}")
        call = ToolCall(id=name, name=opened.tool, arguments=opened.arguments)
        start = call_start(name, call, view.state, title)
        start.content = preview_content(opened.preview, view.state) or None
        if opened.requests:
            start.title = request_text(opened.requests[0])
        if not own:
            await self._send([start])
        answer = await self._editor.request_permission(
            self._name,
            tool_call=ToolCallUpdate(**start.model_dump(exclude={"session_update"})),
            options=options_of(opened, here),
        )
        if not isinstance(answer.outcome, AllowedOutcome):
            if not cancelled.is_set():  # nobody would answer it any more
                await self.cancel()
            return
        _, _, verdict, more = answer_for(answer.outcome.option_id)
        with suppress(NotPendingError):  # it was decided elsewhere
            given = decision_of(verdict, asked, channel="acp", **more)
            await wish(self._client, view.state.stream, given)
        if not own:
            over: ToolCallStatus = "completed" if verdict == "grant" else "failed"
            await self._send([helpers.update_tool_call(name, status=over)])

    async def _opened(self, stream: str, approval: str) -> ApprovalOpened:
        """Return the event that opened an approval of the session *stream*."""
        name = f"{tenant_of(stream)}/{approval}"
        opened = (await approval_of(self._client.log.journal(), name)).opened
        assert opened is not None, "the gate opens an approval before the session asks"
        return opened


def answer_for(option: str) -> _Answer:
    """Return what the chosen option means; a choice of a call that asks is its answer."""
    kind, _, choice = option.partition(":")
    if kind == "choice":
        return _Answer(choice, "allow_once", "grant", {"result": choice})
    return _ANSWERS[option]


def options_of(opened: ApprovalOpened, here: PersonalQuestion) -> list[PermissionOption]:
    """Return the possible answers of the person at the editor.

    An editor has no field for a text: what has no choices is answered by `cueline approve`.
    """
    if opened.requests:
        values = [each for request in opened.requests for each in request.values.values()]
        choices = choices_of(values[0]) if len(values) == 1 else [] if values else ["yes"]
        options = [
            PermissionOption(option_id=f"choice:{each}", name=each, kind="allow_once")
            for each in choices
        ]
        return [*options, PermissionOption(option_id="deny", name="Deny", kind="reject_once")]
    question = opened.question
    always = {"always": here.covers} if here.covers and not here.fixed else {}
    texts: dict[str, str] = {"allow": "", **always, "deny": ""}
    if question == "did_it_happen":
        texts = {str(each): then for each, then in RESOLUTIONS.items()}
    elif here.barred:
        texts = {"deny": f" (you may not allow it: {here.barred})"}
    return [
        PermissionOption(option_id=each, name=_ANSWERS[each].text + text, kind=_ANSWERS[each].kind)
        for each, text in texts.items()
    ]
