"""Starts the actors of `cueline up`, and ends the actors that a killed `cueline up` left."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from cueline.actors.presence import presence_of
from cueline.config.environment import user_name
from cueline.config.settings import ClusterSettings, Settings
from cueline.deciders.heartbeat import HeartbeatTimes
from cueline.errors import ClusterError
from cueline.events.agent import AgentSpec
from cueline.events.log_url import LogUrl
from cueline.runtime.actor_factory import actor_factory_of, namespace_of
from cueline.runtime.on_ray import POLL_SECONDS, dispatcher_lives
from cueline.runtime.open_log import OpenLog, open_log
from cueline.runtime.up_record import UpRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class UpPlan:
    """The actors that `cueline up` has to start, and the cluster for them."""

    log: LogUrl
    address: str | None
    """The address of a Ray cluster; None for a new cluster on this machine."""
    hosts: int | None
    """The number of hosts. In both numbers, None is the last requested number, at first 1."""
    runners: int | None
    recover: bool
    """See `UpRecord`."""
    settings: Settings
    blueprints: tuple[AgentSpec, ...] = ()
    """The blueprints that the runners offer."""
    folder: Path | None = None
    """The folder of the blueprints."""
    serve: tuple[str, ...] = ()
    """The command of the HTTP server; empty: there is none."""


@asynccontextmanager
async def run_up(plan: UpPlan) -> AsyncIterator["UpProcess"]:
    """Run a log's actors until the block ends, then end them.

    Raises:
        ClusterError: the cluster cannot be used, or another `cueline up` has the log; the
            message says what to do.
        LogUnavailableError: the log cannot be used here or there.
    """
    async with _starting(plan, "process") as up:
        try:
            found = await up.start()
            try:
                url = await up.serve()
                last = up.log.store.last_position
                yield UpProcess(up.record, found, up.actors.watch, last, url)
            finally:
                with suppress(OSError):  # the folder of the log may be gone
                    up.note(ready=False)
        finally:
            await up.end()


async def start_up(plan: UpPlan) -> tuple[UpRecord, int]:
    """Start a log's actors on a cluster, where Ray keeps and restarts them.

    Returns the record, and the number of running sessions without a driver.

    Raises:
        ClusterError: see `run_up`.
        LogUnavailableError: see `run_up`.
    """
    async with _starting(plan, "ray") as up:
        try:
            found = await up.start()
            await up.serve()
        except BaseException:
            await up.end()
            raise
    return up.record, found


@asynccontextmanager
async def _starting(
    plan: UpPlan, kept_by: Literal["process", "ray"]
) -> AsyncIterator["_StartingUp"]:
    """Open the log and connect to Ray."""
    # First: Ray reads the environment on import.
    from cueline.cluster.connection import connect_ray  # noqa: PLC0415 - see above

    async with open_log(plan.log) as log:
        factory = actor_factory_of(log.with_settings(plan.settings))
        namespace = namespace_of(factory.log_id)
        with connect_ray(plan.address, namespace) as connection:
            from cueline.cluster.dispatcher import DispatcherSettings  # noqa: PLC0415 - it imports Ray
            from cueline.cluster.up import Up  # noqa: PLC0415 - as above

            record = record_of(log, connection.address)
            record = replace(record, kept_by=kept_by, recover=plan.recover)
            wanted = DispatcherSettings(
                hosts=plan.hosts,
                runners=plan.runners,
                by=user_name(),
                recover=plan.recover,
                stays=kept_by == "ray",
                heartbeat=heartbeat_times(plan.settings.cluster),
                blueprints=plan.blueprints,
            )
            actors = Up(connection, namespace, factory, record.keeper)
            yield _StartingUp(log, record, actors, wanted, plan.serve)


def heartbeat_times(cluster: ClusterSettings) -> HeartbeatTimes:
    """Return the times after which a registered runner counts as stale, and as gone."""
    return HeartbeatTimes(cluster.heartbeat_seconds, cluster.stale_seconds, cluster.removal_seconds)


@dataclass(frozen=True, slots=True)
class _StartingUp:
    """The `cueline up` that this process starts, and its record."""

    log: OpenLog
    record: UpRecord
    actors: Any
    """`cluster.up.Up`, which imports Ray."""
    wanted: Any
    """The `DispatcherSettings` of *actors*."""
    command: tuple[str, ...]
    """See `UpPlan.serve`."""

    async def start(self) -> int:
        """Start the actors, write the record, and return the number of undriven sessions."""
        # Record the start first: if this process is killed, the record shows that actors may be
        # left to end. An earlier record stays for the same reason.
        there = UpRecord.read(self.log.url)
        if there is None:
            self.note(ready=False)
        abandoned = None if there is None or there.ready else there.keeper.incarnation
        started = await self.actors.start(self.wanted, abandoned)
        self.note(ready=True)
        return int(started.found)

    async def serve(self) -> str | None:
        """Start the HTTP server, which finds the running `up`, and return its URL."""
        if not self.command:
            return None
        return str(await self.actors.serve(self.command, str(Path.cwd())))

    def note(self, *, ready: bool) -> None:
        """Record whether the actors accept sessions."""
        replace(self.record, ready=ready).write(self.log.url)

    async def end(self) -> None:
        """End the actors."""
        await self.actors.stop()
        self.record.withdraw(self.log.url)


@dataclass(frozen=True, slots=True)
class UpProcess:
    """A running `cueline up`, for its command."""

    record: UpRecord
    found: int
    """The number of running sessions that had no driver."""
    watch: Callable[[], Awaitable[list[str]]]
    """Returns the errors since the last call; raises `ClusterError` at the end."""
    look: Callable[[], Awaitable[int]]
    """Checks the log; raises `LogLostError` if its file is gone."""
    url: str | None = None
    """The URL of the HTTP server."""


def record_of(log: OpenLog, address: str) -> UpRecord:
    """Return the record of a `cueline up` of this process on the cluster at *address*."""
    return UpRecord(
        address=address,
        namespace=namespace_of(log.id),
        version=version("cueline"),
        keeper=presence_of("up"),
        kept_by="ray",
    )


ORPHAN_SECONDS = 10.0
"""The time after which the processes of a killed `cueline up` have ended."""


async def end_left_behind(
    log: OpenLog, record: UpRecord, *, address: str | None = None, grace_seconds: float
) -> None:
    """End the actors that a killed `cueline up` left on a shared cluster, or that Ray keeps there.

    The cluster is at *address*, else at the address in *record*.

    Raises:
        ClusterError: actors are alive, but the cluster cannot be reached.
    """
    deadline = log.clock.now() + timedelta(seconds=ORPHAN_SECONDS)
    asked = record.kept_by == "ray" or address is not None
    while asked or await dispatcher_lives(log):
        try:
            await _take_down(address or record.address, record.namespace, grace_seconds)
        except ClusterError:
            # A cluster that the killed process started ends with it.
            if not await dispatcher_lives(log):
                if address is None:
                    return
                raise
            if log.clock.now() > deadline:
                raise
            await log.clock.sleep(POLL_SECONDS)
        else:
            return


async def _take_down(address: str, namespace: str, grace_seconds: float) -> None:
    from cueline.cluster.connection import connect_ray  # noqa: PLC0415 - as above

    with connect_ray(address, namespace):
        from cueline.cluster.cluster_context import take_down  # noqa: PLC0415 - it imports Ray

        await take_down(namespace, grace_seconds)
