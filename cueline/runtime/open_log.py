"""Opens a log, with the data beside it.

Modules for recording or for a host are imported when they are used, so that `list` is
quick.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cueline.actors.background_task import GRACE_SECONDS, shielded
from cueline.actors.presence import REMOVAL_SECONDS
from cueline.actors.runner_slots import SLOTS, Slots
from cueline.actors.stream_notifier import StreamNotifier
from cueline.clock import Clock, SystemClock
from cueline.config.config_file import DEFAULT_LOG, IDLE_SECONDS
from cueline.config.environment import caller_trace, user_name
from cueline.deciders.heartbeat import HEARTBEAT
from cueline.deciders.person import Person
from cueline.errors import ConfigError, ForbiddenError, LogUnavailableError, UnknownSessionError
from cueline.events.log_url import LogName, LogUrl
from cueline.events.snapshot import NO_SNAPSHOTS, SnapshotStore
from cueline.events.store import Appended, EventStore, PresenceBoard
from cueline.events.stream import DEFAULT_TENANT, session_stream, shown, stream_name, tenant_of

if TYPE_CHECKING:
    from cueline.actors.runner_relay import RelayPort
    from cueline.config.settings import SealSettings, Settings
    from cueline.events.agent import AgentSpec, ToolSpec
    from cueline.events.inbox import InboxMessage, StartAsked
    from cueline.events.journal import Journal
    from cueline.events.message import Arguments
    from cueline.events.sanitize import Redactor
    from cueline.stores.backend import LogBackend, LogServer


Message = TypeVar("Message", bound="InboxMessage")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLog:
    """An open log and the data beside it."""

    backend: "LogBackend"
    store: EventStore
    notifier: StreamNotifier
    board: PresenceBoard
    clock: Clock
    grace_seconds: float = GRACE_SECONDS
    """Time that running effects have to finish after a signal or a stop."""
    idle_seconds: float = IDLE_SECONDS
    """How long a host or runner above the least of its range may be idle before it retires."""
    removal_seconds: float = REMOVAL_SECONDS
    """The silence after which an unreachable runner counts as dead."""
    heartbeat_seconds: float = HEARTBEAT.interval
    """The time between two heartbeats of a registered runner."""
    slots: Slots = SLOTS
    """The slots of each runner."""
    sandbox_slots: int = 10
    """The number of sandboxes that may be started at a time."""
    sandbox_grace_seconds: float = 0.0
    """The time for which the sandbox of a session that waits stays started."""
    seal: "SealSettings | None" = None
    """When the log is sealed by itself; None: never."""
    snapshots: SnapshotStore = NO_SNAPSHOTS
    """The snapshots of the log's sessions."""
    person: Person | None = None
    """Who uses the log; None: the user of this process, who may do everything."""
    traceparent: str = ""
    """The trace and span of whoever sends requests; empty: those of this process."""
    relay: "RelayPort | None" = None
    """The way to runners outside of the cluster; None: this process has none."""

    @property
    def id(self) -> str:
        """The log's unique id."""
        return self.store.log_id

    @property
    def url(self) -> LogUrl:
        """The log's URL."""
        return self.backend.url

    @property
    def server(self) -> "LogServer | None":
        """The server that carries out requests about the log; None: this process does."""
        return getattr(self.backend, "server", None)

    @property
    def user(self) -> str:
        """The name that is recorded with requests."""
        return user_name() if self.person is None else self.person.name

    @property
    def tenant(self) -> str | None:
        """The tenant whose sessions can be reached; None: the whole log."""
        return None if self.person is None else self.person.tenant

    def check_may(self, scope: str, subject: str = "") -> None:
        """Refuse what the person may not do; see `Person.may`.

        Raises:
            ForbiddenError: the person's scopes do not include it.
        """
        if self.person is not None and not self.person.may(scope, subject):
            needed = f"{scope}:{subject}" if subject else scope
            raise ForbiddenError(self.person.name, needed)

    def check_whole(self) -> None:
        """Refuse a question about the whole log to a person of one tenant.

        Raises:
            ForbiddenError: the person reaches the sessions of one tenant.
        """
        if self.tenant is not None:
            raise ForbiddenError(self.user, "read, without a tenant")

    def sees(self, stream: str) -> bool:
        """Whether the person reaches the stream."""
        return self.tenant in (None, tenant_of(stream))

    def session_stream(self, name: str) -> str:
        """Return the stream of the session *name*: an id of the person's tenant, or a stream.

        In a URL, an id of another tenant is written as `tenant:id`.

        Raises:
            InvalidNameError: *name* is neither.
            ConfigError: *name* is no text.
            UnknownSessionError: it is a session of another tenant.
        """
        if not isinstance(name, str):
            raise ConfigError("session", f"{name!r} is no text; an id is text, such as '7f3a'")
        name = name.replace(":", "/", 1)
        if "/" not in name:
            return stream_name("session", name, self.tenant or DEFAULT_TENANT)
        stream = session_stream(name)
        self.check_sees(stream)
        return stream

    def check_sees(self, stream: str) -> None:
        """Refuse the stream of another tenant, as if it did not exist.

        Raises:
            UnknownSessionError: the person does not reach the stream.
        """
        if not self.sees(stream):
            raise UnknownSessionError(shown(stream), f"there is no such session in {self.url}")

    def with_settings(self, settings: "Settings") -> "OpenLog":
        """Return a copy with the times and slots of *settings*."""
        return replace(
            self,
            grace_seconds=settings.grace_seconds,
            idle_seconds=settings.cluster.idle_seconds,
            removal_seconds=settings.cluster.removal_seconds,
            heartbeat_seconds=settings.cluster.heartbeat_seconds,
            slots=Slots(settings.runner.slots, settings.runner.workers),
            sandbox_slots=settings.sandboxes.max_started,
            sandbox_grace_seconds=settings.sandboxes.stop_after_seconds,
            seal=settings.seal,
        )

    def redactor(self, agent: "AgentSpec | None") -> "Redactor":
        """Return a redactor of the agent's secrets."""
        from cueline.agents.secret import redactor_of

        return redactor_of(agent)

    def journal(self, agent: "AgentSpec | None" = None) -> "Journal":
        """Return a journal without the secrets of *agent*."""
        from cueline.events.codec import Codec
        from cueline.events.journal import Journal

        return Journal(self.store, Codec(self.redactor(agent)), self.clock.now, self.snapshots)

    async def ask_start(
        self,
        id: str,  # noqa: A002 - the field's name in the log
        asked: "StartAsked",
        *,
        by: str = "user",
        with_it: "Sequence[InboxMessage]" = (),
    ) -> str:
        """See `inbox.ask_start`; the secrets of the agent are removed first (I11).

        Raises:
            ConfigError: see `check_log_is_out_of_reach`.
        """
        from cueline.actors import inbox
        from cueline.agents.preflight import check_log_is_out_of_reach

        check_log_is_out_of_reach(asked.agent, self.url)
        if asked.parent is None and (caller := self.traceparent or caller_trace()):
            asked = asked.model_copy(update={"traceparent": caller})
        journal = self.journal(asked.agent)
        kept = _sanitized(asked, journal)
        rest = [_sanitized(each, journal) for each in with_it]
        tenant = self.tenant or DEFAULT_TENANT
        return await inbox.ask_start(journal, id, kept, by, with_it=rest, tenant=tenant)

    async def post(
        self,
        stream: str,
        message: "InboxMessage",
        agent: "AgentSpec | None",
        *,
        by: str = "user",
        key: str | None = None,
    ) -> Appended:
        """See `inbox.post`; the secrets of the session's *agent* are removed first (I11)."""
        from cueline.actors import inbox

        journal = self.journal(agent)
        kept = _sanitized(message, journal)
        return await inbox.post(journal, stream, kept, by=by, key=key)

    async def check_edit(
        self, agent: "AgentSpec", tool: "ToolSpec", arguments: "Arguments"
    ) -> None:
        """See `judge_edit`."""
        from cueline.agents.preflight import judge_edit

        await judge_edit(agent, tool, arguments)


