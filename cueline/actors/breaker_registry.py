"""The circuit breakers of the log in this process's view; calls report outcomes to them.

A breaker has no owner: every append is a compare-and-set on its version (I3).
After a conflict the registry reads the new events and decides again. It reads a
breaker before the first call that may meet it, and again when the dispatcher,
which follows the category, reports an event. A call whose breaker is closed
costs one dict lookup: no read, no append.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from cueline.actors.background_task import Trouble
from cueline.actors.entity import RETRY_SECONDS
from cueline.actors.fold import fold
from cueline.clock import Clock
from cueline.deciders.breaker import (
    BREAKER,
    Admission,
    BreakerCommand,
    BreakerState,
    Fail,
    Hold,
    Probe,
    Succeed,
    admission,
)
from cueline.errors import (
    CuelineError,
    LogUnavailableError,
    UnknownOutcomeError,
    WrongExpectedVersionError,
)
from cueline.events.agent import AgentSpec, ToolSpec
from cueline.events.agent_parts import BreakerPolicy
from cueline.events.breaker import BreakerEvent
from cueline.events.codes import OF_ACCOUNT
from cueline.events.journal import FactWrite, Journal
from cueline.events.store import NO_STREAM
from cueline.events.stream import stream_name

LONGEST_NAME = 48
_OTHER = re.compile(r"[^a-z0-9]{2,}|[^a-z0-9.]")


class BreakerTarget(Struct, frozen=True):
    """The breakers in front of a call, and their settings."""

    dependency: str
    """The breaker of the model or the tool."""
    account: str | None
    """The breaker of the provider account; None for a tool."""
    shown: str
    policy: BreakerPolicy

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams of the breakers; the account's is first, as it can hold back a probe."""
        return (self.dependency,) if self.account is None else (self.account, self.dependency)


class _KnownBreaker(Struct, frozen=True):
    version: int = NO_STREAM
    state: BreakerState = BREAKER.initial_state
    successes: int = 0
    """The number of successful calls of this process since the last change of the breaker."""
    blind: bool = False
    """Whether the breaker cannot be read; then it blocks no calls."""


_UNKNOWN = _KnownBreaker()


