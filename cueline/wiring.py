"""Where the parts are put together: the log, the actors, and who they talk to.

The command line and the Python API are wired here, by plain calls. The actors
are the same inline and on Ray; only who holds whom differs.
"""

from collections.abc import AsyncIterator, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from cueline.actors import inbox
from cueline.actors.approval_gate import GatePort
from cueline.actors.background import to_the_end
from cueline.actors.collaborator import Collaborators, RunnerDirectory
from cueline.actors.cost_ledger import LedgerPort
from cueline.actors.dispatcher import Work
from cueline.actors.grace import GRACE_SECONDS
from cueline.actors.lookout import Lookout
from cueline.actors.presence import machine_name
from cueline.actors.slot import SLOTS, Slots
from cueline.agent import Agent, secret_names, secret_values
from cueline.clock import Clock, SystemClock
from cueline.config.place import DEFAULT_LOG
from cueline.deciders.policy import NOT_ESTIMATED, Judgement, judge
from cueline.deciders.session.accepted import with_tools
from cueline.environment import HERE
from cueline.errors import ConfigError
from cueline.events.agent import (
    AgentSpec,
    Fallback,
    Hook,
    Limits,
    ToolSpec,
    Workspace,
    each_model,
)
from cueline.events.budget import Allowance
from cueline.events.clean import Redactor, clean
from cueline.events.codec import Codec
from cueline.events.inbox import InboxMessage, SecretsWaived, StartAsked
from cueline.events.journal import Journal
from cueline.events.message import Arguments
from cueline.events.session import WaitKind
from cueline.events.store import Appended, EventStore, PresenceBoard
from cueline.hook import run_hook
from cueline.projections.session import due_work, running, waiting
from cueline.projections.views import Views
from cueline.secret import check_secrets

PAGE = 1000
"""So many sessions with work are read at a time."""
_Asks = TypeVar("_Asks", AgentSpec, Fallback)


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """An open log and what belongs beside it."""

    path: Path
    store: EventStore
    lookout: Lookout
    board: PresenceBoard
    clock: Clock
    grace_seconds: float = GRACE_SECONDS
    """What is in flight may finish for so long, after a signal or a stop."""
    slots: Slots = SLOTS
    """Of each runner."""
    id: str = ""
    """The log's own, which no other has."""

    def redactor(self, agent: AgentSpec | None) -> Redactor:
        """Return what takes the secrets of *agent* out."""
        return Redactor(secret_values(secret_names(agent), HERE))

    def journal(self, agent: AgentSpec | None = None) -> Journal:
        """Return the log in facts, cleaned of the secrets of *agent*."""
        return Journal(self.store, Codec(self.redactor(agent)), self.clock.now)

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
        check_log_is_out_of_reach(asked.agent, self.path)
        kept, _ = clean(asked, self.redactor(asked.agent))
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
        kept, _ = clean(message, self.redactor(agent))
        return await inbox.post(self.journal(agent), stream, kept, by=by, key=key)

    async def check_edit(self, agent: AgentSpec, tool: ToolSpec, arguments: Arguments) -> None:
        """See `judged_edit`."""
        await judged_edit(agent, tool, arguments)


async def judged_edit(agent: AgentSpec, tool: ToolSpec, arguments: Arguments) -> Judgement:
    """Judge a call of *tool* with other *arguments*, also as to what they will cost.

    Raises:
        ConfigError: they do not fit the tool, or a rule denies them.
    """
    from cueline.tools.arguments import check_call
    from cueline.tools.estimate import estimate

    if (problem := check_call(tool, arguments)) is not None:
        raise ConfigError("the edit", problem)
    cost = await estimate(tool, arguments) if tool.estimates else NOT_ESTIMATED
    judged = judge(agent.policy, tool, arguments, estimate=cost, workspace=agent.workspace)
    if judged.answer == "deny":
        raise ConfigError("the edit", f"a rule denies it ({judged.rule})")
    return judged


def recorded(
    agent: Agent, environ: Mapping[str, str] = HERE, *, waived: Collection[str] = ()
) -> AgentSpec:
    """Return *agent* as it will be recorded, checked before anything is.

    A scripted agent's script goes along, so that resuming needs no file. Secrets
    that are *waived* need not be known here.

    Raises:
        ConfigError: mend the setting, file or variable it names.
        ToolImportError: make the tool importable where it will run.
    """
    from cueline.providers.factory import check_agent

    spec = _with_script(agent.spec())
    spec = spec.model_copy(update={"fallback": tuple(map(_with_script, spec.fallback))})
    check_agent(spec, environ)
    check_limits(spec, ())
    _check_workspace(spec)
    check_secrets(spec, waived, environ)
    return spec


def _check_workspace(spec: AgentSpec) -> None:
    """Refuse an agent whose tools have no folder to work in.

    Raises:
        ConfigError: name or make the folder.
    """
    needing = [tool.name for tool in spec.tools if tool.needs_workspace]
    if spec.workspace is None:
        if needing:
            tools = ", ".join(needing)
            raise ConfigError(
                spec.name,
                f"it has no workspace for {tools}; "
                "name a folder as its `workspace`, or with --workspace",
            )
        return
    _check_folder(spec.workspace)


def _check_folder(place: Workspace) -> None:
    """Refuse a workspace that is not there: each call that needs it would fail.

    Raises:
        ConfigError: make the folder, or bring it back.
    """
    if place.machine == machine_name() and not Path(place.path).is_dir():
        raise ConfigError(place.path, "the workspace is not a folder; make it first")


