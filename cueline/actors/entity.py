"""One session, live in memory, one command at a time.

Rule 1. Acquire, then read, then decide. A former owner that still lives must
not append between our read and our first decision (I3).

Rule 2. Decide on a tentative state, append, and only then make it the state.
What was not recorded did not happen (I2).

Rule 3. One append holds everything that is known now: outcomes, what follows
from them, and the starts of what is due next. Two commits make a turn.

Rule 4. An append whose outcome is unknown is asked again as it was; it is never
decided anew.

Theory of operation: state is small and frozen, `evolve` makes a new one, and
the prompt is folded beside it from the same facts. There is no recovery code:
a crash is an entity that was dropped, and the next one asks `due`.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import TypeVar, cast

from msgspec.structs import replace

from cueline.actors import snapshots
from cueline.actors.agent_cache import LoadedAgent
from cueline.actors.background_task import Trouble, shielded
from cueline.actors.event_actor import actor_of
from cueline.actors.inbox import check_asked_for
from cueline.actors.session_tree import notify_parent
from cueline.clock import Clock
from cueline.deciders.prompt import Prompt
from cueline.deciders.session import SessionState, evolve, session_of, step
from cueline.errors import LogUnavailableError, UnknownOutcomeError
from cueline.events.codec import not_redacted
from cueline.events.journal import FactWrite, Journal
from cueline.events.session import SessionEvent
from cueline.events.store import NO_STREAM
from cueline.events.stream import sibling

Answer = TypeVar("Answer")

RETRY_SECONDS = 0.2
"""How long to wait before an append that failed is asked again."""


class PendingAppend:
    """What is about to be recorded, on a tentative state."""

    def __init__(self, state: SessionState) -> None:
        self.state = state
        self.steps: list[Sequence[SessionEvent]] = []

    def take(self, command: SessionEvent) -> bool:
        """Decide on *command*, and say whether anything follows."""
        facts, self.state = step(command, self.state)
        if facts:
            self.steps.append(facts)
        return bool(facts)


class Entity:
    """A session that this process owns, as long as the store agrees."""

    __slots__ = (
        "_after",
        "_clock",
        "_owner",
        "_report",
        "_snapshot",
        "epoch",
        "journal",
        "prompt",
        "state",
        "stream",
        "version",
    )

    def __init__(
        self,
        stream: str,
        owner: str,
        journal: Journal,
        clock: Clock,
        report: Trouble,
    ) -> None:
        self.stream = stream
        self.state = session_of(stream)
        self.prompt = Prompt()
        self.epoch = 0
        self.version = NO_STREAM
        self.journal = journal
        """The agent's own, once it is known."""
        self._after: tuple[str, int] | None = None
        self._owner = owner
        self._clock = clock
        self._report = report
        self._snapshot = NO_STREAM
        """The version of its newest snapshot."""

    async def load(self) -> None:
        """Become the owner and fold the past.

        Raises:
            UnknownSessionError: nobody asked for this session.
            FencedError: somebody else was quicker.
            CorruptEventError: the past cannot be read, or was emptied; an operator restores it.
            UnknownEventTypeError: the past needs a newer cueline.
        """
        store = self.journal.store
        head = await store.head(self.stream)
        if head.version == NO_STREAM:
            # A name that means nothing is not acquired: that would make a stream of it.
            await check_asked_for(store, self.stream)
        self.epoch = await store.acquire(self.stream, self._owner, head.epoch)
        await self._fold(self.stream, None)

    async def inherit(self, parent: str, version: int) -> None:
        """Fold a parent's past up to *version*: this session goes on from there."""
        await self._fold(parent, version)
        self._after = (parent, version)

    def share(self, loaded_agent: LoadedAgent) -> None:
        """Have the agent, and what belongs to it, in memory once for all its sessions."""
        self.journal = loaded_agent.journal
        if self.state.setup is not None:
            setup = replace(self.state.setup, agent=loaded_agent.agent, tools=loaded_agent.tools)
            self.state = replace(self.state, setup=setup)

    async def record(self, steps: PendingAppend, secret_versions: Collection[int] = ()) -> None:
        """Append *steps* and make their state the state.

        The messages of the inbox at *secret_versions* held a secret: they are emptied by the
        append that tells them cleaned (I11).

        Raises:
            FencedError: somebody else owns the session now; drop it.
            WrongExpectedVersionError: likewise.
        """
        if not steps.steps:
            return
        write = FactWrite(
            stream=self.stream,
            steps=steps.steps,
            expected_version=self.version,
            epoch=self.epoch,
            after=self._after,
            actor=actor_of,
            empties=[
                (sibling(self.stream, "inbox"), version)
                for version in secret_versions
                if self.state.inbox_seen < version <= steps.state.inbox_seen
            ],
        )
        writes = [write]
        if steps.state.finished and not self.state.finished:
            told = partial(notify_parent, self.journal, steps.state, steps.steps)
            writes += await self.patiently(told)
        appended = await self.patiently(partial(self.journal.append, writes, None))
        self.version = appended.versions[0]
        self._after = None
        self.state = steps.state
        for facts in steps.steps:
            for fact in facts:
                self.prompt.add(fact)

    async def rest(self) -> None:
        """Have the next who takes the session up begin here, if much came since the last."""
        if self.version - self._snapshot > self.journal.snapshots.every:
            # A command that has its answer ends its host at once.
            await shielded(snapshots.keep(self.journal, self.stream))

    async def patiently(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Ask the log, and again until it answers: what is known stays in memory so long."""
        told = False
        while True:
            try:
                return await ask()
            except (UnknownOutcomeError, LogUnavailableError) as error:
                if not told:
                    self._report(self.stream, error)
                    told = True
                await self._clock.sleep(RETRY_SECONDS)

    async def _fold(self, stream: str, until: int | None) -> None:
        state, version = self.state, NO_STREAM
        folded = await snapshots.newest_with_messages(self.journal, stream, until)
        if folded is not None:
            state = replace(folded.state, stream=self.stream)
            self.prompt = folded.prompt
            version = self.version = folded.version
            if stream == self.stream:
                self._snapshot = version
        async for recorded, fact in self.journal.read(stream, version, until):
            self.version = recorded.version
            event = cast("SessionEvent", not_redacted(recorded, fact))
            state = evolve(state, event)
            self.prompt.add(event)
        self.state = state