class BreakerRegistry:
    """The circuit breakers that the calls of one host meet."""

    def __init__(
        self,
        incarnation: str,
        journal: Journal,
        clock: Clock,
        *,
        account: Callable[[AgentSpec], str],
        report: Trouble,
    ) -> None:
        self._incarnation = incarnation
        self._journal = journal
        self._clock = clock
        self._account = account
        self._report = report
        self._known: dict[str, _KnownBreaker] = {}
        self._targets: dict[tuple[str, ...], BreakerTarget] = {}
        self._numbers = count(1)
        self._reading = asyncio.Lock()

    def of_model(self, tenant: str, agent: AgentSpec) -> BreakerTarget:
        """Return the breakers before calls of the agent's model."""
        where = (agent.base_url or "", agent.key_variable or "", agent.key_owner)
        sent = map("=".join, agent.headers.items())
        key = (tenant, agent.provider, agent.model, *where, *sent)
        target = self._targets.get(key)
        if target is None:
            owner = f"{stream_safe(agent.provider)}.{self._account(agent)}".rstrip(".")
            target = self._targets[key] = BreakerTarget(
                stream_name("breaker", f"{owner}.{stream_safe(agent.model or 'plan')}", tenant),
                stream_name("breaker", owner, tenant),
                f"{agent.provider} {agent.model.rpartition('/')[2]}",
                agent.breaker,
            )
        # Two agents that share a model may have different settings.
        same = target.policy is agent.breaker or target.policy == agent.breaker
        return target if same else replace(target, policy=agent.breaker)

    def of_tool(self, tenant: str, tool: ToolSpec) -> BreakerTarget | None:
        """Return the target of a tool; None if the tool asks for no breaker."""
        if tool.breaker is None:
            return None
        target = sha256(tool.target.encode()).hexdigest()[:8]
        name = stream_name("breaker", f"tool.{target}.{stream_safe(tool.name)}", tenant)
        return BreakerTarget(name, None, f"tool {tool.name}", tool.breaker)

    async def know(self, targets: Iterable[BreakerTarget]) -> None:
        """Read those breakers of *targets* that were not read yet; wait if a read is running."""
        for stream in dict.fromkeys(stream for target in targets for stream in target.streams):
            if stream not in self._known:
                async with self._reading:
                    if stream not in self._known:
                        await self._read(stream)

    async def look(self) -> None:
        """Read the new events of the breakers that calls of this host meet."""
        for stream in list(self._known):
            await self._read(stream)

    def admission(self, target: BreakerTarget, key: str, *, early: bool = False) -> Admission:
        """Return whether the call *key* may start now, by this process's view of the breakers."""
        now = self._clock.now()
        for stream in target.streams:
            state = self._known.get(stream, _UNKNOWN).state
            admitted = admission(state, key, now, target.policy, early=early)
            if admitted.answer != "go":
                return admitted
        return admitted

    async def probe(self, target: BreakerTarget, key: str, *, early: bool = False) -> None:
        """Try to acquire the probe for the call *key*; `admission` then shows the result."""
        await self._record(target.dependency, Probe(key, self._clock.now(), early))

    async def record_success(self, target: BreakerTarget, key: str) -> None:
        """Record that the call *key* succeeded."""
        known = self._known.get(target.dependency, _UNKNOWN)
        if known.state.phase == "closed":
            self._known[target.dependency] = replace(known, successes=known.successes + 1)
        else:
            await self._record(target.dependency, Succeed(key, self._clock.now()))

    async def record_failure(
        self, target: BreakerTarget, key: str, kind: str, *, retry_after: float | None = None
    ) -> None:
        """Record that the call *key* failed; *retry_after* holds its model, tool or account."""
        now = self._clock.now()
        if retry_after:
            held = target.streams[0] if kind in OF_ACCOUNT else target.dependency
            await self._record(held, Hold(now, retry_after, kind))
        successes = self._known.get(target.dependency, _UNKNOWN).successes
        failed = Fail(key, kind, now, target.policy, successes, retry_after)
        await self._record(target.dependency, failed)

    async def _record(self, stream: str, command: BreakerCommand) -> None:
        while True:
            known = self._known.get(stream, _UNKNOWN)
            events = [] if known.blind else BREAKER.decide(command, known.state)
            if not events:
                return
            try:
                await self._append(stream, known.version, events)
            except WrongExpectedVersionError:
                await self._read(stream)
                continue
            state = BREAKER.replay(events, known.state)
            self._learn(stream, _KnownBreaker(known.version + len(events), state))
            return

    async def _append(self, stream: str, version: int, events: Sequence[BreakerEvent]) -> None:
        write = FactWrite(
            stream=stream, steps=[events], expected_version=version, actor="system:breaker"
        )
        key = f"{self._incarnation}.{next(self._numbers)}"
        while True:
            try:
                await self._journal.append([write], key)
            except (UnknownOutcomeError, LogUnavailableError):
                # The session's own append will fail too, and it reports that.
                await self._clock.sleep(RETRY_SECONDS)
            else:
                return

    async def _read(self, stream: str) -> None:
        known = self._known.get(stream, _UNKNOWN)
        if known.blind:
            return
        try:
            state, version = await fold(self._journal, stream, BREAKER, known.state, known.version)
        except CuelineError as error:
            if error.retryable:
                raise
            # A breaker that cannot be read blocks nothing.
            self._report(stream, error)
            self._known[stream] = _KnownBreaker(blind=True)
            return
        self._learn(stream, _KnownBreaker(version, state, known.successes))

    def _learn(self, stream: str, read: _KnownBreaker) -> None:
        """Keep the newer of *read* and the known state."""
        if read.version > self._known.setdefault(stream, read).version:
            self._known[stream] = read


def stream_safe(name: str) -> str:
    """Return *name* in the characters of a stream id; different names give different results."""
    told = _OTHER.sub("-", name.lower()).strip("-.")
    if told == name and len(told) <= LONGEST_NAME:
        return told
    digest = sha256(name.encode()).hexdigest()[:8]
    return f"{told[-LONGEST_NAME:].strip('-.')}-{digest}".lstrip("-")
