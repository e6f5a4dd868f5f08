"""Returns the state of one session: its row, its driver, and its unread messages."""

from dataclasses import asdict, dataclass, fields
from datetime import datetime
from decimal import Decimal

from cueline.actors.inbox import Unread, asked_agent, unread_of
from cueline.actors.session_owner import owner_of, silent_owner
from cueline.actors.session_tree import read_start_request
from cueline.client.history import History
from cueline.client.open_read_models import Notice, is_far_behind, print_notice, read_models
from cueline.client.question import approval_of, is_decided
from cueline.client.remote import read_as
from cueline.client.rows import with_drivers
from cueline.errors import UnknownSessionError
from cueline.events.inbox import RaiseAsked, StopAsked
from cueline.events.message import Usage
from cueline.events.sanitize import sanitize
from cueline.events.store import Presence
from cueline.events.stream import shown, tenant_of
from cueline.projections.approval import PendingRow, pending_approvals
from cueline.projections.cost import Descendant, descendants
from cueline.projections.session import SessionRow, find_session
from cueline.projections.summary import Summary
from cueline.runtime.open_log import OpenLog
from cueline.runtime.up_record import find_up

UnreadMessages = Unread
BEHIND = 10_000
"""The most missing events for which the read models are brought up to date."""


@dataclass(frozen=True, slots=True)
class Driver:
    """A living process that drives a session."""

    pid: int
    machine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDetails(SessionRow):
    """The row of one session, with its driver, questions and descendants."""

    driver: Driver | None
    up: bool
    """Whether a `cueline up` runs the sessions of the log."""
    questions: tuple[PendingRow, ...]
    """The session's open questions."""
    descendants: int
    descendants_cost: Decimal
    tree: tuple["TreeSession", ...]
    """The descendants, each after its parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeSession:
    """A descendant of a session."""

    id: str
    depth: int
    """The depth below that session, from 1."""
    agent: str
    status: str
    cost: Decimal
    """The cost of the session without its children, in US dollars."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverStatus:
    """The driver of a session, and its unread messages."""

    driver: Driver | None
    silence: str | None
    """The process that should run the session, and has been silent for long."""
    up: bool
    unread: Unread
    """The unread messages of a session without a driver, without secrets."""
    decided: frozenset[str] = frozenset()
    """The questions that these messages answer."""
    enough: bool = False
    """Whether the session continues without another message, because of the unread ones."""
    starts_at: datetime | None = None
    """The time of a later start, if no host has loaded the session."""


async def session_details(
    log: OpenLog, stream: str, *, notice: Notice = print_notice
) -> SessionDetails:
    """Return the details of a session without reading its stream.

    Raises:
        CorruptEventError: the log is damaged before the session's last event.
        LogUnavailableError: the log cannot be read.
    """
    async with read_models(log, notice) as models:
        row = find_session(models.db, stream)
        if models.damage is not None:
            raise models.damage
        if row is None:
            raise UnknownSessionError(shown(stream), f"there is no such session in {log.url}")
        below = descendants(models.db, stream)
        questions = tuple(pending_approvals(models.db, stream))
        (told,) = await with_drivers(log, (row,))
    return SessionDetails(
        **{each.name: getattr(told, each.name) for each in fields(SessionRow)},
        driver=_driver(await owner_of(log.store, log.board, stream, log.clock.now())),
        up=find_up(log.url) is not None,
        questions=questions,
        descendants=len(below),
        descendants_cost=sum((each.cost for each in below), Decimal(0)),
        tree=tuple(map(_tree_session, below)),
    )


async def driver_status(log: OpenLog, history: History) -> DriverStatus:
    """Return the driver of a session, and its unread messages."""
    stream, now, state = history.stream, log.clock.now(), history.state
    owner = await owner_of(log.store, log.board, stream, now)
    silence = await silent_owner(log.store, log.board, stream, now)
    up = find_up(log.url) is not None
    unread: Unread = []
    if owner is None and not up and not state.finished and history.damage is None:
        agent = state.agent if state.setup is not None else await asked_agent(log.journal(), stream)
        redactor = log.redactor(agent)
        unread = [
            (recorded, sanitize(said, redactor)[0])
            for recorded, said in await unread_of(log.journal(), state)
        ]
    known = state.setup is not None or history.damage is not None
    begun = None if known else await read_start_request(log.journal(), stream)
    goes_on = any(isinstance(said, StopAsked | RaiseAsked) for _, said in unread)
    return DriverStatus(
        driver=_driver(owner),
        silence=silence,
        up=up,
        unread=unread,
        decided=frozenset(await _decided(log, history, unread)),
        enough=state.status == "idle" or goes_on,
        starts_at=begun.schedule.at if begun is not None and begun.schedule else None,
    )


async def sums_of(
    log: OpenLog, stream: str, *, notice: Notice = print_notice
) -> tuple[Summary | None, list[TreeSession]]:
    """Return the usage of a session, and its descendants, each after its parent.

    None if the read models are far behind, so that this would take long.
    """
    row: SessionRow | None
    if log.server is not None:
        told = await log.server.call("show", {"session": shown(stream)})
        row = details = read_as(told, SessionDetails)
        below = list(details.tree)
    elif await is_far_behind(log, BEHIND):
        return None, []
    else:
        async with read_models(log, notice) as models:
            row = find_session(models.db, stream)
            below = list(map(_tree_session, descendants(models.db, stream)))
    if row is None:
        return None, below
    inherited = Summary(turns=row.inherited_turns, cost=row.inherited_cost)
    tally = Summary(
        turns=row.turns,
        tool_calls=row.tool_calls,
        usage=Usage(**asdict(row.tokens)),
        cost=row.cost,
        estimated=row.estimated_cost,
        assumed=row.assumed_cost,
        unpriced=row.unpriced,
        partial=row.partial,
        began_at=row.started_at,
        updated_at=row.updated_at,
        inherited=inherited if row.inherited_turns else None,
    )
    return tally, below


async def _decided(log: OpenLog, history: History, unread: Unread) -> set[str]:
    """Return the questions that *unread* decides."""
    if not unread:
        return set()
    journal, tenant = log.journal(), tenant_of(history.stream)
    approvals = {
        name: await approval_of(journal, f"{tenant}/{name}") for name in history.state.questions
    }
    return {name for name, approval in approvals.items() if is_decided(name, approval, unread)}


def _tree_session(row: Descendant) -> TreeSession:
    return TreeSession(
        id=shown(row.stream), depth=row.depth, agent=row.agent, status=row.status, cost=row.cost
    )


def _driver(owner: Presence | None) -> Driver | None:
    return None if owner is None else Driver(owner.pid, owner.machine)
