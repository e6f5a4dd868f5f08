"""A session host as a Ray actor, and its client for the dispatcher."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import ray

from cueline.actors.assignments import HostReport
from cueline.actors.live_text import LOCAL, LiveTextServer
from cueline.actors.presence import SILENCE_SECONDS, beat_always, deaf_seconds, presence_of
from cueline.actors.session_host import SessionHost
from cueline.clock import SystemClock, boot_seconds
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.figures import host_sessions, host_troubles
from cueline.cluster.ray_call import DEAD, UNCLEAR, EpochFence, Handle, NotificationBuffer, call
from cueline.cluster.remote_store import log_of
from cueline.cluster.runner_directory import Directory, RunnerInfo
from cueline.cluster.singletons import RemoteGate, RemoteLedger, RemoteSandboxes
from cueline.deciders.fleet import HOSTS, Group
from cueline.errors import ConfigError, CuelineError
from cueline.events.store import Presence
from cueline.runtime.log_lines import start_logging

CALL_SECONDS = 5.0
LOOK_SECONDS = 1.0
"""The longest time that a frozen host delays its dispatcher."""
Told = tuple[str, CuelineError]


class SessionHostActor:
    """Holds a `SessionHost`, whose methods it exposes."""

    def __init__(self, context: ClusterContext, incarnation: str, group: Group = HOSTS) -> None:
        with suppress(ConfigError):  # whoever started the cluster was told
            start_logging(os.environ)
        self.group = group
        self._context = context
        self._incarnation = incarnation
        self._orders = EpochFence(incarnation)
        self._host: SessionHost | None = None
        self._untold: NotificationBuffer[Told] = NotificationBuffer()
        self._heard_at = boot_seconds()

    async def start(self, epoch: int, runners: Sequence[RunnerInfo]) -> Presence:
        """Start; a second call returns the same presence."""
        self._hear(epoch)
        if self._host is None:
            self._store, self._board = log_of(self._context)
            self._directory = Directory(self._context, self._incarnation, self._board)
            self._host = self._context.factory.host(
                self._incarnation,
                store=self._store,
                board=self._board,
                runners=self._directory,
                gate=RemoteGate(self._context),
                ledger=RemoteLedger(self._context),
                sandboxes=RemoteSandboxes(self._context),
                on_trouble=self._notify_trouble,
            )
            live_text = LiveTextServer(self._host.live_text)
            await live_text.start(self._address())
            self.presence = replace(
                presence_of("host"),
                incarnation=self._incarnation,
                address=live_text.address,
                token=live_text.token,
            )
            beating = beat_always(self._board, self.presence, SystemClock())
            self._tasks = [asyncio.create_task(each) for each in (beating, self._watch())]
        self._directory.know(runners, {})
        return self.presence

    async def ask(self, epoch: int, method: str, *asked: object) -> Any:
        """Return the answer of the *method* of `HostPort`."""
        self._hear(epoch)
        return await getattr(self._living(), method)(*asked)

    async def know(
        self, epoch: int, runners: Sequence[RunnerInfo], gone: dict[str, str], hosts: int
    ) -> None:
        """Set the runners, the dead ones, and the number of *hosts* that share the runners."""
        self._hear(epoch)
        self._directory.know(runners, gone)
        self._living().share(hosts)

    async def troubles(self, seconds: float) -> list[Told]:
        """Return the errors since the last call, once there are any; waits up to *seconds*."""
        self._heard_at = boot_seconds()
        return await self._untold.take(seconds)

    async def drain(self, epoch: int, seconds: float) -> None:
        """Activate no more sessions, and stop within *seconds*."""
        self._hear(epoch)
        await self._living().drain(seconds)
        await self._directory.tidy()

    def _address(self) -> str:
        """Return the address at which watchers, beside the log, reach this process."""
        here = ray.get_runtime_context().get_node_id()
        return LOCAL if here == self._context.node else ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]

    def _hear(self, epoch: int) -> None:
        """Note that a dispatcher is alive, and refuse a former one."""
        self._heard_at = boot_seconds()
        self._orders.check(epoch)

    def _living(self) -> SessionHost:
        assert self._host is not None, "a host is started before it is given anything"
        return self._host

    def _notify_trouble(self, stream: str, error: CuelineError) -> None:
        host_troubles().inc()
        self._untold.add((stream, error))

    async def _watch(self) -> None:
        clock = SystemClock()
        awake_at, deaf = boot_seconds(), deaf_seconds(self._context.factory.removal_seconds)
        # Not by our heartbeats: while the log's writer is away none arrive, and our sessions are
        # still ours.
        while boot_seconds() - awake_at < SILENCE_SECONDS:
            awake_at = boot_seconds()
            if self._context.detached and awake_at - self._heard_at > deaf:
                # No dispatcher is left, and no other process ends a detached actor.
                break
            host_sessions().set(len(await self._living().active()))
            await clock.sleep(LOOK_SECONDS)
        # Or we were frozen: others count us as dead, and have our sessions.
        os._exit(1)


class RemoteHost:
    """See `HostPort`."""

    def __init__(self, handle: Handle, epoch: int) -> None:
        self._handle = handle
        self._epoch = epoch

    async def activate_all(self, streams: list[str]) -> list[str]:
        """See `HostPort.activate_all`; if the host dies, the next tick finds its sessions."""
        return await self._ask("activate_all", streams, within=CALL_SECONDS) or []

    async def report(self, after: int | None) -> HostReport | None:
        return cast("HostReport | None", await self._ask("report", after))

    async def hand_over(self, sessions: int) -> None:
        """See `HostPort.hand_over`; a host that misses it is asked again."""
        await self._ask("hand_over", sessions)

    async def look_at_breakers(self) -> None:
        """See `HostPort.look_at_breakers`; a host that misses it notices at its next failure."""
        await self._ask("look_at_breakers")

    async def _ask(self, method: str, *asked: object, within: float = LOOK_SECONDS) -> Any:
        """Return the host's answer; None without one."""
        with suppress(*DEAD, *UNCLEAR):
            return await call(self._handle.ask.remote(self._epoch, method, *asked), within)
        return None
