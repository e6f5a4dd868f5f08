"""Calls the tools of MCP servers, in the event loop of a runner."""

import asyncio
import os
import re
import time
from base64 import b64decode
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    Result,
    TextContent,
    TextResourceContents,
)

from cueline.actors.tool_port import (
    GivenInput,
    OnProgress,
    ReconcileFinding,
    ToolOrder,
    ToolOutput,
    ToolQuestion,
    ToolTask,
    drop_progress_of,
)
from cueline.errors import ConfigError, ToolChangedError, ToolFailedError
from cueline.events.codes import NOT_STARTED
from cueline.events.input_request import InputRequest, digest_of
from cueline.events.message import FORMATS, IMAGE_LIMIT, image_type
from cueline.tools.executor import timeout_failure
from cueline.tools.mcp.connection import McpConnection
from cueline.tools.mcp.definition import difference, tool_in
from cueline.tools.mcp.oauth import Logins
from cueline.tools.mcp.task import CreatedTask, Tasks, polled
from cueline.tools.progress import ProgressReporter
from cueline.tools.result import content_of, output_of
from cueline.tools.tool import Output

_IS_PAGE: Final = re.compile(r"https?://", re.IGNORECASE).match
"""Whether a person may be sent to an address, as a link: a server may name any."""
IDLE_SECONDS: Final = 900.0
"""The time without a call after which a server's processes are ended."""
_NOT_SHOWN: Final = f"[an image, which is not shown: a result has one, of {FORMATS}, up to 5 MB]"
RESTARTED: Final = "[{server} was started again since your last call; what it kept is gone]"


