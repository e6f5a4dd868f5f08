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
"""The name of the tool that starts a child session with an agent of the model's choice."""
CHILD_RESULT: Final = "child_result"
"""The name of the tool that returns the end of a child session of the mode `async_poll`."""
ANY_AGENT: Final = f"{AGENT_SCHEME}*"
"""The target of the tool `delegate`, whose call names the agent."""

ASK_CHILD: Final = f"{AGENT_SCHEME}?"
"""The target of the tool `child_result`, whose call requests the end of a child session."""

BLUEPRINT_SCHEME: Final = "blueprint:"
"""The scheme of a tool, as an agent names it, whose calls start runs of a blueprint."""

Mode = Literal["sync", "async_poll", "async_callback"]
"""When the call that starts a child returns: at the child's end, or at once.

If the call returns at once, the model requests the end later, or gets it as a message.
"""
MODES: Final[tuple[Mode, ...]] = get_args(Mode)


class ChildCall(Part):
    """The call of a parent session that started a child session."""

    effect: str
    attempt: int = Field(default=1, exclude_if=partial(eq, 1))
    mode: Mode = "sync"
    parameters: dict[str, JsonValue] = Field(default={}, exclude_if=not_)
    """The arguments of the call."""


def starts_child(tool: ToolSpec | None) -> TypeGuard[ToolSpec]:
    """Whether a call of *tool* starts a child session; false for a tool with recorded results."""
    return _is_of_children(tool) and tool.target != ASK_CHILD


def asks_child(tool: ToolSpec | None) -> TypeGuard[ToolSpec]:
    """Whether a call of *tool* requests the end of a child session."""
    return _is_of_children(tool) and tool.target == ASK_CHILD


def _is_of_children(tool: ToolSpec | None) -> TypeGuard[ToolSpec]:
    return tool is not None and tool.target.startswith(AGENT_SCHEME) and tool.recording is None


def child_stream(parent: str, effect: str) -> str:
    """Return the stream of the child of the call *effect*; a fixed name, so it starts once."""
    return f"{parent}.{effect}"


def parent_of(stream: str) -> str | None:
    """Return the parent by the name *stream*; None if no call can have started the session."""
    above, *numbers = stream.rsplit(".", 2)
    return above if len(numbers) == 2 and all(map(str.isdecimal, numbers)) else None  # noqa: PLR2004 - turn and index


def mode_of(parameters: dict[str, JsonValue]) -> Mode:
    """Return the mode in the parameters of a call that starts a child; by default `sync`."""
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
    """The name of the run's agent, as a runner offers the agent."""
    retry_of: str = Field(default="", exclude_if=not_)
    """The failed run that this run repeats; empty: none."""
    queue_seconds: Seconds = Field(
        default=QUEUE_SECONDS, ge=0, exclude_if=partial(eq, QUEUE_SECONDS)
    )
    """The longest time that the run waits for a runner."""


_IN_SERIES = re.compile(r"(.+)\.\d{8}t\d{6}z")


class Schedule(Part):
    """The time at which a session starts its work."""

    at: AwareDatetime
    every_seconds: Seconds | None = Field(default=None, ge=1, exclude_if=partial(is_, None))
    """Time between the starts of the series; None: the session starts once."""
    zone: str = Field(default="", exclude_if=not_)
    """The time zone of a series at a fixed wall time; empty: the starts have a fixed interval."""
    clock: time | None = Field(default=None, exclude_if=partial(is_, None))
    """The wall time of a series with a zone; None: the starts have a fixed interval."""
    skipped: str = Field(default="", exclude_if=not_)
    """The requested local time, if the clocks skip it; `at` is later by the skipped time."""
    first: str = Field(default="", exclude_if=not_)
    """The first session of the series; empty: this session."""


def time_after(schedule: Schedule, now: datetime) -> datetime | None:
    """Return the first time of the series after *now*; None without a series."""
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
    """Return the first time after *at* and *now* at the wall time *clock*, *every* so many days."""
    wall = datetime.combine(at.astimezone(zone), clock)
    passed = max(now.astimezone(zone).replace(tzinfo=None) - wall, timedelta()) // every
    times = (instant(wall + (passed + more) * every, zone) for more in range(3))
    return next(each for each in times if each > max(at, now))


def instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return *wall* of *zone* in UTC: the earlier of two times; later if the clocks skip it."""
    return wall.replace(tzinfo=zone).astimezone(UTC)


def stream_at(first: str, at: datetime) -> str:
    """Return the stream of the session that starts at *at* in the series of *first*."""
    return f"{first}.{at.astimezone(UTC):%Y%m%dt%H%M%Sz}"


def first_of(stream: str) -> str | None:
    """Return the first session of the series by the name *stream*; None outside a series."""
    found = _IN_SERIES.fullmatch(stream)
    return found[1] if found else None
