"""The pages about all sessions: lists, approvals, costs, the fleet, breakers, runs, the audit."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Final, get_args

from fastapi import APIRouter, Request
from sse_starlette import ServerSentEvent
from starlette.responses import Response

from cueline.client.client import Client
from cueline.client.rows import RUN_STATUSES, STATUSES, GroupBy
from cueline.client.tokens import tokens
from cueline.errors import ConfigError
from cueline.gateway.events import response_of
from cueline.gateway.guard import caller_of
from cueline.gateway.pages.page import render

_SECONDS: Final = 1.0
"""The least time between two reloads of a page."""
_BUSY: Final = frozenset({"running", "waiting", "created"})


lists: Final = APIRouter(include_in_schema=False)
"""The routes of these pages."""


@lists.get("/")
async def sessions(request: Request) -> Response:
    """Show the sessions, the last changed first, and what waits for a person."""
    asked = _filters(request, {"status", "agent", "text"})
    client, given = caller_of(request).client, request.query_params
    labels = dict([given["label"].split("=", 1)]) if "=" in given.get("label", "") else {}
    found = await client.sessions(
        labels=labels,
        min_cost=_number("min_cost", given.get("min_cost")),
        limit=100,
        **asked,
    )
    waiting = await client.pending()
    return _page(request, "sessions.html", found=found, waiting=waiting, statuses=STATUSES)


@lists.get("/approvals")
async def approvals(request: Request) -> Response:
    """Show each question that waits for a person."""
    found = await caller_of(request).client.pending()
    return _page(request, "approvals.html", found=found, one=None)


@lists.get("/approvals/{approval}")
async def approval(request: Request, approval: str) -> Response:
    """Show one question."""
    name = approval.replace(":", "/", 1)
    found = await caller_of(request).client.pending()
    one = next((each for each in found if each.id == name), None)
    return _page(request, "approvals.html", found=found, one=one, asked=name, here="/approvals")


@lists.get("/costs")
async def costs(request: Request) -> Response:
    """Show what was spent, by session, agent, model, day or tree."""
    asked = _filters(request, {"since", "until"})
    by = request.query_params.get("by", "agent")
    found = await caller_of(request).client.costs(by, limit=100, **asked)  # type: ignore[arg-type]  # it is checked
    plot = [(each.name, float(each.cost)) for each in found.rows[:30]]
    if by == "day":
        plot.sort()
    return _page(request, "costs.html", found=found, plot=plot, groups=get_args(GroupBy))


@lists.get("/fleet")
async def fleet(request: Request) -> Response:
    """Show hosts, runners, and the work that waits for them."""
    client = caller_of(request).client
    return _page(request, "fleet.html", fleet=await client.fleet(), found=await client.status())


@lists.get("/breakers")
async def breakers(request: Request) -> Response:
    """Show the circuit breakers, and the sessions whose limits are reached."""
    client = caller_of(request).client
    paused = await client.sessions(status="paused", limit=100)
    reached = [each for each in paused if "limit" in str((each.wait_cause or {}).get("code"))]
    return _page(request, "breakers.html", found=await client.breakers(), reached=reached)


@lists.get("/runs")
async def runs(request: Request) -> Response:
    """Show the runs of blueprints, and the blueprints."""
    client = caller_of(request).client
    found = await client.runs(limit=100, **_filters(request, {"status", "blueprint"}))
    offered = await client.blueprints()
    return _page(request, "runs.html", found=found, offered=offered, statuses=RUN_STATUSES)


@lists.get("/start")
async def start(request: Request) -> Response:
    """Ask which blueprint to start, and with what."""
    offered = await caller_of(request).client.blueprints()
    chosen = request.query_params.get("blueprint", "")
    one = next((each for each in offered if each.name == chosen), None)
    return _page(request, "start.html", offered=offered, one=one)


@lists.get("/audit")
async def audit(request: Request) -> Response:
    """Show the newest events that match."""
    asked = _filters(request, {"session", "type", "tool", "actor", "text", "correlation"})
    asked |= {
        name: _time(name, each) for name, each in _filters(request, {"since", "until"}).items()
    }
    found = await caller_of(request).client.audit(limit=200, **asked)
    return _page(request, "audit.html", found=found)


@lists.get("/tokens")
async def all_tokens(request: Request) -> Response:
    """Show the tokens of the log."""
    return _page(request, "tokens.html", found=await tokens(caller_of(request).client))


@lists.get("/live")
async def live(request: Request) -> Response:
    """Send `changed` when the log has grown, at most once a second."""
    return response_of(_changes(caller_of(request).client))


async def _changes(client: Client) -> AsyncIterator[ServerSentEvent]:
    # The first one is for what has happened since the page was made.
    async for _ in client.changes():
        yield ServerSentEvent(event="changed", data="")
        await client.log.clock.sleep(_SECONDS)


def _page(request: Request, template: str, **values: Any) -> Response:
    """Return a page; for htmx, which asks when something has changed, its live part."""
    values.setdefault("here", request.scope["route"].path)
    part = "hx-request" in request.headers and "hx-boosted" not in request.headers
    asked = _Filters({name: each for name, each in request.query_params.items() if each})
    return render(request, template, part=part, asked_for=asked, **values)


class _Filters(dict[str, str]):
    """The filters that were filled in; any other is empty."""

    def __missing__(self, name: str) -> str:
        return ""


def _filters(request: Request, names: set[str]) -> dict[str, Any]:
    """Return the filters that were filled in."""
    return {name: each for name, each in request.query_params.items() if name in names and each}


def _time(name: str, text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(name, f"{text!r} is no time like 2026-01-31T12:00, in UTC") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _number(name: str, text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError as error:
        raise ConfigError(name, f"{text!r} is no number") from error
