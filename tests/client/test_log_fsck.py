"""What nobody closes is found in every kind of log, and closed by appends."""

from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from cueline import connect
from cueline.actors.sandbox_life import sandbox_of
from cueline.actors.sandbox_pool import SandboxPool, SandboxWish
from cueline.actors.sandbox_slots import SlotLog
from cueline.client.client import Client
from cueline.client.log_fsck import fsck
from cueline.client.retention import erase
from cueline.client.verify import verify_log
from cueline.deciders.person import Person
from cueline.errors import ForbiddenError, RejectedError, SandboxError
from cueline.events.approval import ApprovalOpened
from cueline.events.budget import BudgetOpened, CostReserved
from cueline.events.codes import Cause
from cueline.events.inbox import MessageSent, StartAsked
from cueline.events.journal import FactWrite
from cueline.events.sandbox import SandboxSpec, SlotFreed
from cueline.events.session import SessionStopped, SessionWaiting
from cueline.events.store import ANY
from cueline.runtime.open_log import open_log
from cueline.runtime.place import Place
from cueline.sandboxes.local import LocalBackend
from cueline.stores import MemoryPresence
from cueline.testing.clock import FakeClock
from cueline.testing.presence_contract import HOST
from cueline.tools.sandbox import sandbox_backend
from tests.gateway.conftest import TOKEN, served
from tests.session_example import AGENT, started

ONE = "session-default/one"
INBOX, BUDGET = "inbox-default/one", "budget-default/one"
APPROVAL = "approval-default/one.1.0.1"
SPEC = SandboxSpec(backend="local")
STOPPED = SessionStopped(by="user")
RESERVED = CostReserved(
    session=ONE, effect="1", attempt=1, epoch=1, tokens=300, usd=Decimal("0.02")
)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    if request.param == "sqlite":
        return str(tmp_path / "log.db")
    return str(request.getfixturevalue("one_server").empty_log("fsck"))


@pytest.fixture
async def log(url):
    async with open_log(url) as opened:
        with closing(opened.backend.open_views()) as views:
            await views.catch_up(opened.store)
        yield opened


class Pool(SandboxPool):
    """A pool that looks after nothing by itself."""

    def _watch(self):
        pass


def pool_of(log):
    return Pool(log.journal(), log.clock, sandbox_backend, on_trouble=print)


def later(log):
    """Return the log as it is an hour later."""
    return replace(log, clock=FakeClock(log.clock.now() + timedelta(hours=1)))


async def say(log, stream, *facts):
    steps = [[each] for each in facts]
    write = FactWrite(stream=stream, steps=steps, expected_version=ANY, actor="test")
    await log.journal().append([write], key=uuid4().hex)


async def begin(log, *facts):
    now = log.clock.now()
    await say(log, INBOX, StartAsked(agent=AGENT, goal="Tidy up.", asked_at=now))
    await say(log, ONE, started(), *facts)


def question(log, *, minutes=30):
    return ApprovalOpened(
        session=ONE,
        effect="1.0",
        digest="d",
        question="may_it_run",
        tool="t",
        arguments={},
        summary="t",
        epoch=1,
        opened_at=log.clock.now(),
        deadline_at=log.clock.now() + timedelta(minutes=minutes),
    )


async def plant_a_question_of_an_ended_session(log):
    await begin(log, STOPPED)
    await say(log, APPROVAL, question(log, minutes=300))


async def plant_a_reservation(log):
    await begin(log, STOPPED)
    await say(log, BUDGET, BudgetOpened(session=ONE, max_tokens=1000), RESERVED)


async def plant_a_sandbox(log):
    await begin(log)
    await pool_of(log).attach(SandboxWish(ONE, SPEC, 0, {}))
    await say(log, ONE, STOPPED)


async def plant_a_sandbox_without_a_slot(log):
    await plant_a_sandbox(log)
    pool = pool_of(log)
    await pool.end(sandbox_of(ONE, 1), "local", "stop")
    freed = SlotFreed(session=ONE, slots=10, at=log.clock.now())
    await SlotLog(log.journal()).decide(freed)


async def plant_a_sandbox_of_an_erased_session(log):
    await plant_a_sandbox(log)
    await erase(Client(log, Place(log.url)), ["one"], reason="")


async def plant_a_slot_alone(log):
    await plant_a_sandbox(log)
    await pool_of(log).end(sandbox_of(ONE, 1), "local", "delete")


async def plant_read_models_that_miss_work(log):
    await begin(log, STOPPED)
    with closing(log.backend.open_views()) as views:
        await views.catch_up(log.store)
        views.db.execute("UPDATE sessions SET status = 'running'")


async def plant_read_models_of_another_past(log):
    await begin(log, STOPPED)
    with closing(log.backend.open_views()) as views:
        await views.catch_up(log.store)
        views.db.execute("UPDATE checkpoint SET position = 70")


