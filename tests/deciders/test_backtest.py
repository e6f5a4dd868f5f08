"""What a policy would have said of the past."""

from decimal import Decimal

from cueline.deciders.backtest import Backtest, sum_findings
from cueline.events.agent import Policy, Rule
from cueline.events.agent_parts import Step
from cueline.events.message import Estimate
from cueline.testing.given import given
from tests.deciders.planned import at_work, begun
from tests.session_example import AGENT, asking, running, saying, started

DEAR = AGENT.tools[3].model_copy(update={"cost_usd": Decimal("0.75")})
SPEC = AGENT.model_copy(update={"tools": (*AGENT.tools[:3], DEAR, *AGENT.tools[4:])})


def replying(*tools, spec=SPEC, **more):
    """Return a reply as it is recorded: with what the rules of *spec* said of its calls."""
    reply = saying(*tools).model_copy(update=more)
    return given().when(started(spec), asking(), reply).facts[0]


def judged(*facts, spec=SPEC, **policy):
    test = Backtest(Policy(**policy))
    for fact in [started(spec), asking(), *facts]:
        test.add("session-default/1", fact)
    return list(test.findings)


def test_each_call_of_the_past_is_judged_with_the_tools_of_its_time():
    found = judged(saying("look", "shout"), running("1.0", "look"), approval=("all_writes",))

    assert [("look", "allow", True), ("shout", "ask", False)] == [
        (each.call.name, each.judged.answer, each.ran) for each in found
    ]


# What was recorded is what was said then; the backtest judges anew.
def test_what_the_rules_said_then_is_told_beside_what_others_say_now():
    rules = (Rule(name="mine", answer="deny", tools=("look",)),)
    then = SPEC.model_copy(update={"policy": Policy(rules=rules)})
    reply = replying("delete", "look", "put", spec=then)

    found = judged(reply, spec=then, approval=("all_writes",))

    assert ["ask", "deny", "allow"] == [each.answer for each in reply.judged.values()]
    assert [("asked", "ask"), ("denied", "allow"), ("allowed", "ask")] == [
        (each.before, each.judged.answer) for each in found
    ]


# What it would have stopped from being spent: calls that ran unasked, by their estimate.
def test_what_ran_unasked_and_would_not_have_is_summed_up():
    found = judged(replying("shout", "shout"), running("1.0"), approval=("cost",))

    (same,) = sum_findings(found)

    assert ("shout", "allowed", "ask", "cost") == (same.tool, same.before, same.answer, same.rule)
    assert (2, 1, Decimal("0.75")) == (same.calls, same.ran, same.stopped_cost)


# 004-024: by the estimate that was recorded then, and not by one that is made now.
def test_a_call_of_a_tool_that_estimates_counts_as_it_was_estimated():
    dear = AGENT.tools[3].model_copy(update={"estimates": True})
    spec = AGENT.model_copy(update={"tools": (dear,)})
    reply = replying("shout", spec=spec, estimates={"1.0": Estimate(usd=Decimal(2))})

    (found,) = judged(reply, running("1.0"), spec=spec, approval=("cost",))

    assert ("ask", Decimal(2)) == (found.judged.answer, found.stopped_cost)


def test_what_was_asked_about_before_is_not_stopped_again():
    strict = SPEC.model_copy(update={"policy": Policy(approval=("all_writes",))})
    found = judged(replying("shout", spec=strict), running("1.0"), approval=("cost",))

    assert Decimal(0) == found[0].stopped_cost


def test_what_has_no_estimate_stops_nothing_from_being_spent():
    (found,) = judged(
        saying("look"), running("1.0", "look"), rules=(Rule(name="no", answer="deny"),)
    )

    assert (True, Decimal(0)) == (found.ran, found.stopped_cost)


def test_the_strongest_answers_come_first():
    rules = (Rule(name="no", answer="deny", tools=("put",)),)
    found = judged(saying("look", "put", "delete"), rules=rules)

    assert ["deny", "ask", "allow"] == [same.answer for same in sum_findings(found)]


def test_a_call_that_could_not_run_is_left_out():
    assert [] == judged(saying("nonsense"))


def test_a_reply_that_does_not_count_is_left_out():
    test = Backtest(Policy())
    test.add("session-default/1", started())
    test.add("session-default/1", saying("delete"), counts=False)

    assert [] == list(test.findings)


def test_a_session_that_is_not_known_is_left_out():
    test = Backtest(Policy())
    for fact in (saying("delete"), running("1.0", "delete")):
        test.add("session-default/1", fact)

    assert [] == list(test.findings)


def test_the_calls_of_a_plan_are_judged_too():
    plan = at_work(Step(name="look"), Step(name="go", wait="go"))
    test = Backtest(Policy(rules=(Rule(name="no", answer="deny"),)))
    for fact in (begun(plan.state.agent), *plan.facts):
        test.add("session-default/1", fact)

    assert [("look", "deny")] == [(each.call.name, each.judged.answer) for each in test.findings]
