"""Starts and lists runs of blueprints, and lists the runners."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from cueline.actors.fleet_log import FleetLog
from cueline.actors.session_tree import read_start_request
from cueline.client.argument_check import make_value
from cueline.client.context import Connection
from cueline.client.session import Session
from cueline.client.start import StartOptions, StartRequest, request_of
from cueline.deciders.fleet import FleetState
from cueline.errors import ConfigError, RejectedError
from cueline.errors.suggestion import known_instead
from cueline.events.start import QUEUE_SECONDS, Run
from cueline.events.store import from_us
from cueline.events.stream import shown
from cueline.runtime.open_log import OpenLog

RunnerStatus = Literal["online", "stale", "offline"]
"""`offline`: no registered runner offers the blueprint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlueprintRow:
    """An agent that a runner offers, or has offered."""

    name: str
    status: RunnerStatus
    runner: str | None
    """The incarnation of the runner that offers the blueprint."""
    provider: str
    model: str
    description: str
    parameters_schema: Mapping[str, JsonValue] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerRow:
    """A registered runner."""

    incarnation: str
    name: str
    status: RunnerStatus
    heard_at: datetime | None
    """The time of the runner's last heartbeat."""
    removed_at: datetime | None
    """The time at which a stale runner is removed, unless it sends a heartbeat earlier."""
    machine: str
    pid: int
    blueprints: tuple[str, ...]


async def blueprints_of(log: OpenLog) -> list[BlueprintRow]:
    """Return all blueprints that were ever offered, by name."""
    log.check_may("read")
    state = await FleetLog(log.journal()).read()
    return [
        BlueprintRow(
            name=name,
            status=_status(state, each.runner),
            runner=each.runner or None,
            provider=each.agent.provider,
            model=each.agent.model,
            description=each.agent.description,
            parameters_schema=each.agent.parameters_schema,
        )
        for name, each in sorted(state.blueprints.items())
    ]


async def runners_of(log: OpenLog) -> list[RunnerRow]:
    """Return the registered runners, in the order of their registration."""
    log.check_whole()
    state = await FleetLog(log.journal()).read()
    heard = {each.incarnation: from_us(each.beat_us) for each in await log.board.all()}
    return [
        RunnerRow(
            incarnation=name,
            name=each.fact.runner,
            status=_status(state, name),
            heard_at=heard.get(name),
            removed_at=each.removed_at,
            machine=each.fact.machine,
            pid=each.fact.pid,
            blueprints=tuple(sorted(b for b, at in state.blueprints.items() if at.runner == name)),
        )
        for name, each in state.runners.items()
    ]


async def submit(
    client: Connection,
    blueprint: str,
    options: StartOptions,
    *,
    queue_seconds: float = QUEUE_SECONDS,
    retry_of: str = "",
) -> Session:
    """Start a run; see `Client.submit`."""
    request = await run_request(
        client, blueprint, options, queue_seconds=queue_seconds, retry_of=retry_of
    )
    return await request.submit(client)


async def run_request(
    client: Connection,
    blueprint: str,
    options: StartOptions,
    *,
    queue_seconds: float = QUEUE_SECONDS,
    retry_of: str = "",
) -> StartRequest:
    """Return the checked start of a run, which is not recorded yet; see `Client.submit`."""
    state = await FleetLog(client.log.journal()).read()
    if (offered := state.blueprints.get(blueprint)) is None:
        known = known_instead(blueprint, sorted(state.blueprints), "offered were")
        hint = known if state.blueprints else "; `cueline up --blueprints FOLDER` offers some"
        raise RejectedError(blueprint, f"no runner has ever offered such a blueprint{hint}")
    if not queue_seconds and not state.online(blueprint):
        raise RejectedError(blueprint, "no runner that is online offers it now")
    run = make_value(Run, blueprint=blueprint, retry_of=retry_of, queue_seconds=queue_seconds)
    now, user = client.log.clock.now(), client.log.user
    request = request_of(offered.agent, options, now, user=user, run=run)
    if options.goal is None and not (offered.agent.plan or offered.agent.parameters_schema):
        raise ConfigError(blueprint, "it has a model and no parameters: name a goal")
    return request


async def retry(client: Connection, stream: str) -> Session:
    """Start an ended run again; see `Client.retry`."""
    asked = await read_start_request(client.log.journal(), stream)
    if asked.run is None:
        raise RejectedError(shown(stream), "it is no run of a blueprint; start or fork it instead")
    status, _ = await client.cache.fold(stream)
    if not status.finished:
        raise RejectedError(shown(stream), f"it has not ended, but is {status.status}")
    return await submit(
        client,
        asked.run.blueprint,
        StartOptions(goal=asked.goal, parameters=asked.parameters, labels=asked.labels),
        queue_seconds=asked.run.queue_seconds,
        retry_of=stream,
    )


def _status(state: FleetState, incarnation: str) -> RunnerStatus:
    registered = state.runners.get(incarnation)
    if registered is None:
        return "offline"
    return "online" if registered.removed_at is None else "stale"
