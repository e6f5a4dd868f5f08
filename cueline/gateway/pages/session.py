"""The page of one session: its conversation and timeline, what it was at any version, and more.

A long session is read from its end, in parts.
"""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Path, Request
from markupsafe import Markup
from sse_starlette import ServerSentEvent
from starlette.responses import Response

from cueline.client.client import Client
from cueline.client.document import document
from cueline.client.export import event_document, export_of
from cueline.client.history import History, follow_facts, read_part
from cueline.client.live_text import TextDelta, live_text, with_live_text
from cueline.console.event_renderer import EventRenderer
from cueline.console.text import date_time
from cueline.errors import RejectedError
from cueline.events.event_text import end_text, wait_text
from cueline.events.session import SessionCompleted, SessionFailed, SessionIdle, SessionStopped
from cueline.events.stream import shown
from cueline.gateway.events import response_of
from cueline.gateway.guard import caller_of
from cueline.gateway.pages.compare import comparison
from cueline.gateway.pages.conversation import Item, Told, html, items
from cueline.gateway.pages.page import link_of, render
from cueline.gateway.pages.timeline import bars, timeline

session: Final = APIRouter(include_in_schema=False)
"""The routes of this page."""
_ONLY: Final = ("failed", "asked", "expensive")
_MOST: Final = 4000
"""The most events of a session whose filters and whole timeline are shown."""


@session.get("/sessions/{name}")
async def page(request: Request, name: str) -> Response:
    """Show a session: how it stands, and its newest events."""
    client = caller_of(request).client
    only, whole = request.query_params.get("only", ""), "whole" in request.query_params
    history = await client.excerpt(name)
    if (only in _ONLY or whole) and history.version <= _MOST:
        history = await client.history(name)
    else:
        only, whole = "", False
    # After the events: what is newer is sent to the open page.
    details = await client.show(name)
    events = list(history.events) if history.whole else list(history.events)[1:]
    shown_items = _chosen(list(items(events, EventRenderer(whole_past=history.whole))), only)
    return render(
        request,
        "session.html",
        **_head(history, details),
        items=_html(shown_items, _here(request, history.stream)),
        timeline=_timeline(request, history.stream, events),
        earlier=None if history.whole else events[0][0].version,
        after=history.version,
        only=only,
        whole=whole,
        short=details.version <= _MOST,
        by_cost="cost" in request.query_params,
    )


@session.get("/sessions/{name}/head")
async def head(request: Request, name: str) -> Response:
    """Show how a session stands, for a page that is open."""
    client = caller_of(request).client
    history, details = await client.excerpt(name), await client.show(name)
    return render(request, "session_head.html", **_head(history, details))


@session.get("/sessions/{name}/earlier")
async def earlier(request: Request, name: str, before: int) -> Response:
    """Show the events before a version."""
    client = caller_of(request).client
    stream = await client.find(name)
    part = await read_part(client.log, stream, before=before)
    first = part[0][0].version if part else 1
    return render(
        request,
        "earlier.html",
        link=link_of(shown(stream)),
        items=_html(items(part, EventRenderer(whole_past=False)), _here(request, stream)),
        earlier=first if first > 1 else None,
    )


@session.get("/sessions/{name}/live")
async def live(
    request: Request,
    name: str,
    after: int,
    last_event_id: Annotated[int | None, Header(ge=0)] = None,
) -> Response:
    """Send the new events of a session as HTML, and its replies as they come."""
    client = caller_of(request).client
    stream = await client.find(name)
    seen = after if last_event_id is None else last_event_id
    return response_of(_live(client, stream, seen, _here(request, stream)))


@session.get("/sessions/{name}/versions/{version}")
async def event(request: Request, name: str, version: int) -> Response:
    """Show one event whole, with the other events of its call."""
    client = caller_of(request).client
    stream = await client.find(name)
    part = await read_part(client.log, stream, before=version + 1, most=1000)
    recorded, fact = _last(part, version, stream)
    effect = getattr(fact, "effect", None)
    causes = [
        (each.version, each.type)
        for each, said in part[:-1]
        if effect is not None and getattr(said, "effect", None) == effect
    ]
    return render(
        request,
        "event.html",
        id=shown(stream),
        link=link_of(shown(stream)),
        version=version,
        type=recorded.type,
        causes=causes,
        raw=json.dumps(event_document(recorded, fact), indent=2, ensure_ascii=False),
    )


