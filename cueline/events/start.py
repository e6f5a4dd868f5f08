"""How a session was started: by a parent, as a run, or on a schedule.

A session with a schedule is recorded, and rests until its time. One that repeats is the
first of a series: the append with which it starts its work asks for the next one.
"""

import re
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta
from functools import partial
from operator import eq, is_, not_
from typing import Final, Literal, TypeGuard, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AwareDatetime, Field, JsonValue

from cueline.events.agent import AGENT_SCHEME, ToolSpec
from cueline.events.fact import Part, Seconds

DELEGATE: Final = "delegate"
"""The tool with which a model chooses the agent of a child."""
CHILD_RESULT: Final = "child_result"
"""The tool with which a model asks how a child of the mode `async_poll` ended."""
ANY_AGENT: Final = f"{AGENT_SCHEME}*"
"""The target of `delegate`: the call names the agent."""

ASK_CHILD: Final = f"{AGENT_SCHEME}?"
"""The target of `child_result`: the call asks how a child ended."""

BLUEPRINT_SCHEME: Final = "blueprint:"
"""Of a tool as an agent names it: a call starts a run of that blueprint."""

Mode = Literal["sync", "async_poll", "async_callback"]
"""When the call returns: with the child's end, or at once.

Then the model asks for the end, or gets it as a message.
"""
MODES: Final[tuple[Mode, ...]] = get_args(Mode)


class ChildCall(Part):
    """The call of a parent that a session was started for."""

    effect: str
    attempt: int = Field(default=1, exclude_if=partial(eq, 1))
    mode: Mode = "sync"
    parameters: dict[str, JsonValue] = Field(default={}, exclude_if=not_)
    """The arguments of the call."""


def starts_child(tool: ToolSpec | None) -> TypeGuard[ToolSpec]:
    """Whether a call of *tool* starts a child session; in a rerun its result is recorded."""
    return _is_of_children(tool) and tool.target != ASK_CHILD


def asks_child(tool: ToolSpec | None) -> TypeGuard[ToolSpec]:
    """Whether a call of *tool* asks how a child ended."""
    return _is_of_children(tool) and tool.target == ASK_CHILD


def _is_of_children(tool: ToolSpec | None) -> TypeGuard[ToolSpec]:
    return tool is not None and tool.target.startswith(AGENT_SCHEME) and tool.recording is None


def child_stream(parent: str, effect: str) -> str:
    """Return the stream of the child of that call: it has one name, so it starts once."""
    return f"{parent}.{effect}"


def parent_of(stream: str) -> str | None:
    """Return the session whose call may have started *stream*, by its name."""
    above, *numbers = stream.rsplit(".", 2)
    return above if len(numbers) == 2 and all(map(str.isdecimal, numbers)) else None  # noqa: PLR2004 - turn and index


def mode_of(parameters: dict[str, JsonValue]) -> Mode:
    """Return the mode that a call asks for."""
    asked = parameters.get("mode")
    return next((mode for mode in MODES if mode == asked), "sync")


def agent_named(tool: ToolSpec, parameters: dict[str, JsonValue]) -> str:
    """Return the name of the agent that a call of *tool* starts."""
    if tool.target == ANY_AGENT:
        return str(parameters.get("agent", ""))
    return tool.target.removeprefix(AGENT_SCHEME)


QUEUE_SECONDS: Final = 300.0
"""The default of the time that a run waits for a runner."""
NO_RUNNER: Final = "No matching runner available within timeout"
DISCONNECTED: Final = "Runner disconnected during execution"


class Run(Part):
    """What makes a session a run: a runner has to claim it before it begins."""

    blueprint: str
    """The name of its agent, as a runner offers it."""
    retry_of: str = Field(default="", exclude_if=not_)
    """The run that this is another try of."""
    queue_seconds: Seconds = Field(
        default=QUEUE_SECONDS, ge=0, exclude_if=partial(eq, QUEUE_SECONDS)
    )
    """How long it waits for a runner."""


_IN_SERIES = re.compile(r"(.+)\.\d{8}t\d{6}z")


class Schedule(Part):
    """The time at which a session starts its work."""

    at: AwareDatetime
    every_seconds: Seconds | None = Field(default=None, ge=1, exclude_if=partial(is_, None))
    """Time between the starts of its series; None: it starts once."""
    zone: str = Field(default="", exclude_if=not_)
    """Of a series in days by the wall clock: the zone's name; empty: the interval is kept."""
    clock: time | None = Field(default=None, exclude_if=partial(is_, None))
    """The wall time of such a series."""
    skipped: str = Field(default="", exclude_if=not_)
    """The local time that was asked for, if the clocks skip it; `at` is as much later."""
    first: str = Field(default="", exclude_if=not_)
    """The first session of its series; empty: itself."""


def time_after(schedule: Schedule, now: datetime) -> datetime | None:
    """Return the next time of the series that is not over: times that were missed are left out."""
    if schedule.every_seconds is None:
        return None
    every = timedelta(seconds=schedule.every_seconds)
    if schedule.clock is not None:
        with suppress(ZoneInfoNotFoundError):  # a machine that has no zones keeps the interval
            zone = ZoneInfo(schedule.zone)
            return _wall_time_after(schedule.at, now, zone=zone, clock=schedule.clock, every=every)
    return schedule.at + max(1, (now - schedule.at) // every + 1) * every


def _wall_time_after(
    at: datetime, now: datetime, *, zone: ZoneInfo, clock: time, every: timedelta
) -> datetime:
    """Return the first time after *at* and *now* at which it is *clock*, each so many days."""
    wall = datetime.combine(at.astimezone(zone), clock)
    passed = max(now.astimezone(zone).replace(tzinfo=None) - wall, timedelta()) // every
    times = (instant(wall + (passed + more) * every, zone) for more in range(3))
    return next(each for each in times if each > max(at, now))


def instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return when it is *wall* in *zone*: the first of two; as much later if the clocks skip it."""
    return wall.replace(tzinfo=zone).astimezone(UTC)


def stream_at(first: str, at: datetime) -> str:
    """Return the stream of the session of a series that starts at that time."""
    return f"{first}.{at.astimezone(UTC):%Y%m%dt%H%M%Sz}"


def first_of(stream: str) -> str | None:
    """Return the session whose series *stream* may belong to, by its name."""
    found = _IN_SERIES.fullmatch(stream)
    return found[1] if found else None
