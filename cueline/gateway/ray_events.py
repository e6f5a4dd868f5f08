"""Takes the events that Ray exports: see `client.ray_events`."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request

from cueline.client.ray_events import record_deaths
from cueline.gateway.guard import caller_of

ray_events = APIRouter(include_in_schema=False)
"""The route of the events; Ray sends them in a form of its own."""


@ray_events.post("/v1/ray/events")
async def take(request: Request, events: Annotated[list[dict[str, Any]], Body()]) -> Any:
    """Record the deaths of nodes among *events*."""
    return {"recorded": await record_deaths(caller_of(request).client.log, events)}