class McpExecutor:
    """Runs calls of MCP tools; see `ToolExecutor`.

    Each session has processes of its own, unless its agent's file says `shared`.
    """

    def __init__(
        self,
        environ: Mapping[str, str] = os.environ,
        *,
        on_progress: OnProgress = drop_progress_of,
        logins: Logins | None = None,
        hidden: Sequence[Path] = (),
    ) -> None:
        """Create the executor; isolated servers do not see the *hidden* files, those of the log."""
        self._environ, self._hidden = environ, hidden
        self._logins = logins
        self._on_progress = on_progress
        self._connections: dict[tuple[str, ...], McpConnection] = {}
        self._idle: dict[McpConnection, asyncio.TimerHandle] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def call(self, order: ToolOrder) -> ToolOutput | ToolQuestion | ToolTask:
        connection = self._connection(order)
        began = time.perf_counter()
        try:
            async with asyncio.timeout(order.tool.timeout_seconds):
                output = await self._call(connection, order)
        except TimeoutError:
            raise timeout_failure(order) from None
        except ToolFailedError as error:
            message = connection.hide(error.message.encode(errors="replace")).decode()
            raise ToolFailedError(error.kind, message) from error
        finally:
            self._close_when_idle(connection)
        if isinstance(output, ToolQuestion | ToolTask):
            return output
        seconds, kind = time.perf_counter() - began, output.media_type
        content, text = connection.hide(output.content), connection.hide(output.text)
        return ToolOutput(content, seconds, output.truncated_from, kind, text=text)

    async def reconcile(self, order: ToolOrder) -> ReconcileFinding:
        raise ToolFailedError("tool_error", f"{order.tool.name} declares no reconcile")

    async def close(self) -> None:
        for timer in self._idle.values():
            timer.cancel()
        await asyncio.gather(*(each.close() for each in self._connections.values()), *self._closing)

    async def _call(
        self, connection: McpConnection, order: ToolOrder
    ) -> Output | ToolQuestion | ToolTask:
        if order.task is not None:
            answers = responses_of(order.given) if order.given is not None else {}
            return _result(await polled(connection, order.task, answers))
        try:
            now = (await connection.specs()).get(order.tool.target)
        except ConfigError as error:
            raise ToolFailedError(NOT_STARTED, str(error)) from error
        if now is None:
            why = f"MCP server {connection.name} has no tool {tool_in(order.tool)!r} any more"
            raise ToolFailedError(NOT_STARTED, why)
        if now.digest != order.tool.digest:
            raise ToolChangedError(order.tool.name, difference(order.tool, now))
        restarted = order.called_before and not connection.was_called
        result = await self._answered(connection, order)
        note = RESTARTED.format(server=connection.name) if restarted else ""
        return _result(result, note)

    async def _answered(self, connection: McpConnection, order: ToolOrder) -> Result:
        """Call the tool, with the answer of a person to what it asked for.

        A server that does not take its own state any more asks again. The answer is given again
        if it asks for the same, which is safe, because nothing has run.
        """
        given = order.given
        call = partial(
            connection.call,
            tool_in(order.tool),
            order.arguments,
            order.traceparent,
            on_progress=self._progress_of(order),
        )
        answers = None if given is None else responses_of(given)
        if given is not None and given.state:
            result = await call(answers=answers, state=given.state)
            if result is not None:
                return result
        again = await call()
        if (
            given is not None
            and isinstance(again, InputRequiredResult)
            and digest_of(question_of(again).requests) == given.digest
        ):
            again = await call(answers=answers, state=again.request_state)
        if again is None:
            raise ToolFailedError("tool_error", "the server does not take its own state")
        return again

    def _progress_of(self, order: ToolOrder) -> ProgressFnT | None:
        """Return the function for what the server says of its progress; None: nobody listens."""
        if self._on_progress is drop_progress_of:
            return None
        report = ProgressReporter(partial(self._on_progress, order))

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            report(progress / total if total else None, message or "")

        return on_progress

    def _connection(self, order: ToolOrder) -> McpConnection:
        server = order.server
        assert server is not None, "an order of an MCP tool has its server"
        name = order.tool.server
        session = "" if server.shared else order.session
        place = order.workspace.path if order.workspace and not server.shared else ""
        key = (session, name, server.model_dump_json(), order.isolation.model_dump_json(), place)
        found = self._connections.get(key)
        if found is None:
            folder = Path(place) if place else None
            found = self._connections[key] = McpConnection(
                name,
                server,
                self._environ,
                folder,
                extensions=[Tasks()],
                logins=self._logins,
                isolation=order.isolation,
                hidden=self._hidden,
            )
        if (timer := self._idle.pop(found, None)) is not None:
            timer.cancel()
        return found

    def _close_when_idle(self, connection: McpConnection) -> None:
        if (timer := self._idle.pop(connection, None)) is not None:
            timer.cancel()
        loop = asyncio.get_running_loop()
        self._idle[connection] = loop.call_later(IDLE_SECONDS, self._end, connection)

    def _end(self, connection: McpConnection) -> None:
        if connection.is_busy:
            self._close_when_idle(connection)
            return
        self._idle.pop(connection, None)
        for key in [key for key, each in self._connections.items() if each is connection]:
            del self._connections[key]
        task = asyncio.get_running_loop().create_task(connection.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _result(result: Result | ToolTask, note: str = "") -> Output | ToolQuestion | ToolTask:
    match result:
        case CreatedTask():
            return result.task
        case ToolTask():
            return result
        case InputRequiredResult():
            return question_of(result)
    assert isinstance(result, CallToolResult), "no other result is claimed"
    return output_of(value_of(result, note))


def question_of(result: InputRequiredResult) -> ToolQuestion:
    """Return what a call asks a person for.

    Raises:
        ToolFailedError: it asks for something else, which is not offered.
    """
    requests = []
    for key, each in (result.input_requests or {}).items():
        match each:
            case ElicitRequest(params=ElicitRequestFormParams() as form) if _is_form(form):
                requests.append(
                    InputRequest(key=key, message=form.message, parameters=form.requested_schema)
                )
            case ElicitRequest(params=ElicitRequestURLParams() as page) if _IS_PAGE(page.url):
                requests.append(InputRequest(key=key, message=page.message, url=page.url))
            case _:
                why = f"it asks for {each.method} in a way that cueline does not offer"
                raise ToolFailedError("tool_error", why)
    return ToolQuestion(tuple(requests), result.request_state or "")


def _is_form(form: ElicitRequestFormParams) -> bool:
    """Whether a person can be shown what the schema asks for; a server may send any."""
    properties = form.requested_schema.get("properties")
    return isinstance(properties, dict) and all(isinstance(p, dict) for p in properties.values())


def responses_of(given: GivenInput) -> dict[str, Any]:
    """Return a person's answers in the protocol's form; False is a refusal."""
    return {
        key: ElicitResult(
            action="decline" if value is False else "accept",
            content=value if isinstance(value, dict) else None,
        )
        for key, value in given.answers.items()
    }


def value_of(result: CallToolResult, note: str = "") -> object:
    """Return what the model gets of *result*.

    Raises:
        ToolFailedError: the tool says that it failed.
    """
    told = [*filter(None, [note]), *map(_shown, result.content)]
    texts = [each for each in told if isinstance(each, str)]
    if result.is_error:
        raise ToolFailedError("tool_error", "\n".join(texts) or "it failed, and says nothing")
    images = [each for each in told if isinstance(each, bytes)]
    image = next((each for each in images if image_type(each) and len(each) <= IMAGE_LIMIT), None)
    texts += [_NOT_SHOWN] * (len(images) - (image is not None))
    if image is not None:
        return Output(image, None, image_type(image), content_of("\n".join(texts)))
    if not texts and result.structured_content is not None:
        return result.structured_content
    return "\n".join(texts)


def _shown(block: ContentBlock) -> str | bytes:
    """Return the text for a block of a result, or the bytes of an image."""
    match block:
        case TextContent(text=text) | EmbeddedResource(resource=TextResourceContents(text=text)):
            return text
        case (
            ImageContent(data=data)
            | EmbeddedResource(
                resource=BlobResourceContents(
                    mime_type="image/png" | "image/jpeg" | "image/gif" | "image/webp", blob=data
                )
            )
        ):
            return b64decode(data)
        case AudioContent():
            return f"[audio, {block.mime_type}, which is not shown]"
        case ResourceLink():
            return f"[a link to {block.uri}: {block.description or block.name}]"
        case EmbeddedResource():
            return f"[{block.resource.uri}, which is no text and is not shown]"
