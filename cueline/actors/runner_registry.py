"""Registers runners and their blueprints, and admits and ends their runs.

The dispatcher records these changes. The claim of a run is recorded by the host of the run.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from cueline.actors.fleet_log import FleetLog
from cueline.actors.presence import evidence_of_end
from cueline.deciders.fleet import FLEET, Change, FleetState, changes
from cueline.deciders.heartbeat import HeartbeatTimes
from cueline.errors import BlueprintConflictError
from cueline.events.agent import AgentSpec
from cueline.events.fleet import FleetEvent, FleetReport, RunnerRegistered, RunnerRemoved
from cueline.events.inbox import RunAdmitted, RunnerGone
from cueline.events.journal import FactWrite, Journal
from cueline.events.store import ANY, Presence, from_us
from cueline.events.stream import sibling

ACTOR: Final = "system:dispatcher"
RUNNER: Final = "up"
"""The name of the runner under which a `cueline up` registers its blueprints."""


class ClaimedRun(NamedTuple):
    """A run that has not ended, and the incarnation that claimed it."""

    stream: str
    runner: str
    unread: bool
    """Whether the inbox of the run holds unread messages."""


class RunIndex(Protocol):
    """Finds runs in a read model."""

    async def claimed(self) -> Sequence[ClaimedRun]:
        """Return the runs that were claimed and have not ended."""

    async def oldest(self, blueprint: str, limit: int) -> Sequence[str]:
        """Return the streams of the oldest unfinished runs of *blueprint*, at most *limit*."""


class RunnerRegistry:
    """The registered runners of one dispatcher."""

    def __init__(
        self,
        journal: Journal,
        fleet: FleetLog,
        index: RunIndex,
        *,
        epoch: int,
        since: datetime,
        times: HeartbeatTimes,
        offer: Sequence[AgentSpec] = (),
    ) -> None:
        self._journal = journal
        self._fleet = fleet
        self._index = index
        self._epoch = epoch
        self._since = since
        self._times = times
        self._offer = tuple(offer)
        """The blueprints of this dispatcher's runners; one runner at a time offers them."""
        self._admitted: dict[str, frozenset[str]] = {}
        """The admitted runs by blueprint."""

    async def record(self, facts: Sequence[FleetReport]) -> None:
        """Record *facts*; the same append has the messages to the runs of a removed runner.

        Raises:
            FencedError: another dispatcher has the fleet; stop.
        """
        state = await self._fleet.read()
        offering = [self._with_offer(fact, state) for fact in facts]
        if await self._fleet.record(offering, ACTOR, self._tell):
            await self._offer_again(facts[-1].at)

    async def tick(self, present: Collection[Presence], now: datetime) -> Sequence[Change]:
        """Record stale, returned and gone runners; send messages to the runs of gone ones.

        Args:
            present: the processes that have sent heartbeats.
            now: the time.

        Raises:
            FencedError: another dispatcher has the fleet; stop.
        """
        there = {each.incarnation: each for each in present}
        state = await self._fleet.read()
        gone = [
            RunnerRemoved(incarnation=name, reason=reason, epoch=self._epoch, at=now)
            for name, each in state.runners.items()
            # The fleet itself removes its runners of this epoch, by better evidence.
            if each.fact.epoch < self._epoch or not each.fact.node
            if (reason := _end_of(name, there.get(name)))
        ]
        beats = {name: from_us(each.beat_us) for name, each in there.items()}
        found = changes(state, beats, now, since=self._since, times=self._times)
        if gone or found:
            await self.record([*gone, *found])
        await self._offer_again(now)
        await self._tell_stragglers(await self._fleet.read())
        return [*gone, *found]

    async def admit(self) -> None:
        """Admit the oldest runs of each blueprint with `max_running`.

        A later run becomes one of the oldest only when another run ends. So there are never too
        many, even if the read model is old or another process admits runs, too.
        """
        for name, each in (await self._fleet.read()).blueprints.items():
            if (most := each.agent.max_running) is None:
                continue
            oldest = frozenset(await self._index.oldest(name, most))
            for run in oldest - self._admitted.get(name, frozenset()):
                admitted = FactWrite(sibling(run, "inbox"), [[RunAdmitted()]], ANY, actor=ACTOR)
                await self._journal.append([admitted], key="admitted")
            self._admitted[name] = oldest

    async def leave(self, now: datetime) -> None:
        """Record that all runners have left, because this `up` ends."""
        state = await self._fleet.read()
        why = "`cueline up` was taken down"
        await self.record(
            [
                RunnerRemoved(
                    incarnation=each, reason=why, graceful=True, epoch=self._epoch, at=now
                )
                for each in state.runners
            ]
        )

    def _with_offer(self, fact: FleetReport, state: FleetState) -> FleetReport:
        """Add the blueprints to a registration, unless another runner has them."""
        if not isinstance(fact, RunnerRegistered) or fact.runner != RUNNER:
            return fact
        offering = fact.model_copy(update={"blueprints": self._offer})
        try:
            FLEET.decide(offering, state)
        except BlueprintConflictError:
            return fact.model_copy(update={"blueprints": ()})
        return offering

    async def _offer_again(self, now: datetime) -> None:
        """Let another runner offer the blueprints that no runner offers now."""
        state = await self._fleet.read()
        if not self._offer or state.online(self._offer[0].name):
            return
        for each in state.runners.values():
            if each.removed_at is None and each.fact.runner == RUNNER:
                again = each.fact.model_copy(update={"epoch": self._epoch, "at": now})
                offering = self._with_offer(again, state)
                if offering != again:
                    await self._fleet.record([offering], ACTOR)
                return

    async def _tell(self, event: FleetEvent) -> Sequence[FactWrite]:
        if not isinstance(event, RunnerRemoved):
            return []
        return removal_messages(event, await self._index.claimed())

    async def _tell_stragglers(self, state: FleetState) -> None:
        """Send messages to the runs that were claimed while their runner was being removed."""
        for each in await self._index.claimed():
            if each.runner not in state.runners and not each.unread:
                message = _message(each.stream, each.runner, "it was removed", graceful=False)
                await self._journal.append([message], key=f"gone {each.runner}")


def removal_messages(removed: RunnerRemoved, claimed: Sequence[ClaimedRun]) -> list[FactWrite]:
    """Return the messages to the runs of a removed runner."""
    return [
        _message(each.stream, removed.incarnation, removed.reason, graceful=removed.graceful)
        for each in claimed
        if each.runner == removed.incarnation
    ]


def _end_of(incarnation: str, presence: Presence | None) -> str | None:
    """Return the evidence that a registered runner has ended."""
    if presence is None:
        # A registered runner has sent heartbeats, so its presence was removed.
        return f"runner {incarnation} has left"
    return evidence_of_end(presence)


def _message(run: str, runner: str, reason: str, *, graceful: bool) -> FactWrite:
    gone = RunnerGone(runner=runner, reason=reason, graceful=graceful)
    return FactWrite(
        stream=sibling(run, "inbox"), steps=[[gone]], expected_version=ANY, actor=ACTOR
    )
