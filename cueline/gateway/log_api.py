"""Serves the log itself to a client on another machine, which reads sessions as if it had it.

These requests are cueline's own: client and server have the same version. Only the events of
sessions, of their inboxes and of their approvals are sent; all wishes go to the API.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from importlib.metadata import version
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Body, Query, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response, StreamingResponse

from cueline.client.client import Client
from cueline.client.live_text import live_text
from cueline.client.start import StartRequest, check_recorded
from cueline.client.status import running_up
from cueline.errors import CuelineError, MissingBlobError, RejectedError
from cueline.events.inbox import MessageSent, SecretsWaived, StartAsked
from cueline.events.store import Head, to_us
from cueline.events.stream import category_of
from cueline.gateway.answer import document_of
from cueline.gateway.guard import caller_of
from cueline.gateway.problem import problem_of
from cueline.gateway.remote_server import CATEGORIES, HEARTBEAT_SECONDS, PREFIX

_CHUNK: Final = 64 * 1024
log_api = APIRouter(prefix=f"/v1{PREFIX}", include_in_schema=False)


def _reading(request: Request) -> Client:
    client = caller_of(request).client
    client.log.check_may("read")
    return client


def _is_sent(client: Client, stream: str) -> bool:
    """Whether the caller gets the events of *stream*: the only place that decides it."""
    return category_of(stream) in CATEGORIES and client.log.sees(stream)


@log_api.get("/about")
async def about(request: Request) -> Any:
    """Return the log's id, and who calls."""
    client = _reading(request)
    return {"log": client.log.id, "version": version("cueline"), "user": client.log.user}


@log_api.get("/present")
async def present(request: Request) -> Response:
    """Return the living processes without their secrets, the clock, and the running `up`."""
    log = _reading(request).log
    hidden: dict[str, Any] = {"token": "", "address": ""}
    if log.tenant is not None:  # the processes are of the whole log
        hidden |= {"machine": "", "boot_id": "", "pid_namespace": ""}
    every = [replace(each, **hidden) for each in await log.board.all()]
    return _json({"now": to_us(log.clock.now()), "present": every})


@log_api.get("/up")
async def up(request: Request) -> Response:
    """Return the running `cueline up` of the log; null without one."""
    return _json(running_up(_reading(request).log))


@log_api.get("/position")
async def position(request: Request) -> int:
    """Return the position of the log's last event."""
    return await _reading(request).log.store.last_position()


@log_api.get("/heads")
async def heads(request: Request, stream: Annotated[list[str], Query()]) -> Response:
    """Return the heads of streams."""
    client = _reading(request)
    found = await client.log.store.heads([each for each in stream if _is_sent(client, each)])
    return _json({each: found.get(each, Head()) for each in stream})


@log_api.get("/blobs/{blob}")
async def blob(request: Request, blob: str, stream: str = "", version: int = 0) -> Response:
    """Return the content of a blob; its name is the hash of its content.

    Whoever reaches one tenant has to name an event of that tenant, in which the blob is named.
    """
    client = _reading(request)
    if client.log.tenant is not None and not await _names(client, stream, version, blob):
        raise MissingBlobError(stream or "this tenant", blob)
    found = await client.log.store.get_blob(blob)
    return Response(found, media_type="application/octet-stream")


async def _names(client: Client, stream: str, version: int, blob: str) -> bool:
    """Whether the caller reaches an event, and it names a blob."""
    if not stream or not _is_sent(client, stream):
        return False
    read = client.log.store.read(stream, version - 1, version)
    return any([blob.encode() in (each.payload or b"") async for each in read])


@log_api.get("/find/{session}")
async def find(request: Request, session: str) -> str:
    """Return the stream of a session."""
    return await _reading(request).find(session)


@log_api.get("/read")
async def read(  # noqa: PLR0917 - FastAPI calls it by name
    request: Request,
    stream: str,
    after: int = 0,
    until: int | None = None,
    limit: int | None = None,
    back: bool = False,  # noqa: FBT001, FBT002 - a parameter of the URL
) -> Response:
    """Send the events of a stream; with *back*, the newest first."""
    client = _reading(request)
    store = client.log.store
    if not _is_sent(client, stream):
        raise RejectedError(stream, "a server does not send the events of this stream")
    found = (
        store.read_back(stream, until, limit) if back else store.read(stream, after, until, limit)
    )
    return _lines(_batches(found))


@log_api.get("/follow")
async def follow(request: Request, after: int) -> Response:
    """Send the events of sessions after a position, and new ones, without end."""
    client = _reading(request)
    seen = (
        each
        async for each in client.log.store.follow(after, ("session",))
        if _is_sent(client, each.stream)
    )
    return _lines(_with_heartbeats(seen))


@log_api.get("/text/{session}")
async def text(request: Request, session: str) -> Response:
    """Send the pieces of the replies of a session as they come, without end."""
    client = _reading(request)
    stream = await client.find(session)

    async def pieces() -> AsyncGenerator[Any]:
        with live_text(client.log, stream, client.place) as arriving:
            while True:
                for each in (*await arriving.take(), *arriving.take_progress()):
                    yield each

    return _lines(_with_heartbeats(pieces()))


class Start(BaseModel, extra="forbid"):
    """The start of a session as the caller's cueline has checked it."""

    id: str
    key: str | None
    parent: str | None
    asked: StartAsked
    waived: SecretsWaived | None
    messages: list[MessageSent]


@log_api.post("/start")
async def start(request: Request, said: Annotated[Start, Body()]) -> Response:
    """Start a session by the recorded form of its agent, which can run commands here."""
    client = caller_of(request).client
    made = StartRequest(
        said.id, said.asked, said.waived, parent=said.parent, messages=said.messages, key=said.key
    )
    return JSONResponse(document_of(await check_recorded(client.log, made).submit(client)))


def _json(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


def _lines(chunks: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(_until_error(chunks), media_type="application/x-ndjson")


async def _until_error(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Yield *chunks*; an error is the last line: an object, as events are arrays."""
    try:
        async for each in chunks:
            yield each
    except CuelineError as error:
        yield b'{"problem":' + bytes(problem_of(error).body) + b"}\n"


async def _batches(items: AsyncIterator[Any]) -> AsyncGenerator[bytes]:
    """Yield the lines of *items* in chunks: a chunk for each line would take longer."""
    lines = bytearray()
    async for each in items:
        lines += msgspec.json.encode(each) + b"\n"
        if len(lines) > _CHUNK:
            yield bytes(lines)
            lines.clear()
    yield bytes(lines)


async def _with_heartbeats(items: AsyncIterator[Any]) -> AsyncGenerator[bytes]:
    """Yield the lines of *items*, and an empty line at once and while none come."""
    coming = asyncio.ensure_future(_next(items))
    try:
        yield b"\n"
        while True:
            done, _ = await asyncio.wait((coming,), timeout=HEARTBEAT_SECONDS)
            if not done:
                yield b"\n"
                continue
            if (item := coming.result()) is None:
                return
            yield msgspec.json.encode(item) + b"\n"
            coming = asyncio.ensure_future(_next(items))
    finally:
        coming.cancel()


async def _next(items: AsyncIterator[Any]) -> Any:
    return await anext(items, None)
