"""How a session was started: by a parent, as a run, or on a schedule.

A session with a schedule is recorded, and rests until its time. A repeating schedule makes a
series: the append that starts the work of one session requests the next session.
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
"""The tool with which a model asks for the end of a child of the mode `async_poll`."""
ANY_AGENT: Final = f"{AGENT_SCHEME}*"
"""The target of `delegate`: the call names the agent."""

ASK_CHILD: Final = f"{AGENT_SCHEME}?"
"""The target of `child_result`: the call asks for the end of a child."""

BLUEPRINT_SCHEME: Final = "blueprint:"
"""The scheme of a tool, as an agent names it, whose calls start runs of a blueprint."""

Mode = Literal["sync", "async_poll", "async_callback"]
"""When the call returns: with the child's end, or at once.

If at once, the model asks for the end later, or gets it as a message.
"""
MODES: Final[tuple[Mode, ...]] = get_args(Mode)


class ChildCall(Part):
    """The call of a parent that started a session."""

    effect: str
    attempt: int = Field(default=1, exclude_if=partial(eq, 1))
    mode: Mode = "sync"
    parameters: dict[str, JsonValue] = Field(default={}, exclude_if=not_)
    """The arguments of the call."""


def starts_child(tool: ToolSpec | None) -> TypeGuard[ToolSpec]:
    """Whether a call of *tool* starts a child session; a rerun has a recorded result instead."""
    return _is_of_children(tool) and tool.target != ASK_CHILD


def asks_child(tool: ToolSpec | None) -> TypeGuard[ToolSpec]:
    """Whether a call of *tool* asks for the end of a child."""
    return _is_of_children(tool) and tool.target == ASK_CHILD


def _is_of_children(tool: ToolSpec | None) -> TypeGuard[ToolSpec]:
    return tool is not None and tool.target.startswith(AGENT_SCHEME) and tool.recording is None


def child_stream(parent: str, effect: str) -> str:
    """Return the stream of the child of that call; the name is fixed, so the child starts once."""
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
"""The default time that a run waits for a runner."""
NO_RUNNER: Final = "No matching runner available within timeout"
DISCONNECTED: Final = "Runner disconnected during execution"


class Run(Part):
    """The blueprint of a run, which a runner has to claim before the run begins."""

    blueprint: str
    """The name of its agent, as a runner offers it."""
    retry_of: str = Field(default="", exclude_if=not_)
    """The failed run that this run tries again."""
    queue_seconds: Seconds = Field(
        default=QUEUE_SECONDS, ge=0, exclude_if=partial(eq, QUEUE_SECONDS)
    )
    """How long it waits for a runner."""


_IN_SERIES = re.compile(r"(.+)\.\d{8}t\d{6}z")


class Schedule(Part):
    """The time at which a session starts its work."""

    at: AwareDatetime
    every_seconds: Seconds | None = Field(default=None, ge=1, exclude_if=partial(is_, None))
    """Time between the starts of the series; None: the session starts once."""
    zone: str = Field(default="", exclude_if=not_)
    """For a series in days by the wall clock: the zone's name; empty: the interval is kept."""
    clock: time | None = Field(default=None, exclude_if=partial(is_, None))
    """The wall time of such a series."""
    skipped: str = Field(default="", exclude_if=not_)
    """The requested local time, if the clocks skip it; `at` is later by the skipped time."""
    first: str = Field(default="", exclude_if=not_)
    """The first session of its series; empty: itself."""


def time_after(schedule: Schedule, now: datetime) -> datetime | None:
    """Return the next time of the series after now; missed times are left out."""
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
    """Return the first time after *at* and *now* that is *clock* on one of every so many days."""
    wall = datetime.combine(at.astimezone(zone), clock)
    passed = max(now.astimezone(zone).replace(tzinfo=None) - wall, timedelta()) // every
    times = (instant(wall + (passed + more) * every, zone) for more in range(3))
    return next(each for each in times if each > max(at, now))


def instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the time that is *wall* in *zone*: the first of two; later if the clocks skip it."""
    return wall.replace(tzinfo=zone).astimezone(UTC)


def stream_at(first: str, at: datetime) -> str:
    """Return the stream of the session of a series that starts at that time."""
    return f"{first}.{at.astimezone(UTC):%Y%m%dt%H%M%Sz}"


def first_of(stream: str) -> str | None:
    """Return the session whose series *stream* may belong to, by its name."""
    found = _IN_SERIES.fullmatch(stream)
    return found[1] if found else None