@session.get("/sessions/{name}/at/{version}")
async def at(request: Request, name: str, version: Annotated[int, Path(ge=1)]) -> Response:
    """Show a session as it was at a version: its state, and what the model was sent."""
    history = await caller_of(request).client.history(name, until=version)
    if history.damage is not None:
        raise history.damage
    was = export_of(history)
    told = {key: each for key, each in document(was).items() if key != "messages"}
    return render(
        request,
        "at.html",
        id=history.id,
        link=link_of(history.id),
        version=version,
        was=was,
        state=json.dumps(told, indent=2, ensure_ascii=False),
        messages=[json.dumps(each, indent=2, ensure_ascii=False) for each in was.messages],
    )


@session.get("/sessions/{name}/compare")
async def compare(request: Request, name: str, other: str = "") -> Response:
    """Show what differs between two sessions: what was said and called, files, and cost."""
    found = await caller_of(request).client.diff(name, other or name)
    at_event = partial(_here, request)
    return render(request, "compare.html", at_event=at_event, **comparison(found))


def _head(history: History, details: Any) -> dict[str, Any]:
    """Return what the head of the page shows."""
    why, bad = why_of(history)
    return {
        "session": details,
        "link": link_of(details.id),
        "why": why,
        "bad": bad,
        "finished": history.view.finished,
        "has_plan": history.state.progress is not None,
        "cost": details.cost + details.descendants_cost,
    }


def why_of(history: History) -> tuple[str, bool]:
    """Return how the session stands or why it ended, in a sentence, and whether that is bad."""
    if history.damage is not None:
        return str(history.damage), True
    if (wait := history.view.waiting) is not None:
        paused = history.status == "paused"
        until = f" until {date_time(wait.deadline_at)}" if wait.deadline_at else ""
        return wait_text(wait.kind, wait.cause, paused=paused, until=until), False
    last = next((fact for _, fact in reversed(history.events) if isinstance(fact, _ENDS)), None)
    match last:
        case SessionFailed() | SessionStopped() if history.view.finished:
            return end_text(last), True
        case SessionCompleted() if history.view.finished:
            return "It has done what it was asked for.", False
        case SessionIdle() if history.status == "idle":
            return "It is idle: it waits for a message.", False
        case _:
            return "", False


_ENDS: Final = (SessionFailed, SessionStopped, SessionCompleted, SessionIdle)


async def _live(
    client: Client, stream: str, after: int, link: str
) -> AsyncIterator[ServerSentEvent]:
    """Yield the new events as HTML, each followed by `changed`, and the replies as they come."""
    renderer = EventRenderer(whole_past=False)
    with live_text(client.log, stream, client.place) as pieces:
        facts = follow_facts(client.log, stream, after)
        async with aclosing(with_live_text(facts, pieces)) as happening:
            async for each in happening:
                if isinstance(each, TextDelta):
                    yield _piece(each)
                    continue
                body = Markup().join(html(item, link) for item in items([each], renderer))
                yield ServerSentEvent(data=body + _TYPED, id=str(each[0].version))
                yield ServerSentEvent(event="changed", data="")


_TYPED: Final = Markup('<hx-partial hx-target="#typing" hx-swap="innerHTML"> </hx-partial>')


def _piece(piece: TextDelta) -> ServerSentEvent:
    said = Markup('<hx-partial hx-target="#typing" hx-swap="beforeend">{}</hx-partial>')
    return ServerSentEvent(data=said.format(piece.text))


def _chosen(found: Sequence[Item], only: str) -> Sequence[Item]:
    """Return the items that the filter *only* keeps."""
    if only == "failed":
        return [each for each in found if each.failed]
    if only == "asked":
        return [each for each in found if each.asked]
    if only == "expensive":
        paid = [each for each in found if each.cost]
        mean = sum((each.cost for each in paid), Decimal(0)) / max(len(paid), 1)
        return [each for each in paid if each.cost >= mean]
    return found


def _html(found: Any, link: str) -> Markup:
    return Markup().join(html(each, link) for each in found)


def _timeline(request: Request, stream: str, events: Sequence[Told]) -> Markup:
    by_cost = "cost" in request.query_params
    return timeline(bars(events), datetime.now(UTC), _here(request, stream), by_cost=by_cost)


def _last(part: Sequence[Told], version: int, stream: str) -> Told:
    if not part or part[-1][0].version != version:
        raise RejectedError(shown(stream), f"there is no version {version}")
    return part[-1]


def _here(request: Request, stream: str) -> str:
    """Return the beginning of the links to the events of a session."""
    return f"{_root(request)}{link_of(shown(stream))}/versions/"


def _root(request: Request) -> str:
    return str(request.scope.get("root_path", ""))