def check_log_is_out_of_reach(agent: AgentSpec, log: Path) -> None:
    """Refuse a workspace in which the file tools reach the *log* itself.

    Raises:
        ConfigError: the message says where to put the log.
    """
    from cueline.tools.log_reach import LOG_FOLDER, log_within, names_log_folder

    place = agent.workspace
    if place is None or place.machine != machine_name():
        return
    if not all(names_log_folder(found.parts) for found in log_within(place, log)):
        raise ConfigError(
            str(log),
            f"the log is inside the workspace {place.path}, where tools can destroy it; "
            f"name a log outside of it, or in a folder `{LOG_FOLDER}`, which no file tool touches",
        )


def check_recorded(agent: AgentSpec, log: Path, *, waived: Collection[str]) -> None:
    """Refuse to go on with an agent that cannot run here (any more), on *log*.

    Secrets that are *waived* need not be known here.

    Raises:
        ConfigError: mend the setting, folder or variable that it names.
        ToolChangedError: accept the tools that have changed, or put them back.
        ToolImportError: make the tool importable again.
    """
    from cueline.providers.factory import check_recorded_agent
    from cueline.tools.recorded import check_unchanged

    check_recorded_agent(agent, HERE)
    check_secrets(agent, waived)
    check_unchanged(agent.name, agent.tools)
    if agent.workspace is not None:
        _check_folder(agent.workspace)
    check_log_is_out_of_reach(agent, log)


def check_resumed(
    agent: AgentSpec, log: Path, *, waived: Collection[str], accept_changed_tools: bool
) -> tuple[ToolSpec, ...]:
    """Do as `check_recorded` does; return the tools that have changed, where that is accepted.

    Raises what `check_recorded` raises.
    """
    from cueline.tools.recorded import changed_since

    tools = changed_since(agent.tools) if accept_changed_tools else ()
    check_recorded(with_tools(agent, tools), log, waived=waived)
    return tools


def check_limits(spec: AgentSpec, allowances: Sequence[Allowance]) -> None:
    """Check that the limits of *spec*, and those of the sessions above it, can be kept.

    Raises:
        ConfigError: mend the limit or the price that it names.
    """
    from cueline.providers.prices import check_prices, check_room

    limits: list[Limits | Allowance] = [spec.limits, *allowances]
    money_limited = any(each.max_cost is not None for each in limits)
    for asking in each_model(spec):
        check_prices(asking, money_limited=money_limited)
        check_room(asking)


def _with_script(asks: _Asks) -> _Asks:
    from cueline.providers.scripted import record_script

    if asks.provider != "scripted" or "script" in asks.parameters:
        return asks
    script = Path(asks.model)
    parameters = record_script(asks.parameters, script)
    # The text is kept; where it once lay tells nobody anything.
    return asks.model_copy(update={"parameters": parameters, "model": script.name})


def collaborators(
    log: Log, runners: RunnerDirectory, gate: GatePort, ledger: LedgerPort
) -> Collaborators:
    """Return whom a session host works with."""
    from cueline.providers.factory import account_names, model_factory
    from cueline.providers.prices import bound, cost_of
    from cueline.tools.arguments import check_call
    from cueline.tools.estimate import estimate
    from cueline.tools.preview import preview

    async def tell(agent: AgentSpec, hook: Hook, news: bytes) -> str | None:
        return await run_hook(hook, news, HERE, hidden=secret_names(agent))

    return Collaborators(
        clock=log.clock,
        journal=log.journal,
        redactor=log.redactor,
        check_secrets=check_secrets,
        models=model_factory(HERE, log.clock.sleep),
        runners=runners,
        gate=gate,
        check_call=check_call,
        estimate=estimate,
        preview=partial(preview, log.path),
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


class Place(Protocol):
    """Where sessions are driven: this process, or a cluster."""

    async def place(self, streams: Collection[str]) -> None:
        """Give sessions to a host, or have those that live look into their inbox."""
        ...


class KnownPlace(Place, Protocol):
    """A place of which is known what belongs to it."""

    @property
    def lasts(self) -> bool:
        """Whether it goes on with its sessions as long as whoever opened it lives."""
        ...

    def has(self, incarnation: str | None) -> bool:
        """Whether this is one of its hosts."""
        ...

    def settled(self, stream: str) -> Coroutine[object, object, None] | None:
        """Return what waits until a host in this process has let go of a session it drives."""
        ...


@asynccontextmanager
async def open_log(path: Path = DEFAULT_LOG, *, must_exist: bool = False) -> AsyncIterator[Log]:
    """Open the log at *path*.

    Raises:
        LogUnavailableError: it cannot be used; the message says what to do.
        LogFormatError: another format wrote it.
    """
    from cueline.stores import SqliteStore
    from cueline.stores.presence import SqlitePresence

    clock = SystemClock()
    store = SqliteStore.open(path, clock, must_exist=must_exist)
    try:
        # Never in the log's own file: presence is volatile, and thrown away when damaged.
        board = SqlitePresence.beside(path, clock)
        try:
            yield Log(
                path=path,
                store=store,
                lookout=Lookout(store),
                board=board,
                clock=clock,
                id=store.log_id,
            )
        finally:
            await board.close()
    finally:
        await to_the_end(store.close())
