"""Which sessions somebody has to look at: the read model and the fake agree."""

from datetime import timedelta

import pytest

from cueline.deciders.matching import Offer, Unmet
from cueline.events.agent_parts import Demands
from cueline.events.codes import Cause
from cueline.events.inbox import MessageSent, PauseAsked, StopAsked
from cueline.events.session import (
    MessageReceived,
    MessageRefused,
    ModelRequested,
    SessionCompleted,
    SessionContinued,
    SessionIdle,
    SessionTakenOver,
    SessionWaiting,
)
from cueline.events.start import Run, Schedule
from cueline.events.stream import shown
from cueline.projections.session import _CAUSES, _WAITING
from cueline.runtime.work_index import ViewsIndex
from cueline.testing.fakes import FoldedIndex

A = "session-default/a"
TAKEN = SessionTakenOver(epoch=2, at="2026-03-02T00:00:00Z")
AGAIN = ModelRequested(effect="2.m", attempt=1, digest="", prefix_digest="")
ON = SessionContinued(by="message")


def waiting(kind, deadline_at=None):
    return SessionWaiting(kind=kind, cause=Cause(code="asked"), deadline_at=deadline_at)


def stopping(log):
    return MessageReceived(inbox_version=2, recorded_at=log.moment, message=StopAsked())


async def due(log, seconds=0):
    """Return what both indexes of the log say, if they say the same."""
    now = log.moment + timedelta(seconds=seconds)
    indexes = ViewsIndex(log.views, log.store), FoldedIndex(log.journal)
    real, fake = [await all_work(index, now) for index in indexes]
    assert real == fake
    return [work.stream for work in real]


async def all_work(index, now):
    """Return all sessions with work, those of a passed deadline first."""
    found = [work async for page in index.overdue(now) for work in page]
    after = ""
    while page := await index.pending(after):
        found += page
        after = page[-1].stream
    return found


async def test_a_session_that_was_asked_for_has_work(log, facts):
    await log.ask("a", facts.ASKED)

    assert [A] == await due(log)


@pytest.mark.parametrize("told", [ON, AGAIN, TAKEN])
async def test_a_running_session_may_have_work(told, log, facts):
    await log.tell("a", facts.STARTED, told)

    assert [A] == await due(log)


async def test_a_stopping_session_may_have_work(log, facts):
    await log.tell("a", facts.STARTED, waiting("retry"), stopping(log))

    assert [A] == await due(log)


async def test_a_stopping_session_that_waits_has_work_at_its_deadline(log, facts):
    deadline = log.moment + timedelta(seconds=60)
    await log.ask("a", facts.ASKED, StopAsked())
    await log.tell("a", facts.STARTED, stopping(log), waiting("runner", deadline))

    assert [] == await due(log)
    assert [A] == await due(log, seconds=60)


@pytest.mark.parametrize("told", [waiting("operator"), SessionIdle(), SessionCompleted(result="")])
async def test_a_session_at_rest_has_none(told, log, facts):
    await log.ask("a", facts.ASKED)
    await log.tell("a", facts.STARTED, told)

    assert [] == await due(log, seconds=10**6)


@pytest.mark.parametrize("told", [waiting("operator"), SessionIdle(), SessionCompleted(result="")])
async def test_a_message_makes_work_until_it_is_answered(told, log, facts):
    await log.ask("a", facts.ASKED)
    await log.tell("a", facts.STARTED, told)
    await log.ask("a", MessageSent(lane="note", text="hello"))
    assert [A] == await due(log)

    refused = {"inbox_version": 2, "recorded_at": log.moment, "refusal": {"code": "session_ended"}}
    await log.tell("a", MessageRefused(message=PauseAsked(), **refused))

    assert [] == await due(log)


async def test_a_deadline_makes_work_when_it_has_passed(log, facts):
    deadline = log.moment + timedelta(seconds=60)
    await log.tell("a", facts.STARTED, waiting("retry", deadline))

    assert [] == await due(log, seconds=58)
    assert [A] == await due(log, seconds=60)


async def test_the_nearest_deadline_comes_first(log, facts):
    for name, seconds in (("late", 60), ("soon", 30), ("now", 0)):
        deadline = log.moment + timedelta(seconds=seconds)
        await log.tell(name, facts.STARTED, waiting("retry", deadline))

    found = await due(log, seconds=100)

    assert ["now", "soon", "late"] == [stream.removeprefix("session-default/") for stream in found]


async def test_only_a_session_with_unread_messages_says_so(log, facts):
    await log.ask("asked", facts.ASKED)
    await log.ask("driven", facts.ASKED)
    await log.tell("driven", facts.STARTED)

    now = log.moment
    for index in (ViewsIndex(log.views, log.store), FoldedIndex(log.journal)):
        found = await all_work(index, now)
        assert {"asked": True, "driven": False} == {
            work.stream.removeprefix("session-default/"): work.unread for work in found
        }


