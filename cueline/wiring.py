"""Where the parts are put together: the log, the actors, and who they talk to.

The command line and the Python API are wired here, by plain calls. The actors
are the same inline and on Ray; only who holds whom differs.
"""

from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cueline.actors import inbox
from cueline.actors.approval_gate import GatePort
from cueline.actors.background_task import shielded
from cueline.actors.cancellation_timers import GRACE_SECONDS
from cueline.actors.cost_ledger import LedgerPort
from cueline.actors.dispatcher import Work
from cueline.actors.host_dependencies import HostDependencies, RunnerDirectory
from cueline.actors.slot import SLOTS, Slots
from cueline.actors.stream_notifier import StreamNotifier
from cueline.clock import Clock, SystemClock
from cueline.config.config_file import DEFAULT_LOG
from cueline.environment import HERE
from cueline.errors import LogUnavailableError
from cueline.events.agent import AgentSpec, Hook, ToolSpec
from cueline.events.codec import Codec
from cueline.events.inbox import InboxMessage, SecretsWaived, StartAsked
from cueline.events.journal import Journal
from cueline.events.log_url import LogName, LogUrl
from cueline.events.message import Arguments
from cueline.events.sanitize import Redactor, sanitize
from cueline.events.session import WaitKind
from cueline.events.snapshot import NO_SNAPSHOTS, SnapshotStore
from cueline.events.store import Appended, EventStore, PresenceBoard
from cueline.hook import run_hook
from cueline.preflight import check_log_is_out_of_reach, judge_edit
from cueline.projections.session import due_work, running, waiting
from cueline.projections.views import Views
from cueline.secret import check_secrets, redactor_of, secret_names

if TYPE_CHECKING:
    from cueline.config.settings import Settings
    from cueline.stores.backend import LogBackend

PAGE = 1000
"""So many sessions with work are read at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLog:
    """An open log and what belongs beside it."""

    backend: "LogBackend"
    store: EventStore
    notifier: StreamNotifier
    board: PresenceBoard
    clock: Clock
    grace_seconds: float = GRACE_SECONDS
    """What is in flight may finish for so long, after a signal or a stop."""
    slots: Slots = SLOTS
    """Of each runner."""
    snapshots: SnapshotStore = NO_SNAPSHOTS
    """Of its sessions."""

    @property
    def id(self) -> str:
        """The log's own, which no other has."""
        return self.store.log_id

    @property
    def url(self) -> LogUrl:
        """What it is called."""
        return self.backend.url

    def with_settings(self, settings: "Settings") -> "OpenLog":
        """Return it with what *settings* say of grace and slots."""
        slots = Slots(settings.runner.slots, settings.runner.workers)
        return replace(self, grace_seconds=settings.grace_seconds, slots=slots)

    def redactor(self, agent: AgentSpec | None) -> Redactor:
        """Return what takes the secrets of *agent* out."""
        return redactor_of(agent)

    def journal(self, agent: AgentSpec | None = None) -> Journal:
        """Return the log in facts, cleaned of the secrets of *agent*."""
        return Journal(self.store, Codec(self.redactor(agent)), self.clock.now, self.snapshots)

    async def ask_start(
        self,
        id: str,  # noqa: A002 - the word of the log
        asked: StartAsked,
        *,
        by: str = "user",
        waived: SecretsWaived | None = None,
    ) -> str:
        """See `inbox.ask_start`; the secrets of its agent are taken out first (I11).

        Raises:
            ConfigError: see `check_log_is_out_of_reach`.
        """
        check_log_is_out_of_reach(asked.agent, self.url)
        kept, _ = sanitize(asked, self.redactor(asked.agent))
        return await inbox.ask_start(self.journal(asked.agent), id, kept, by=by, waived=waived)

    async def post(
        self,
        stream: str,
        message: InboxMessage,
        agent: AgentSpec | None,
        *,
        by: str = "user",
        key: str | None = None,
    ) -> Appended:
        """See `inbox.post`; the secrets of the session's *agent* are taken out first (I11)."""
        kept, _ = sanitize(message, self.redactor(agent))
        return await inbox.post(self.journal(agent), stream, kept, by=by, key=key)

    async def check_edit(self, agent: AgentSpec, tool: ToolSpec, arguments: Arguments) -> None:
        """See `judge_edit`."""
        await judge_edit(agent, tool, arguments)


