"""Finds what is left open in a log and will be closed by nobody, and closes it.

A repair only appends: by the rules that the ledger, the gate and the pool of sandboxes use.
"""

import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple, cast

from cueline.actors.approval_gate import ApprovalGate, ApprovalName
from cueline.actors.cost_ledger import CostLedger
from cueline.actors.sandbox_slots import SlotLog
from cueline.actors.session_owner import owners_of
from cueline.client.verify import AuditVerification
from cueline.deciders.budget import BUDGET, BudgetState, Settle
from cueline.errors import CuelineError, LogUnavailableError, RejectedError
from cueline.events.budget import Allowance, BudgetEvent
from cueline.events.status import TERMINAL
from cueline.events.store import from_us, to_us
from cueline.events.stream import session_stream, shown, stream_name, tenant_of
from cueline.projections.read_model import ask
from cueline.projections.sandbox import SandboxRow, list_sandboxes
from cueline.projections.views import Views
from cueline.runtime.actor_factory import sandbox_pool
from cueline.runtime.open_log import OpenLog

Kind = Literal["damage", "read_models", "session", "approval", "reservation", "sandbox"]
LATE: Final = timedelta(seconds=60)
"""How long after its time something is a finding: a running process takes a second."""
_REPAIR: Final = "`cueline log fsck --repair`"
_SESSIONS: Final = """
SELECT stream, status, emptied, due_us, updated_us, inbox_length > inbox_read FROM sessions
"""
_PENDING: Final = "SELECT stream, session, deadline_us FROM approvals WHERE status = 'pending'"
_WORK: Final = "SELECT stream, version, status, due_us FROM sessions"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong in a log, or left open."""

    kind: Kind
    name: str
    """The session, approval, reservation, sandbox, or place in the log."""
    problem: str
    advice: str
    """What to do next; empty: it is repaired."""
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class Fsck:
    """The result of a check."""

    events: int
    streams: int
    findings: tuple[Finding, ...]

    @property
    def left(self) -> int:
        """The number of findings that are not repaired."""
        return sum(not each.repaired for each in self.findings)


class _Session(NamedTuple):
    stream: str
    status: str
    emptied: str
    due_us: int | None
    updated_us: int
    unread: bool


async def fsck(log: OpenLog, *, repair: bool = False) -> Fsck:
    """Check a log and its read models; with *repair*, close what can be closed by an append.

    Processes may use the log meanwhile.

    Raises:
        ForbiddenError: a repair needs the scope `admin`; a check, a person without a tenant.
        RejectedError: the log is behind a server; check it there.
        LogUnavailableError: the log cannot be read.
    """
    log.check_whole()
    log.check_may("admin" if repair else "read")
    if log.server is not None:
        raise RejectedError(str(log.url), "only a process that can open the log can check it")
    rows = AuditVerification(log)
    await rows.run()
    check = _Check(log, repair=repair)
    for bad in rows.bad:
        what = "the other events still load; `cueline log restore BACKUP` brings an earlier state"
        await check.found("damage", bad.place, bad.reason, f"{what}; then check again")
    if not rows.bad:
        await check.run()
    return Fsck(rows.events, rows.streams, tuple(check.findings))


class _Check:
    """One pass over an undamaged log."""

    def __init__(self, log: OpenLog, *, repair: bool) -> None:
        self.findings: list[Finding] = []
        self._log, self._repair = log, repair
        self._late_us = to_us(log.clock.now() - LATE)
        self._sessions: dict[str, _Session] = {}
        self._position = 0
        """The position up to which the sessions are known."""

    async def found(
        self,
        kind: Kind,
        name: str,
        problem: str,
        advice: str,
        mend: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """Note a finding; repair it by *mend* if that is wanted."""
        repaired = False
        if mend is not None and self._repair:
            try:
                await mend()
                repaired, advice = True, ""
            except CuelineError as error:
                advice = f"the repair failed: {error}"
        self.findings.append(Finding(kind, name, problem, advice, repaired))

    async def run(self) -> None:
        """Check the read models, then the streams of sessions, with read models of its own."""
        with (
            tempfile.TemporaryDirectory() as folder,
            closing(Views(Path(folder) / "views.db")) as fresh,
        ):
            await self._check_read_models(fresh)
            self._position = fresh.checkpoint.position
            rows = ask(fresh.db, "sessions", _SESSIONS)
            self._sessions = {row[0]: _Session(*row) for row in rows}
            approvals = ask(fresh.db, "approvals", _PENDING)
            sandboxes = list_sandboxes(fresh.db, with_deleted=False)
        for approval in approvals:
            await self._check_approval(*approval)
        await self._check_reservations()
        await self._check_sandboxes(sandboxes)
        await self._check_work()

    def _over(self, session: str) -> str:
        """Return why nothing of a session goes on; empty if it may, or has just ended."""
        known = self._sessions.get(session)
        if known is None:
            return "there is no such session"
        if known.emptied:
            return f"the content of its session was {known.emptied}"
        is_over = known.status in TERMINAL and known.updated_us < self._late_us
        return f"its session is {known.status}" if is_over else ""

    async def _check_read_models(self, fresh: Views) -> None:
        store = self._log.store
        try:
            opened = self._log.backend.open_views()
        except LogUnavailableError:  # a backup on a disk for reading has none
            await fresh.catch_up(store)
            return
        with closing(opened) as views:
            seen = views.checkpoint
            if await views.belongs_to(store):
                await views.catch_up(store)
                await fresh.catch_up(store)
                if views.checkpoint != fresh.checkpoint:
                    return  # the log grows: there is no moment to compare
                wanted, there = (ask(each.db, "sessions", _WORK) for each in (fresh, views))
                if not (missing := {*map(tuple, wanted)} - {*map(tuple, there)}):
                    return
                some = ", ".join(sorted(shown(row[0]) for row in missing)[:3])
                many = f"{len(missing)} of {len(wanted)} sessions"
                problem = f"they miss or differ in {many}, such as {some}"
            else:
                await fresh.catch_up(store)
                problem = f"they are of another past: the log has no such event {seen.position}"

            async def fill() -> None:
                await views.clear()
                await views.catch_up(store)

            advice = f"{_REPAIR} fills them again from the log"
            await self.found("read_models", str(self._log.url), problem, advice, fill)

    async def _check_approval(self, stream: str, session: str, deadline_us: int) -> None:
        name, gate = ApprovalName(session, shown(stream).rpartition("/")[2]), self._gate
        if over := self._over(session):
            problem = f"nobody has to answer it any more: {over}"
            close = partial(gate.supersede, name, "stop")
            await self.found("approval", shown(stream), problem, f"{_REPAIR} closes it", close)
        elif deadline_us < self._late_us:
            problem = f"nobody answered it before its deadline, {from_us(deadline_us):%F %T} UTC"
            id_ = shown(session)
            if self._sessions[session].unread:
                # A decision that came in time may be among the messages.
                advice = f"`cueline resume {id_}` reads its messages, with decisions in time"
                await self.found("approval", shown(stream), problem, advice)
                return
            expire = partial(gate.expire, name, self._log.clock.now())
            advice = f"{_REPAIR} closes it; `cueline resume {id_}` goes on without it"
            await self.found("approval", shown(stream), problem, advice, expire)

    async def _check_reservations(self) -> None:
        budgets: dict[str, BudgetState] = {}
        async for recorded, fact in self._log.journal().read_all(categories=["budget"]):
            if recorded.position > self._position:
                break  # its session may have begun meanwhile
            state = budgets.get(recorded.stream, BUDGET.initial_state)
            budgets[recorded.stream] = BUDGET.evolve(state, cast("BudgetEvent", fact))
        for budget, state in budgets.items():
            for session, node in state.nodes.items():
                if node.held is None or not (over := self._over(session)):
                    continue
                held, call = node.held.amount, node.held.call
                problem = f"{held.tokens} tokens and ${held.usd} are reserved, but {over}"
                advice = f"{_REPAIR} books them as spent, because the cost of the call is unknown"
                settle = Settle(call, node.epoch, (Allowance(session=session),), None)
                mend = partial(self._ledger.settle, budget, settle)
                await self.found("reservation", str(call), problem, advice, mend)

    async def _check_sandboxes(self, rows: Sequence[SandboxRow]) -> None:
        slots = await SlotLog(self._log.journal()).read()
        held = {each.session: each for each in slots.held}
        pool = sandbox_pool(self._log, on_trouble=lambda *_: None)
        for row in rows:
            session = session_stream(row.session)
            if to_us(row.since) > self._late_us or not (over := self._over(session)):
                continue
            problem = f"it is {row.state} at the back-end {row.backend}, but {over}"
            asked = held.pop(session, None)
            sandbox = stream_name("sandbox", row.id.rpartition("/")[2], tenant_of(session))
            delete = (
                partial(pool.end, sandbox, row.backend, "delete")
                if asked is None
                else partial(pool.look_after, asked)
            )
            await self.found("sandbox", row.id, problem, f"{_REPAIR} deletes it", delete)
        for session, asked in held.items():
            if (over := self._over(session)) and to_us(asked.at) < self._late_us:
                problem = f"it has a slot of the pool of sandboxes, but {over}"
                free = partial(pool.look_after, asked)
                await self.found("sandbox", shown(session), problem, f"{_REPAIR} frees it", free)

    async def _check_work(self) -> None:
        """Find sessions that have work, and no process that does it."""
        due = [
            each
            for each in self._sessions.values()
            if not each.emptied
            and each.due_us is not None
            and max(each.due_us, each.updated_us) < self._late_us
        ]
        streams = [each.stream for each in due]
        log = self._log
        owners = await owners_of(log.store, log.board, streams, log.clock.now())
        for each in due:
            if each.stream in owners:
                continue
            what = "messages that nobody has read" if each.unread else "work that nobody does"
            since = from_us(max(each.due_us or 0, each.updated_us))
            problem = f"it is {each.status}, with {what} since {since:%F %T} UTC"
            advice = f"`cueline resume {shown(each.stream)}`, or `cueline up` for all"
            await self.found("session", shown(each.stream), problem, advice)

    @property
    def _gate(self) -> ApprovalGate:
        return ApprovalGate(self._log.journal())

    @property
    def _ledger(self) -> CostLedger:
        return CostLedger(self._log.journal())
