"""One session in memory; it handles one command at a time.

Rule 1. Acquire, then read, then decide. A former owner that still runs must not
append between our read and our first decision (I3).

Rule 2. Decide on a tentative state, append, then make it the state. A fact that was
not recorded has not happened (I2).

Rule 3. One append holds everything known now: outcomes, derived events, and the
starts of the next effects. A turn takes two appends.

Rule 4. An append with unknown outcome is repeated unchanged, never decided again.

Theory of operation: the state is small and frozen; `evolve` makes a new one. The
prompt is folded beside it from the same facts. There is no recovery code: after
a crash, the next entity replays the log and calls `due`.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from typing import Any, TypeVar

from msgspec.structs import replace

from cueline.actors import fold
from cueline.actors.agent_cache import LoadedAgent
from cueline.actors.background_task import Trouble, shielded
from cueline.actors.event_actor import actor_of
from cueline.actors.inbox import check_asked_for
from cueline.actors.rule_failure import folded, held_after, known_facts, pause_of
from cueline.actors.session_log import LOGGER, log_facts
from cueline.actors.session_owner import is_left
from cueline.actors.session_series import next_start
from cueline.actors.session_tree import (
    OutputReader,
    TreeRoom,
    child_writes,
    notify_parent,
    pause_writes,
    stop_writes,
)
from cueline.clock import Clock
from cueline.deciders.prompt import Prompt, calls_after
from cueline.deciders.session import SessionState, evolve, step
from cueline.errors import CuelineError, LogUnavailableError, UnknownOutcomeError
from cueline.events.codec import not_redacted
from cueline.events.journal import FactWrite, Journal
from cueline.events.sanitize import Redactor, sanitize
from cueline.events.session import SessionEvent
from cueline.events.store import NO_STREAM
from cueline.events.stream import shown, sibling

Answer = TypeVar("Answer")

RETRY_SECONDS = 0.2
"""Wait before a failed append is repeated."""


class PendingAppend:
    """The facts of the next append, and the tentative state after them."""

    def __init__(self, state: SessionState) -> None:
        self.state = state
        self.steps: list[Sequence[SessionEvent]] = []
        self.room: TreeRoom | None = None
        """The room in the session's tree, if a call may start a child."""
        self.children = 0
        """The number of children that the facts start."""

    @property
    def facts(self) -> list[SessionEvent]:
        """All facts, in order."""
        return [fact for step in self.steps for fact in step]

    def take(self, command: SessionEvent) -> bool:
        """Decide on *command*; return whether it has events."""
        facts, self.state = step(command, self.state)
        if facts:
            self.steps.append(facts)
            self.children += command.type == "CallDelegated"
        return bool(facts)

    def hold(self, facts: Sequence[SessionEvent], pause: SessionEvent, *, ask: bool) -> None:
        """Add *facts* up to the first whose rules raise, then the later reported facts and *pause*.

        If *ask* is false, no rules are applied: only the reported facts and *pause* are added.
        """
        left = list(facts)
        with suppress(Exception):  # the same error is already the reason of *pause*
            while ask and left:
                self.take(left[0])
                del left[0]
        held = [*known_facts(self.state, left), pause]
        self.steps.append(held)
        self.state = reduce(folded, held, self.state)


