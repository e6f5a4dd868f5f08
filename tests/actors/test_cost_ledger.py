"""What the cost ledger promises, wherever it runs and however often it is asked."""

import asyncio
from decimal import Decimal

import pytest

from cueline.actors.cost_ledger import KEPT, CostLedger
from cueline.actors.inbox import ask_start
from cueline.deciders.budget import Amount, ModelCallName, Raise, Release, Reserve, Settle
from cueline.errors import FencedError
from cueline.events.agent import Limits
from cueline.events.budget import Allowance, CostReserved
from cueline.events.inbox import BudgetFreed, StartAsked
from cueline.testing.crash import Outside
from cueline.testing.fakes import JournalingExecutor, TurnModel, agent_spec

BUDGET = "budget-default/a"
SESSIONS = [f"session-default/{name}" for name in "abcdefgh"]
TOP = Allowance(session=SESSIONS[0], max_cost=Decimal(1))


@pytest.fixture
def place():
    return Outside.new(TurnModel([]), JournalingExecutor({}))


def path(session):
    return (TOP,) if session == TOP.session else (Allowance(session=session), TOP)


def reserve(session, usd="0.30", turn=1, epoch=1):
    call = ModelCallName(session, f"{turn}.m", 1)
    return Reserve(call, epoch, path(session), Amount(1, Decimal(usd)))


def settle(session, usd="0.10", turn=1, epoch=1):
    amount = None if usd is None else Amount(1, Decimal(usd))
    return Settle(ModelCallName(session, f"{turn}.m", 1), epoch, path(session), amount)


async def asked(ledger, *sessions):
    answers = [ledger.reserve(BUDGET, reserve(session)) for session in sessions]
    return [answer.verdict for answer in await asyncio.gather(*answers)]


async def test_no_more_is_granted_than_there_is(place):
    # 000-003, I8
    verdicts = await asked(CostLedger(place.journal), *SESSIONS)

    assert ["granted"] * 3 + ["busy"] * 5 == verdicts


async def test_two_ledgers_grant_no_more_than_one(place):
    # I3: who loses the append folds on and decides again.
    one, other = CostLedger(place.journal), CostLedger(place.journal)
    answers = [
        (one, other)[place_ % 2].reserve(BUDGET, reserve(session))
        for place_, session in enumerate(SESSIONS)
    ]

    verdicts = [answer.verdict for answer in await asyncio.gather(*answers)]

    assert 3 == verdicts.count("granted")
    assert 3 == sum(isinstance(fact, CostReserved) for fact in await place.facts(BUDGET))


async def test_a_ledger_that_comes_back_has_the_same_answers(place):
    before = await asked(CostLedger(place.journal), *SESSIONS)
    facts = await place.facts(BUDGET)

    assert before == await asked(CostLedger(place.journal), *SESSIONS)
    assert facts == await place.facts(BUDGET)


async def test_an_answer_that_nothing_is_recorded_for_knows_what_another_ledger_did(place):
    one, other = CostLedger(place.journal), CostLedger(place.journal)
    await asked(one, *SESSIONS[:4])
    await other.settle(BUDGET, settle(SESSIONS[0]))

    assert ["granted"] == await asked(one, SESSIONS[3])


async def test_a_former_owner_is_told_to_stop(place):
    ledger = CostLedger(place.journal)
    await ledger.reserve(BUDGET, reserve(SESSIONS[0], epoch=2))

    with pytest.raises(FencedError):
        await ledger.settle(BUDGET, settle(SESSIONS[0], epoch=1))


async def test_who_was_refused_hears_of_room_in_the_append_that_makes_it(place):
    agent = agent_spec(limits=Limits())
    for session in SESSIONS:
        name = session.rpartition("/")[2]
        await ask_start(place.journal, name, StartAsked(agent=agent, asked_at=place.clock.now()))
    ledger = CostLedger(place.journal)
    await asked(ledger, *SESSIONS[:5])

    await ledger.settle(BUDGET, settle(SESSIONS[1]))

    events = [recorded async for recorded in place.store.read_all()][-3:]
    assert ["CostSettled", "BudgetOffered", "BudgetFreed"] == [event.type for event in events]
    assert "inbox-default/d" == events[-1].stream
    heard = await place.facts("inbox-default/d")
    assert BudgetFreed(budget=BUDGET) == heard[-1]


async def test_a_closed_reservation_reports_the_spent_share(place):
    ledger = CostLedger(place.journal)
    await asked(ledger, *SESSIONS[:2])

    settled = await ledger.settle(BUDGET, settle(SESSIONS[1]))
    released = await ledger.release(
        BUDGET, Release(ModelCallName(SESSIONS[0], "1.m", 1), 1, path(SESSIONS[0]))
    )

    assert ("settled", {"max_cost": 0.1}) == (settled.outcome, settled.shares)
    assert ("released", Amount()) == (released.outcome, released.amount)


async def test_a_raise_is_kept_by_the_next_ledger(place):
    # 000-048
    higher = Raise(SESSIONS[0], path(SESSIONS[0]), None, Decimal(3), "inbox-default/a@2")
    await CostLedger(place.journal).raise_limits(BUDGET, higher)

    assert ["granted"] * 8 == await asked(CostLedger(place.journal), *SESSIONS)


async def test_the_number_of_cached_budgets_is_limited(place):
    ledger = CostLedger(place.journal)
    for number in range(KEPT + 1):
        session = f"session-default/{number}"
        top = (Allowance(session=session, max_tokens=5),)
        release = Release(ModelCallName(session, "1.m", 1), 1, top)
        await ledger.release(f"budget-default/{number}", release)

    assert KEPT == len(ledger._budgets)