@pytest.mark.parametrize(
    ("plant", "kind", "name", "problem"),
    [
        (
            plant_a_question_of_an_ended_session,
            "approval",
            "one.1.0.1",
            "nobody has to answer it any more: its session is stopped",
        ),
        (
            plant_a_reservation,
            "reservation",
            f"{ONE}/1/1",
            "300 tokens and $0.02 are reserved, but its session is stopped",
        ),
        (
            plant_a_sandbox,
            "sandbox",
            "one.1",
            "it is started at the back-end local, but its session is stopped",
        ),
        (
            plant_a_sandbox_without_a_slot,
            "sandbox",
            "one.1",
            "it is stopped at the back-end local, but its session is stopped",
        ),
        (
            plant_a_sandbox_of_an_erased_session,
            "sandbox",
            "one.1",
            "it is started at the back-end local, but the content of its session was erased",
        ),
        (
            plant_a_slot_alone,
            "sandbox",
            "one",
            "it has a slot of the pool of sandboxes, but its session is stopped",
        ),
        (
            plant_read_models_that_miss_work,
            "read_models",
            None,
            "they miss or differ in 1 of 1 sessions, such as one",
        ),
        (
            plant_read_models_of_another_past,
            "read_models",
            None,
            "they are of another past: the log has no such event 70",
        ),
    ],
)
async def test_each_is_found_and_repaired_and_found_no_more(log, plant, kind, name, problem):
    await plant(log)
    before = [event.hash async for event in log.store.read_all()]

    young = await fsck(log)
    found = await fsck(later(log))
    untouched = [event.hash async for event in log.store.read_all()]
    repaired = await fsck(later(log), repair=True)
    after = [event.hash async for event in log.store.read_all()]
    again = await fsck(later(log), repair=True)

    (one,) = found.findings
    assert kind == "read_models" or () == young.findings
    assert (kind, name or str(log.url), problem) == (one.kind, one.name, one.problem)
    assert "`cueline log fsck --repair`" in one.advice
    assert before == untouched
    assert [True] == [each.repaired for each in repaired.findings]
    assert before == after[: len(before)]
    assert () == again.findings
    assert after == [event.hash async for event in log.store.read_all()]
    assert () == (await verify_log(log)).bad


async def test_a_question_after_its_deadline_expires_unless_its_answer_may_be_unread(log):
    cause, until = Cause(code="approval_pending"), log.clock.now() + timedelta(minutes=5)
    await begin(log, SessionWaiting(kind="approval", cause=cause, deadline_at=until))
    await say(log, APPROVAL, question(log))
    sent = MessageSent(text="Yes.")
    in_time = await fsck(log)

    late = await fsck(later(log), repair=True)
    again = await fsck(later(log), repair=True)
    types = [event.type async for event in log.store.read(APPROVAL)]

    assert () == in_time.findings
    (asked, work) = late.findings
    assert ("approval", True, "session", False) == (
        asked.kind,
        asked.repaired,
        work.kind,
        work.repaired,
    )
    assert asked.problem.startswith("nobody answered it before its deadline, 20")
    assert "it is waiting, with work that nobody does since " in work.problem
    assert "`cueline resume one`, or `cueline up` for all" == work.advice
    assert [work] == list(again.findings)
    assert ["ApprovalOpened", "ApprovalExpired"] == types

    await say(log, "approval-default/one.2.0.1", question(log))
    await say(log, INBOX, sent)
    (unread, work) = (await fsck(later(log), repair=True)).findings
    assert (False, "one.2.0.1") == (unread.repaired, unread.name)
    assert "`cueline resume one` reads its messages, with decisions in time" == unread.advice
    assert "messages that nobody has read" in work.problem


async def test_a_sandbox_whose_back_end_fails_stays_a_finding(log, monkeypatch):
    await plant_a_sandbox(log)
    monkeypatch.setattr(LocalBackend, "delete", fails)

    checked = await fsck(later(log), repair=True)

    assert (1, "the repair failed: sandbox one: no disk") == (
        checked.left,
        checked.findings[0].advice,
    )


def fails(self, place):
    raise SandboxError("one", "no disk")


async def test_damage_is_found_and_stays(log):
    await begin(log)
    with closing(log.backend.open_rows(to_write=True)) as rows, rows.changing():
        rows.change("UPDATE events SET payload = NULL, salt = NULL WHERE position = ?", [(2,)])

    checked = await fsck(log, repair=True)

    (damage,) = checked.findings
    assert ("damage", f"{ONE}@1 (position 2)") == (damage.kind, damage.name)
    assert "`cueline log restore BACKUP`" in damage.advice
    assert 1 == checked.left


async def test_who_may_read_may_not_repair(log):
    person = Person("ada", scopes=frozenset({"read"}))

    assert () == (await fsck(replace(log, person=person))).findings
    with pytest.raises(ForbiddenError):
        await fsck(replace(log, person=person), repair=True)


async def test_a_log_behind_a_server_is_checked_there(tmp_path, monkeypatch):
    monkeypatch.setenv("CUELINE_TOKEN", TOKEN)
    async with served(tmp_path / "log.db") as (_, http), connect(str(http.base_url)) as client:
        with pytest.raises(RejectedError, match="only a process that can open the log"):
            await fsck(client.log)


async def test_work_that_a_living_process_does_is_no_finding(log):
    await begin(log)
    (undriven,) = (await fsck(later(log))).findings
    await log.store.acquire(ONE, HOST.incarnation, 0)
    driven = replace(later(log), board=MemoryPresence(later(log).clock))
    await driven.board.beat(HOST)

    assert "session" == undriven.kind
    assert () == (await fsck(driven)).findings


class _Growing:
    """A store to which another process appends while its budgets are read."""

    def __init__(self, log, append):
        self._store, self._log, self._append = log.store, log, append

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def read_all(self, after=0, categories=None, limit=None):
        if categories == ["budget"]:
            await self._append(self._log)
        async for event in self._store.read_all(after, categories, limit):
            yield event


async def reserve_in_a_new_session(log):
    await begin(log)
    await say(log, BUDGET, BudgetOpened(session=ONE, max_tokens=1000), RESERVED)


async def test_the_reservation_of_a_session_that_begins_meanwhile_is_no_finding(log):
    growing = replace(log, store=_Growing(log, reserve_in_a_new_session))

    assert () == (await fsck(growing, repair=True)).findings
    assert 2 == (await log.store.head(BUDGET)).version
