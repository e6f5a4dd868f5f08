"""Whatever a tree of sessions asks, in whatever order: the promises of a budget hold (I8)."""

from decimal import Decimal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cueline.deciders.budget import (
    BUDGET,
    Amount,
    ModelCallName,
    Raise,
    Release,
    Reserve,
    Settle,
    answer,
    fencing_epoch,
)
from cueline.deciders.budget.decide import shortage
from cueline.events.budget import Allowance, BudgetOffered, CostSettled
from cueline.testing.given import through_codec

PARENTS = {"root": None, "a": "root", "b": "root", "a1": "a", "a2": "a"}
SESSIONS = st.sampled_from(sorted(PARENTS))
CENTS = st.integers(0, 60)


def above(name):
    return [name, *above(PARENTS[name])] if name else []


class Budget(RuleBasedStateMachine):
    """Five sessions in three generations, two of which have a limit of their own."""

    def __init__(self):
        super().__init__()
        self.state = BUDGET.initial_state
        self.log = []
        self.turns = dict.fromkeys(PARENTS, 1)
        self.epochs = dict.fromkeys(PARENTS, 1)
        self.held = {}
        self.spent = dict.fromkeys(PARENTS, 0)
        self.raises = 0

    @initialize(root=st.integers(50, 200), a=st.integers(20, 80) | st.none())
    def begin(self, root, a):
        self.limits = {"root": root, "a": a}

    def take(self, command):
        facts = [through_codec(fact) for fact in BUDGET.decide(command, self.state)]
        assert list(BUDGET.decide(command, self.state)) == facts, "I10: deciding again differs"
        self.state = BUDGET.replay(facts, self.state)
        self.log.extend(facts)
        for fact in facts:
            if isinstance(fact, BudgetOffered):
                self.check_offer(fact)
        return facts

    def path(self, name):
        limits = {each: self.limits.get(each) for each in above(name)}
        kept = [each for each in above(name) if each == name or limits[each] is not None]
        return tuple(
            Allowance(session=each, max_cost=None if limits[each] is None else cents(limits[each]))
            for each in kept
        )

    def call(self, name):
        return ModelCallName(name, f"{self.turns[name]}.m", 1)

    @rule(name=SESSIONS, need=CENTS)
    def reserve(self, name, need):
        # Who asks again may estimate otherwise; what is held stays what it was.
        command = Reserve(self.call(name), self.epochs[name], self.path(name), money(need))
        fits = name in self.held or self.fits(name, need)
        self.take(command)
        told = answer(command, self.state)
        # Nobody who asks is turned away while there is room, and nobody else gets it.
        assert ("granted" == told.verdict) == fits, told
        if fits:
            self.held.setdefault(name, need)

    def fits(self, name, need):
        for each in above(name):
            most = self.limits.get(each)
            below = [n for n in PARENTS if each in above(n)]
            taken = sum(self.spent[n] + self.held.get(n, 0) for n in below)
            if most is not None and taken + need > most:
                return False
        return True

    @precondition(lambda self: self.held)
    @rule(n=st.integers(0, 9), share=st.integers(0, 4))
    def settle(self, n, share):
        name = sorted(self.held)[n % len(self.held)]
        need = self.held.pop(name)
        spent = None if share == 4 else need * share // 3
        amount = None if spent is None else money(spent)
        self.take(Settle(self.call(name), self.epochs[name], self.path(name), amount))
        self.spent[name] += need if spent is None else spent
        self.turns[name] += 1

    @rule(name=SESSIONS)
    def release(self, name):
        self.take(Release(self.call(name), self.epochs[name], self.path(name)))
        self.held.pop(name, None)
        self.turns[name] += 1

    @rule(name=SESSIONS)
    def take_over(self, name):
        self.epochs[name] += 1

    @rule(name=st.sampled_from(["root", "a"]), by=st.integers(-10, 50))
    def raise_limit(self, name, by):
        self.raises += 1
        most = self.limits[name]
        wanted = (most or 0) + by
        if wanted <= 0:
            return
        self.take(Raise(name, self.path(name), None, cents(wanted), f"inbox@{self.raises}"))
        if most is not None and by > 0:
            self.limits[name] = wanted

    def check_offer(self, offer):
        for name in offer.sessions:
            wanted = self.state.nodes[name].wanted
            assert wanted is not None, "who is told waits"
            assert shortage(self.state, name, wanted.amount) is None, "and there is room"

    @invariant()
    def no_limit_is_passed(self):
        for node in self.state.nodes.values():
            for limit, most in node.limits.items():
                assert (node.settled + node.reserved).of(limit) <= most

    @invariant()
    def the_sums_are_those_of_the_calls(self):
        for name, node in self.state.nodes.items():
            assert node.own.usd == cents(self.spent[name])
            if node.limits:  # who has none is on nobody else's way to the root
                below = [n for n in PARENTS if name in above(n)]
                assert node.reserved.usd == cents(sum(self.held.get(n, 0) for n in below))
                assert node.settled.usd == cents(sum(self.spent[n] for n in below))

    @invariant()
    def the_fold_of_the_log_is_the_state(self):
        assert BUDGET.replay(self.log) == self.state
        settled = sum(f.usd for f in self.log if isinstance(f, CostSettled))
        assert settled == cents(sum(self.spent.values()))

    @invariant()
    def whoever_is_in_line_and_was_not_told_does_not_fit_beside_those_who_were(self):
        promised = {}
        for name in self.state.queue:
            wanted = self.state.nodes[name].wanted
            if shortage(self.state, name, wanted.amount, promised) is None:
                assert wanted.told, f"{name} waits while there is room"
                for each, _ in self.state.path(name):
                    promised[each] = promised.get(each, Amount()) + wanted.amount

    @invariant()
    def a_former_owner_is_fenced(self):
        for name, node in self.state.nodes.items():
            if node.epoch > 1:
                late = Release(self.call(name), node.epoch - 1, self.path(name))
                assert node.epoch == fencing_epoch(late, self.state)


def cents(number):
    return Decimal(number) / 100


def money(number):
    return Amount(number, cents(number))


TestBudget = Budget.TestCase
TestBudget.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