class Entity:
    """A session that this process owns, until the store fences it."""

    __slots__ = (
        "_after",
        "_clock",
        "_owner",
        "_read_output",
        "_redactor",
        "_report",
        "_snapshot",
        "epoch",
        "failure",
        "journal",
        "prompt",
        "state",
        "stream",
        "version",
        "was_handed_over",
    )

    def __init__(
        self,
        stream: str,
        owner: str,
        journal: Journal,
        clock: Clock,
        *,
        report: Trouble,
        read_output: OutputReader,
    ) -> None:
        self.stream = stream
        self.state = SessionState(stream=stream)
        self.failure: Exception | None = None
        """The error of the rules; the state is then unreliable."""
        self.epoch = 0
        self.was_handed_over = False
        """Whether the former owner lived, and gave the session up."""
        self.version = NO_STREAM
        self.journal = journal
        """The agent's own journal, once the agent is known."""
        self._after: tuple[str, int] | None = None
        self._owner = owner
        self._clock = clock
        self._read_output = read_output
        self._redactor = Redactor()
        self._report = report
        self._snapshot = NO_STREAM
        """The version of the newest snapshot."""

    async def load(self) -> None:
        """Acquire the session and replay its stream.

        Raises:
            UnknownSessionError: the session was never started.
            FencedError: another process acquired it first.
            CorruptEventError: an event is damaged or redacted; restore the log from a backup.
            UnknownEventTypeError: an event needs a newer cueline.
        """
        store = self.journal.store
        head = await store.head(self.stream)
        if head.version == NO_STREAM:
            # Acquiring an unknown name would create its stream.
            await check_asked_for(store, self.stream)
        self.epoch = await store.acquire(self.stream, self._owner, head.epoch)
        self.was_handed_over = is_left(head.owner)
        try:
            await self._fold(self.stream, None)
        except CuelineError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the rules raise
            self.failure, self.state = error, held_after(self.state, None, error)
            self.version = (await store.head(self.stream)).version

    def check_fold(self) -> None:
        """Raise the error of the rules during the replay."""
        if self.failure is not None:
            raise self.failure

    async def inherit(self, parent: str, version: int) -> None:
        """Replay the parent's stream up to *version*, where this fork begins."""
        await self._fold(parent, version)
        self._after = (parent, version)

    def share(self, loaded_agent: LoadedAgent) -> None:
        """Use the agent's objects that all its sessions share."""
        self.journal, self._redactor = loaded_agent.journal, loaded_agent.redactor
        if self.state.setup is not None:
            setup = replace(self.state.setup, agent=loaded_agent.agent, tools=loaded_agent.tools)
            self.state = replace(self.state, setup=setup)

    async def record(
        self, steps: PendingAppend, secret_versions: Collection[int] = (), *, alone: bool = False
    ) -> None:
        """Append *steps* and make their state the current one.

        The inbox messages at *secret_versions* held a secret; the append that records them
        without the secret redacts them (I11). With *alone*, the only message is one to a parent.

        Raises:
            FencedError: another process owns the session; drop it.
            WrongExpectedVersionError: of the session: as for `FencedError`. Of the tree's
                stream: decide again.
        """
        if not steps.steps:
            return
        setup = steps.state.setup
        root = None if setup is None else shown(setup.family.root or self.stream)
        write = FactWrite(
            stream=self.stream,
            steps=steps.steps,
            expected_version=self.version,
            epoch=self.epoch,
            after=self._after,
            actor=actor_of,
            correlation_id=root,
            empties=[
                (sibling(self.stream, "inbox"), version)
                for version in secret_versions
                if self.state.inbox_seen < version <= steps.state.inbox_seen
            ],
        )
        if alone:
            writes = [write]
            with suppress(Exception):
                writes += pause_writes(self.state, steps.state)
        else:
            writes = [write, *self._writes_to_tree(steps)]
        if self.state.schedule is not None and not alone:
            ask = partial(next_start, self.journal, self.state, steps.state, self._clock.now())
            writes += await self.patiently(ask)
        appended = await self.patiently(partial(self.journal.append, writes, None))
        self.version = appended.versions[0]
        self._after = None
        self.state = steps.state
        if LOGGER.level:
            log_facts(self.stream, root, self.version, steps.steps)
        for facts in steps.steps:
            for fact in facts:
                self.prompt.add(fact)

    async def hold(
        self, facts: Sequence[SessionEvent], error: Exception, secret_versions: Collection[int]
    ) -> None:
        """Record *facts* as far as possible, and a pause because a rule raised *error*.

        Raises:
            FencedError: another process owns the session; drop it.
        """
        before, ask = self.version, self.failure is None
        self.failure = self.failure or error
        pause = sanitize(pause_of(error), self._redactor)[0]
        while True:
            steps = PendingAppend(self.state)
            try:
                steps.hold(facts, pause, ask=ask)
                await self.record(steps, secret_versions, alone=not ask)
            except CuelineError:
                raise
            except Exception:
                if self.version == before:  # else the facts are recorded, and the prompt raised
                    if not ask:
                        raise
                    ask = False
                    continue
            return

    def _writes_to_tree(self, steps: PendingAppend) -> list[FactWrite]:
        """Return the messages to the parent and children for the append of *steps*."""
        before, after = self.state, steps.state
        writes = [] if after.children is before.children else stop_writes(before, after)
        if after.waiting is not before.waiting:
            writes += pause_writes(before, after)
        if steps.room is not None:
            calls = calls_after(self.prompt, steps.facts)
            writes += child_writes(after, steps.facts, calls, steps.room, self._clock.now())
        if after.finished and not before.finished:
            writes += notify_parent(after, steps.facts, self._read_recordable)
        return writes

    def _read_recordable(self, text: str, schema: Mapping[str, Any]) -> tuple[Any, str]:
        """Read an output as JSON, and sanitize it again, because escapes can hide secrets."""
        return sanitize(self._read_output(text, schema), self._redactor)[0]

    async def rest(self) -> None:
        """Write a snapshot if enough events were appended since the last snapshot."""
        if self.version - self._snapshot > self.journal.snapshots.every:
            # Shielded, because a command exits as soon as it has its answer.
            await shielded(fold.keep(self.journal, self.stream))

    async def patiently(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Repeat the request *ask* until the log answers; the state stays in memory meanwhile."""
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
        state, version, self.prompt = self.state, NO_STREAM, Prompt()
        folded = await fold.newest_with_messages(self.journal, stream, until)
        if folded is not None:
            state = replace(folded.state, stream=self.stream)
            self.prompt = folded.prompt
            version = self.version = folded.version
            if stream == self.stream:
                self._snapshot = version
        async for recorded, fact in self.journal.read(stream, version, until):
            self.version = recorded.version
            event: Any = not_redacted(recorded, fact)
            state = evolve(state, event)
            self.prompt.add(event)
        self.state = state