def _sanitized(message: Message, journal: "Journal") -> Message:
    """Return *message* without the secrets of *journal*.

    Raises:
        ConfigError: an attachment contains a secret; redaction would break the file.
    """
    from cueline.events.sanitize import sanitize_record

    kept = sanitize_record(message, journal.redactor)
    before, after = (getattr(each, "attachments", ()) for each in (message, kept))
    for was, now in zip(before, after, strict=True):
        if was.data != now.data:
            why = "it holds the value of a secret, which is never recorded; take it out"
            raise ConfigError(now.name or was.media_type, why)
    return kept


@asynccontextmanager
async def open_log(
    log: LogName = DEFAULT_LOG,
    *,
    must_exist: bool = False,
    read_only: bool = False,
    notice: Callable[[str], None] | None = None,
) -> AsyncIterator[OpenLog]:
    """Open the log *log*, and the data beside it.

    Args:
        log: the URL or path of the log.
        must_exist: do not create the log; for reading, a missing log is empty.
        read_only: write nothing to it.
        notice: called if presence is unavailable; without *notice*, the error is raised.

    Raises:
        ConfigError: the URL's scheme is unknown.
        LogUnavailableError: it cannot be used; the message says what to do.
        LogFormatError: another format wrote it.
    """
    from cueline.stores.backend import backend_of

    clock = SystemClock()
    backend = backend_of(log)
    may_come = backend.writer_place != "process"  # another process may create the log
    if read_only and not must_exist and may_come and not backend.exists():
        backend, read_only = backend_of("memory:"), False
    store = backend.open(clock, must_exist=must_exist, read_only=read_only)
    try:
        board = _open_presence(backend, clock, notice)
        opened = OpenLog(
            backend=backend,
            store=store,
            notifier=StreamNotifier(store),
            board=board,
            clock=clock,
            snapshots=backend.open_snapshots(),
        )
        try:
            if opened.server is not None:
                await opened.server.greet()
            yield opened
        finally:
            await board.close()
    finally:
        await shielded(store.close())


def _open_presence(
    backend: "LogBackend", clock: Clock, notice: Callable[[str], None] | None
) -> PresenceBoard:
    """Open the presence board; on failure, call *notice* and return an empty board."""
    from cueline.stores import MemoryPresence

    try:
        return backend.open_presence(clock)
    except LogUnavailableError as error:
        if notice is None:
            raise
        if Path(error.path).exists():  # a backup has no presence board
            notice(f"warning: {error}; whether anybody drives a session is not known")
        return MemoryPresence(clock)
