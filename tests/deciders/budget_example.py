"""Commands to one budget: a root with a dollar, and sessions below it."""

from decimal import Decimal

from cueline.deciders.budget import (
    BUDGET,
    Amount,
    ModelCallName,
    Raise,
    Release,
    Reserve,
    Settle,
    answer,
)
from cueline.events.budget import Allowance, BudgetOpened
from cueline.testing.given import given_past

ROOT, CHILD, OTHER = (f"session-default/{name}" for name in ("root", "child", "other"))
OPENED = BudgetOpened(session=ROOT, max_cost=Decimal(1))
JOINED = BudgetOpened(session=CHILD, parent=ROOT)


def path(session=ROOT, own=None):
    root = Allowance(session=ROOT, max_cost=Decimal(1))
    if session == ROOT:
        return (root,)
    return (Allowance(session=session, max_cost=own and Decimal(own)), root)


def call(session=ROOT, turn=1, attempt=1):
    return ModelCallName(session, f"{turn}.m", attempt)


def reserve(usd, session=ROOT, *, turn=1, attempt=1, epoch=1, own=None):
    amount = Amount(10, Decimal(usd))
    return Reserve(call(session, turn, attempt), epoch, path(session, own), amount)


def settle(usd, session=ROOT, *, turn=1, attempt=1, epoch=1, tokens=10):
    amount = None if usd is None else Amount(tokens, Decimal(usd))
    return Settle(call(session, turn, attempt), epoch, path(session), amount)


def release(session=ROOT, turn=1, attempt=1, epoch=1):
    return Release(call(session, turn, attempt), epoch, path(session))


def raised(usd, message="inbox-default/root@2", session=ROOT, tokens=None):
    return Raise(session, path(session), tokens, usd and Decimal(usd), message)


def given(*facts):
    return given_past(BUDGET, *facts)


def asked(*commands):
    return given().when(*commands)


def said(past, command):
    return answer(command, past.when(command).state).verdict