def collaborators(
    log: OpenLog, runners: RunnerDirectory, gate: GatePort, ledger: LedgerPort
) -> HostDependencies:
    """Return whom a session host works with."""
    from cueline.providers.factory import account_names, model_factory
    from cueline.providers.prices import bound, cost_of
    from cueline.tools.arguments import check_call
    from cueline.tools.estimate import estimate
    from cueline.tools.preview import preview

    async def tell(agent: AgentSpec, hook: Hook, news: bytes) -> str | None:
        return await run_hook(hook, news, HERE, hidden=secret_names(agent))

    return HostDependencies(
        clock=log.clock,
        journal=log.journal,
        redactor=log.redactor,
        check_secrets=check_secrets,
        models=model_factory(HERE, log.clock.sleep),
        runners=runners,
        gate=gate,
        check_call=check_call,
        estimate=estimate,
        preview=partial(preview, str(log.url), log.backend.files()),
        tell=tell,
        price=cost_of,
        ledger=ledger,
        bound=bound,
        grace_seconds=log.grace_seconds,
        slots=log.slots,
        account=account_names(HERE, salt=log.id),
    )


class ViewsIndex:
    """The work that the read models know of, brought up to date by whoever asks."""

    def __init__(self, views: Views, store: EventStore) -> None:
        self._views = views
        self._store = store

    async def due(self, now: datetime) -> AsyncIterator[Sequence[Work]]:
        """See `WorkIndex.due`."""
        await self._views.catch_up(self._store)
        rows = due_work(self._views.db, now, limit=PAGE)
        while rows:
            yield [Work(row.stream, row.unread > 0) for row in rows]
            rows = due_work(self._views.db, now, after=rows[-1], limit=PAGE)

    async def driven(self) -> Sequence[str]:
        """See `WorkIndex.driven`."""
        await self._views.catch_up(self._store)
        return running(self._views.db)

    async def waiting(self, kind: WaitKind) -> Sequence[str]:
        """See `WorkIndex.waiting`."""
        await self._views.catch_up(self._store)
        return waiting(self._views.db, kind)

    def close(self) -> None:
        """See `WorkIndex.close`."""
        self._views.close()


class Placement(Protocol):
    """Where sessions are driven: this process, or a cluster."""

    async def place(self, streams: Collection[str]) -> None:
        """Give sessions to a host, or have those that live look into their inbox."""
        ...


class KnownPlacement(Placement, Protocol):
    """A place of which is known what belongs to it."""

    @property
    def is_dedicated(self) -> bool:
        """Whether it goes on with its sessions as long as whoever opened it lives."""
        ...

    def has(self, incarnation: str | None) -> bool:
        """Whether this is one of its hosts."""
        ...

    def settled(self, stream: str) -> Coroutine[object, object, None] | None:
        """Return what waits until a host in this process has let go of a session it drives."""
        ...


@asynccontextmanager
async def open_log(
    log: LogName = DEFAULT_LOG,
    *,
    must_exist: bool = False,
    read_only: bool = False,
    notice: Callable[[str], None] | None = None,
) -> AsyncIterator[OpenLog]:
    """Open the log of that URL, or at that path.

    Args:
        log: its URL or path.
        must_exist: do not make one; to read, one that is not there is an empty log.
        read_only: nothing is written to it.
        notice: told if nobody can say which processes live; without it that is an error.

    Raises:
        ConfigError: no log is known by such a URL.
        LogUnavailableError: it cannot be used; the message says what to do.
        LogFormatError: another format wrote it.
    """
    from cueline.stores.backend import backend_of

    clock = SystemClock()
    backend = backend_of(log)
    may_come = backend.writer_place != "process"  # by another process
    if read_only and not must_exist and may_come and not backend.exists():
        backend, read_only = backend_of("memory:"), False
    store = backend.open(clock, must_exist=must_exist, read_only=read_only)
    try:
        board = _open_presence(backend, clock, notice)
        try:
            yield OpenLog(
                backend=backend,
                store=store,
                notifier=StreamNotifier(store),
                board=board,
                clock=clock,
                snapshots=backend.open_snapshots(),
            )
        finally:
            await board.close()
    finally:
        await shielded(store.close())


def _open_presence(
    backend: "LogBackend", clock: Clock, notice: Callable[[str], None] | None
) -> PresenceBoard:
    """Open the board of who lives; with a *notice* an empty one if that cannot be used."""
    from cueline.stores import MemoryPresence

    try:
        return backend.open_presence(clock)
    except LogUnavailableError as error:
        if notice is None:
            raise
        if Path(error.path).exists():  # beside a backup there is none
            notice(f"warning: {error}; whether anybody drives a session is not known")
        return MemoryPresence(clock)