async def test_work_comes_in_pages(log, facts, monkeypatch):
    monkeypatch.setattr("cueline.runtime.work_index.PAGE", 2)
    for number in range(5):
        await log.ask(f"s{number}", facts.ASKED)

        await log.ask(f"t{number}", facts.ASKED)
        await log.tell(f"t{number}", facts.STARTED, waiting("retry", log.moment))
    index = ViewsIndex(log.views, log.store)

    overdue = [page async for page in index.overdue(log.moment)]

    assert [2, 2, 1] == [len(page) for page in overdue]
    assert [f"session-default/t{n}" for n in range(5)] == [w.stream for p in overdue for w in p]
    first, last = [await index.pending(after) for after in ("", "session-default/s3")]
    assert ["session-default/s0", "session-default/s1"] == [work.stream for work in first]
    assert ["session-default/s4"] == [work.stream for work in last]
    assert [] == await index.pending("session-default/s4")


@pytest.mark.parametrize("kind", ["runner", "retry"])
async def test_who_waits_for_something_and_who_runs_is_found_alike(kind, log, facts):
    await log.tell("a", facts.STARTED, waiting(kind))
    await log.tell("b", facts.STARTED)

    real, fake = ViewsIndex(log.views, log.store), FoldedIndex(log.journal)

    assert [A] == list(await real.waiting(kind)) == list(await fake.waiting(kind))
    assert ["session-default/b"] == list(await real.driven()) == list(await fake.driven())


async def test_who_waits_for_a_runner_is_counted_by_what_it_demands(log, facts):
    def unmet(**demands):
        cause = Cause(code="no_runner", demands=Demands(**demands))
        return SessionWaiting(kind="runner", cause=cause)

    await log.tell("a", facts.STARTED, unmet(labels={"gpu": "a100"}))
    await log.tell("b", facts.STARTED, unmet(labels={"gpu": "a100"}))
    await log.tell("c", facts.STARTED, unmet(machine="m1"))
    await log.tell("d", facts.STARTED, unmet(machine="m1"), ON)
    await log.tell("e", facts.STARTED, waiting("runner"))

    real, fake = ViewsIndex(log.views, log.store), FoldedIndex(log.journal)

    counted = [Unmet(Demands(labels={"gpu": "a100"}), 2), Unmet(Demands(machine="m1"), 1)]
    assert counted == sorted(await real.unmet(), key=lambda each: -each.calls)
    assert counted == sorted(await fake.unmet(), key=lambda each: -each.calls)


@pytest.mark.parametrize("sql", [_WAITING, _CAUSES])
async def test_who_waits_for_a_runner_is_found_without_a_look_at_those_that_wait_for_others(
    sql, log
):
    plan = [row[-1] for row in log.views.db.execute(f"EXPLAIN QUERY PLAN {sql}", ["runner"])]

    assert "wait_kind=?" in plan[0]


async def test_who_waits_for_another_runner_is_not_woken_by_those_that_there_are(log, facts):
    def unmet(**demands):
        cause = Cause(code="no_runner", demands=Demands(**demands))
        return SessionWaiting(kind="runner", cause=cause)

    await log.tell("a", facts.STARTED, unmet(labels={"gpu": "a100"}))
    await log.tell("b", facts.STARTED, unmet(machine="m1"))
    await log.tell("c", facts.STARTED, waiting("runner"))
    offers = [Offer("r1", "m1")]

    for index in (ViewsIndex(log.views, log.store), FoldedIndex(log.journal)):
        streams = await index.waiting("runner", offers)
        assert ["session-default/b", "session-default/c"] == sorted(streams)


async def test_the_oldest_runs_are_those_that_came_first_to_the_queue_and_have_not_ended(
    log, facts
):
    run = {"run": Run(blueprint="crawler")}
    later = {"schedule": Schedule(at=log.moment)}
    for name, fields in (("c", run), ("later", run | later), ("b", run), ("a", {}), ("d", run)):
        await log.ask(name, facts.ASKED.model_copy(update=fields))
        await log.tell(name, facts.STARTED.model_copy(update=fields))
    await log.tell("later", waiting("time", log.moment))
    other = {"run": Run(blueprint="report")}
    await log.ask("e", facts.ASKED.model_copy(update=other))
    index = ViewsIndex(log.views, log.store)
    assert ["c", "b", "d"] == await oldest(index, 9)

    await log.tell("later", SessionContinued(by="deadline", at=log.moment))
    await log.tell("c", SessionCompleted(result=""))

    assert ["b", "d", "later"] == await oldest(index, 9)
    assert ["b"] == await oldest(index, 1)
    assert ["b", "d", "later"] == await oldest(FoldedIndex(log.journal), 9)


async def oldest(index, limit):
    return [shown(each) for each in await index.oldest("crawler", limit)]
