"""Takes over the log, and the workers of former dispatchers, for a new dispatcher."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import ray

from cueline.actors.presence import BEAT_SECONDS, beat_always, death_of, find
from cueline.clock import Clock
from cueline.cluster.cluster_context import VERSION, ClusterContext, actors_of
from cueline.cluster.fleet_member import FleetMember
from cueline.cluster.placement import has_node, node_of
from cueline.cluster.ray_call import DEAD, DISPATCHER, UNCLEAR, call
from cueline.cluster.runner import RunnerActor
from cueline.cluster.session_host import SessionHostActor
from cueline.deciders.fleet import HOSTS, RUNNERS, Group
from cueline.deciders.fleet_worker import WorkerState
from cueline.errors import ClusterError, CuelineError, FencedError, KeyReusedError, LogLostError
from cueline.events.fleet import DispatcherEvent, DispatcherStarted
from cueline.events.journal import FactWrite, Journal
from cueline.events.store import NO_STREAM, Presence, PresenceBoard


class DispatcherLease:
    """A dispatcher's hold on its log: an epoch, a stream and a presence."""

    def __init__(
        self, presence: Presence, journal: Journal, board: PresenceBoard, clock: Clock
    ) -> None:
        self.epoch = 0
        """The epoch in every order of this dispatcher."""
        self._presence = presence
        self._journal = journal
        self._board = board
        self._clock = clock
        self._version = NO_STREAM
        self._beating: asyncio.Task[None] | None = None

    async def take(self) -> None:
        """Become the log's dispatcher and start its heartbeats.

        Raises:
            ClusterError: a living dispatcher has the log; end that `up` first.
        """
        store = self._journal.store
        await self._board.beat(self._presence)
        head = await store.head(DISPATCHER)
        owner = find(await self._board.all(), head.owner)
        if owner is not None and death_of(owner, self._clock.now()) is None:
            await self._board.leave(self._presence.incarnation)
            raise lease_held(owner)
        self._version = head.version
        try:
            self.epoch = await store.acquire(DISPATCHER, self._presence.incarnation, head.epoch)
        except FencedError:
            # Another was faster; its first heartbeat came before.
            await self.take()
            return
        # At once: starting a fleet may take longer than the silence of a dead process.
        beating = beat_always(self._board, self._presence, self._clock)
        self._beating = asyncio.create_task(beating)

    async def record(self, facts: Sequence[DispatcherEvent]) -> None:
        """Append *facts*; retry while the log is unavailable.

        Raises:
            FencedError: another dispatcher has succeeded this one.
            LogLostError: the log is gone.
        """
        steps = [[fact] for fact in facts]
        while True:
            write = FactWrite(
                stream=DISPATCHER,
                steps=steps,
                expected_version=self._version,
                epoch=self.epoch,
                actor="system:dispatcher",
            )
            try:
                await self._journal.append([write], key=None)
            except (FencedError, LogLostError):
                raise
            except KeyReusedError:
                # The last append was cancelled before its answer came.
                self._version = (await self._journal.store.head(DISPATCHER)).version
            except CuelineError:
                await self._clock.sleep(BEAT_SECONDS)
            else:
                self._version += len(facts)
                return

    async def began(self, up: str) -> int:
        """Return the position of the first `DispatcherStarted` of a `cueline up`.

        Ray may have restarted its dispatcher since.

        Args:
            up: the incarnation of the `cueline up`.
        """
        async for recorded, fact in self._journal.read(DISPATCHER):
            if isinstance(fact, DispatcherStarted) and fact.up == up:
                return recorded.position
        raise AssertionError("it was recorded")

    async def leave(self) -> None:
        """Record that the dispatcher has ended."""
        if self._beating is not None:
            self._beating.cancel()
        with suppress(CuelineError):
            await self._board.leave(self._presence.incarnation)


def lease_held(by: Presence) -> ClusterError:
    """Return the error for a log whose lease belongs to *by*."""
    process = f"process {by.pid} on {by.machine}"
    return ClusterError("this log", f"another `cueline up` has it ({process}); take that down")


ADOPT_SECONDS = 5.0
"""The time within which a living actor answers; a silent one counts as lost."""


async def adopted_workers(
    context: ClusterContext, epoch: int, board: PresenceBoard
) -> Sequence[FleetMember]:
    """Return the hosts and runners, of any version, that former incarnations have left."""
    prefix = f"{context.owner}/"
    present = await board.all()
    adopting = [
        _adopted(context, epoch, name, present)
        for name in actors_of(context.namespace, prefix)
        if name.removeprefix(prefix).startswith(("host-", "runner-"))
    ]
    return [worker for worker in await asyncio.gather(*adopting) if worker is not None]


async def _adopted(
    context: ClusterContext, epoch: int, name: str, present: Sequence[Presence]
) -> FleetMember | None:
    # A worker of another version has the version in its name, and finishes its sessions or calls.
    incarnation, _, version = name.partition("/")[2].partition("@")
    leaves = "" if version == VERSION else f"it is of cueline {version}"
    presence = find(present, incarnation)
    is_host = incarnation.startswith("host-")
    arguments: list[object] = [[]] if is_host else []
    try:
        handle = await context.find(name, 0)
        if presence is None and not await has_node(handle):
            # The worker waits for a node.
            ray.kill(handle)
            return None
        presence = await call(handle.start.remote(epoch, *arguments), ADOPT_SECONDS)
        group, node = await call(handle.__ray_call__.remote(_group_and_node_of), ADOPT_SECONDS)
    except (*DEAD, ClusterError):
        return None
    except (*UNCLEAR, CuelineError):
        # The worker may be frozen: sessions may wait for a runner, and a host has sessions.
        here = presence is not None and presence.machine == context.machine
        node = context.node if here else ""
        group = HOSTS if is_host else RUNNERS
        state = WorkerState(group, node, "unreachable", leaves, silent=True, was_lost=True)
    else:
        state = WorkerState(group, node, "running", leaves, is_known=True)
    return FleetMember(incarnation, handle, state, presence, name)


def _group_and_node_of(actor: SessionHostActor | RunnerActor) -> tuple[Group, str]:
    """Return the group and the Ray node of a worker."""
    return actor.group, node_of(actor)


def end_unused(context: ClusterContext) -> bool:
    """End the actors of other versions, unless one of their hosts or runners is left."""
    names = actors_of(context.namespace, f"{context.owner}/")
    former = [name for name in names if not name.endswith(f"@{VERSION}")]
    if any(
        name.startswith((f"{context.owner}/host-", f"{context.owner}/runner-")) for name in former
    ):
        return False
    for name in former:
        with suppress(ValueError):
            ray.kill(ray.get_actor(name, context.namespace))
    return True
