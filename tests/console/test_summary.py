"""What a session used, recovered and inherited, and how sure its cost is."""

from decimal import Decimal

from cueline.console.summary import cost_of, summary
from cueline.events.agent import AgentSpec, Limits
from cueline.events.message import Cost, Usage
from cueline.events.session import (
    LimitRaised,
    LostAttempt,
    PromptPrefixChanged,
    ReservationClosed,
    SessionStarted,
    SessionTakenOver,
)
from cueline.projections.summary import Summary
from tests.console.told import NOW, REPLIED, told
from tests.session_example import broken, failing, forked


def test_the_summary_counts_what_was_used_and_recovered(telling):
    """000-022."""
    told(telling, REPLIED, SessionTakenOver(epoch=2, at=NOW), REPLIED)

    first, recovered = [line.text for line in summary("one", "completed", telling.tally)]

    assert first.startswith(
        "session one: completed · 2 turns · 2 tool calls · 2,400 in (400 cached)"
    )
    assert "$0.0246" in first
    assert "  along the way: 1 takeover" == recovered


CACHED = REPLIED.model_copy(
    update={
        "usage": Usage(input=10, cache_read=1_000, cache_write=50),
        "cost": Cost(usd=Decimal("0.01"), prices="2026", saved=Decimal("0.002")),
    }
)
CHANGED = PromptPrefixChanged(reason="model_switched", before="a 1", after="b 2")


def test_what_the_cache_saved_and_a_change_of_the_model_cost_is_told(telling):
    anew = REPLIED.model_copy(update={"usage": Usage(input=600, cache_read=200)})
    lines = told(telling, CACHED, CHANGED, CHANGED, anew, anew)

    assert "1,060 in (1,000 cached, 50 written to cache)" in lines[1]
    assert "· 600 cached tokens were sent anew, $0.0012 more" in lines[-3]
    assert "sent anew" not in lines[-1]
    assert (
        "  cache: saved $0.0020; 1 change of the prompt's beginning: 600 cached tokens were sent "
        "anew, $0.0012 more"
    ) == list(summary("one", "idle", telling.tally))[1].text


def test_what_was_recovered_is_told_by_its_number(telling):
    for epoch in (2, 3):
        told(telling, SessionTakenOver(epoch=epoch, at=NOW))

    assert (
        "  along the way: 2 takeovers" == list(summary("one", "completed", telling.tally))[-1].text
    )


def test_retries_that_brought_no_answer_are_not_called_recovered(telling):
    told(telling, failing("overloaded").model_copy(update={"retry_at": NOW}))

    assert "  along the way: 1 retry" == list(summary("one", "waiting", telling.tally))[-1].text


def test_lost_attempts_are_those_of_the_list(telling):
    attempt = LostAttempt(effect="2.m", attempt=1)
    taken_over = SessionTakenOver(epoch=2, lost_attempts=(attempt,), at=NOW)

    told(telling, REPLIED, broken("1.0", "lost"), failing("lost"), broken("1.1", "network"))
    told(telling, taken_over)

    assert 3 == telling.tally.lost_attempts


def test_a_price_that_was_assumed_is_told_with_the_cost(telling):
    cost = Cost(usd=Decimal("0.5"), prices="assumed: as the dearest")

    told(telling, REPLIED.model_copy(update={"cost": cost}))

    assert "$0.5000 ($0.5000 of it at assumed prices)" == cost_of(telling.tally)


def test_what_a_fork_inherited_was_not_spent_by_it(telling):
    told(telling, REPLIED, forked(version=3))

    lines = [line.text for line in summary("one", "running", telling.tally)]

    assert " 0 turns · 0 tool calls · 0 in + 0 out tokens · $0 · " in lines[0]
    assert "  inherited: 1 turn, $0.0123" == lines[-1]


def test_a_fork_of_a_fork_inherits_from_both(telling):
    told(telling, REPLIED, forked(version=3), REPLIED, forked(version=7), REPLIED)

    lines = [line.text for line in summary("one", "running", telling.tally)]

    assert "session one: running · 1 turn · " in lines[0]
    assert "  inherited: 2 turns, $0.0246" == lines[-1]


# 000-021: how much of the budget is used, where there is one.
def test_the_cost_line_says_how_much_of_the_budget_is_used(telling):
    limits = Limits(max_cost=Decimal("0.05"))
    agent = AgentSpec(name="a", provider="scripted", model="m", limits=limits)
    started = SessionStarted(agent=agent, goal=None, open=False, attached=False, epoch=1)
    closed = ReservationClosed(
        effect="1.m", attempt=1, outcome="settled", shares={"max_cost": 0.84}
    )

    told(telling, started)
    assert told(telling, REPLIED)[-1].endswith("budget 25%")
    told(telling, closed)
    assert told(telling, REPLIED.model_copy(update={"effect": "2.m"}))[-1].endswith("budget 84%")
    told(telling, LimitRaised(max_cost=Decimal("0.5")))
    assert told(telling, REPLIED.model_copy(update={"effect": "3.m"}))[-1].endswith("budget 7%")


def test_the_summary_says_how_sure_the_cost_is():
    tally = Summary(
        cost=Decimal("0.75"), estimated=Decimal("0.25"), assumed=Decimal("0.5"), unpriced=2,
        children=2, children_cost=Decimal(1),
    )  # fmt: skip

    assert (
        "~$0.7500 ($0.2500 of it estimated, $0.5000 of it at assumed prices, "
        "and 2 unpriced model calls, $1.75 with 2 children)"
    ) == cost_of(tally)
