"""Folds the stream of a log's fleet; every append is a compare-and-set."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from uuid import uuid4

from cueline.actors.fold import fold
from cueline.deciders.fleet import FLEET, FleetCommand, FleetState
from cueline.deciders.session import SessionState
from cueline.errors import KeyReusedError, UnknownOutcomeError, WrongExpectedVersionError
from cueline.events.fleet import FLEET_STREAM, FleetEvent
from cueline.events.journal import FactWrite, Journal
from cueline.events.session import RunClaimed, SessionContinued, SessionEvent
from cueline.events.store import NO_STREAM


class FleetLog:
    """The folded state of a fleet, up to the read version."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._state, self._version = FLEET.initial_state, NO_STREAM
        self._lock = asyncio.Lock()

    async def read(self) -> FleetState:
        """Read the new events, and return the state."""
        async with self._lock:
            await self._read()
            return self._state

    async def record(
        self,
        commands: Sequence[FleetCommand],
        actor: str,
        tell: Callable[[FleetEvent], Awaitable[Sequence[FactWrite]]] | None = None,
    ) -> Sequence[FleetEvent]:
        """Append the events of *commands*, and return them.

        *tell* returns the messages that go with an event, in the same append.

        Raises:
            FencedError: another dispatcher has the fleet; stop.
            BlueprintConflictError: a runner cannot offer that name; nothing was recorded.
            StoreError: see `EventStore.append`.
        """
        key = uuid4().hex
        async with self._lock:
            while True:
                await self._read()
                steps = self._decide(commands)
                if not steps:
                    return []
                writes = [
                    FactWrite(
                        stream=FLEET_STREAM,
                        steps=steps,
                        expected_version=self._version,
                        actor=actor,
                    )
                ]
                if tell is not None:
                    for fact in [fact for facts in steps for fact in facts]:
                        writes += await tell(fact)
                try:
                    await self._journal.append(writes, key=key)
                except (WrongExpectedVersionError, UnknownOutcomeError):
                    continue
                except KeyReusedError:
                    # The append of unknown outcome was recorded; this one has fewer messages.
                    pass
                return [fact for facts in steps for fact in facts]

    def _decide(self, commands: Sequence[FleetCommand]) -> list[Sequence[FleetEvent]]:
        state, steps = self._state, []
        for command in commands:
            if facts := FLEET.decide(command, state):
                state = FLEET.replay(facts, state)
                steps.append(facts)
        return steps

    async def _read(self) -> None:
        self._state, self._version = await fold(
            self._journal, FLEET_STREAM, FLEET, self._state, self._version
        )


async def claims(fleet: FleetLog, state: SessionState, now: datetime) -> list[SessionEvent]:
    """Return the claim of a queued run by the runner that offers its blueprint now.

    If no runner offers it, a run without a deadline gets a deadline. A run that has to be admitted
    first waits without a deadline.
    """
    run = state.run
    if run is None or state.stop is not None:
        return []
    seen = await fleet.read()
    if runner := seen.online(run.blueprint):
        most = seen.blueprints[run.blueprint].agent.max_running
        if most is None or run.admitted:
            return [RunClaimed(runner=runner)]
        return [SessionContinued(by="work", at=now, max_running=most)]
    if run.max_running:
        return []
    until = now + timedelta(seconds=run.queue_seconds)
    return [SessionContinued(by="work", at=now, queued_until=until)] if run.until is None else []


async def queue_end(fleet: FleetLog, state: SessionState, now: datetime) -> list[SessionEvent]:
    """Return the end of a run's wait for a runner; empty if a runner can claim the run now.

    The run waits for a stale runner until the runner is removed (C32).
    """
    assert state.run is not None, "only a run waits for one"
    seen = await fleet.read()
    if seen.online(state.run.blueprint):
        return []
    until = seen.removal_of(state.run.blueprint)
    later = until if until is not None and until > now else None
    return [SessionContinued(by="deadline", at=now, queued_until=later)]
