"""What the rules of approval say of a call (004-065, 004-069)."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cueline.deciders.policy import gate_of, judge, tools_that_may_ask
from cueline.events.agent import AgentSpec, Policy
from cueline.events.message import Estimate
from tests.deciders.policy_example import PLACE, WRITE, answer, judged, rule, spec
from tests.session_example import TOOLS, tool


def costing(usd):
    return spec(cost_usd=Decimal(usd))


# 000-023, 000-024, 000-051, 000-052, D6: by declaration, never by name.
@pytest.mark.parametrize(
    ("profile", "sensitive", "told"),
    [
        ("sensitive", True, ("ask", "sensitive")),
        ("sensitive", False, ("allow", "not sensitive")),
        ("off", True, ("allow", "off")),
    ],
)
def test_a_declaration_decides_who_is_asked(profile, sensitive, told):
    call = judged(of=tool("delete_everything", sensitive=sensitive), profiles=(profile,))

    assert told == (call.answer, call.rule)


# A file and a log from before there were several profiles name one.
def test_one_profile_may_be_named_alone():
    assert ("off",) == Policy(approval="off").approval
    assert Policy() == Policy(approval="sensitive")


# C10, 004-003, 004-021, 004-025, 004-026, 004-028, 004-031, 004-060
@pytest.mark.parametrize(
    ("usd", "told"),
    [
        ("0", "allow"),
        ("0.0999", "allow"),
        ("0.10", "notify"),
        ("0.4999", "notify"),
        ("0.50", "ask"),
        ("1.99", "ask"),
        ("2.00", "deny"),
    ],
)
def test_each_band_of_cost_begins_with_its_lower_bound(usd, told):
    policy = Policy(approval=("cost",), deny_from_usd=Decimal(2))

    call = judge(policy, costing(usd), {})

    assert (told, Decimal(usd)) == (call.answer, call.usd)
    assert call.rule in ("cost", "cost cap")


def test_nothing_is_too_dear_where_no_cap_is_set():
    assert "ask" == answer(of=costing("1000"), profiles=("cost",))


def test_a_tool_without_an_estimate_is_not_asked_about_for_its_cost():
    assert "allow" == answer(profiles=("cost",))


ESTIMATING = spec(estimates=True)
UNKNOWN = Estimate(problem="no list")


def estimated(estimate, *rules, cap=None, **policy):
    rules_ = Policy(approval=("cost",), rules=rules, deny_from_usd=cap, **policy)
    return judge(rules_, ESTIMATING, {}, estimate=estimate)


# 004-024: each call by its own estimate.
@pytest.mark.parametrize(
    ("usd", "told"), [("0.09", "allow"), ("0.10", "notify"), ("0.50", "ask"), ("2.00", "deny")]
)
def test_the_bands_go_by_the_estimate_of_the_call(usd, told):
    call = estimated(Estimate(usd=Decimal(usd)), cap=Decimal(2))

    assert (told, Decimal(usd)) == (call.answer, call.usd)


def test_a_call_of_unknown_cost_is_asked_about():
    call = estimated(UNKNOWN)

    assert ("ask", "cost", None, "no list") == (call.answer, call.rule, call.usd, call.unpriced)
    assert not call.people_only


# C15: a cap is never overridden automatically, also where nobody knows whether it is passed.
def test_only_people_allow_a_call_of_unknown_cost_under_a_cap():
    call = estimated(UNKNOWN, cap=Decimal(2))

    assert ("ask", "cost, cost cap", True) == (call.answer, call.rule, call.people_only)


def test_an_unknown_cost_matters_only_to_rules_about_cost():
    policy = Policy(approval=("sensitive",))

    assert "allow" == judge(policy, ESTIMATING, {}, estimate=UNKNOWN).answer


# C14, D6
@pytest.mark.parametrize(
    ("declared", "told"),
    [("read_only", "allow"), ("idempotent", "ask"), ("reconcile", "ask"), ("nothing", "ask")],
)
def test_all_writes_is_all_that_is_not_declared_to_only_read(declared, told):
    assert told == answer(of=tool("t", declared), profiles=("all_writes",))


# C14
@pytest.mark.parametrize(("tags", "told"), [((), "allow"), (("phase:plan", "x"), "ask")])
def test_phase_gates_asks_where_a_phase_ends(tags, told):
    assert told == answer(of=spec(tags=tags), profiles=("phase_gates",))


# C14
def test_the_strongest_answer_counts_whatever_the_order():
    said = [rule("allow", "a"), rule("notify", "n"), rule("ask", "q"), rule("deny", "d")]

    for count, told in enumerate(("allow", "notify", "ask", "deny"), start=1):
        assert told == answer(*said[:count]) == answer(*reversed(said[:count]))


def test_all_rules_that_decide_are_named():
    call = judged(rule("ask", "one"), rule("ask", "two"), rule("allow", "three"))

    assert "one, two" == call.rule


# C17
def test_what_several_rules_ask_for_is_asked_together():
    two = rule("ask", "two", votes=2, may_grant=("ann", "bob"))
    one = rule("ask", "one", may_grant=("a*",), exclude_requester=True)

    call = judged(two, one)

    assert (2, (("ann", "bob"), ("a*",))) == (call.votes, call.may_grant)
    assert call.exclude_requester
    assert call.people_only


# C15, C17: what is for certain people is never granted automatically.
@pytest.mark.parametrize(
    ("asks", "people_only"),
    [
        ({}, False),
        ({"votes": 2}, True),
        ({"may_grant": ("ann",)}, True),
        ({"exclude_requester": True}, True),
    ],
)
def test_a_question_is_for_certain_people_where_a_rule_says_who(asks, people_only):
    assert people_only == judged(rule("ask", **asks)).people_only


def test_what_does_not_depend_on_arguments_is_settled_once():
    policy = Policy(rules=(rule(paths=("a",), tools=("write",)),))

    assert "ask" == gate_of(policy, tool("burn", sensitive=True)).settled.answer
    assert gate_of(policy, WRITE).settled is None


answers = st.sampled_from(["allow", "notify", "ask", "deny"])


matches = st.fixed_dictionaries(
    {},
    optional={
        "sensitive": st.booleans(),
        "declared": st.lists(st.sampled_from(["read_only", "nothing"]), max_size=1).map(tuple),
        "paths": st.just(("a/**",)),
        "items_over": st.integers(0, 2),
        "usd_from": st.decimals(0, 1, places=1),
    },
)


ORDER = ["allow", "notify", "ask", "deny"]


# C14: a rule more never weakens what the others say.
@given(
    st.lists(st.tuples(answers, matches), max_size=4),
    st.tuples(answers, matches),
    st.sampled_from([*TOOLS, ESTIMATING]),
    st.sampled_from([UNKNOWN, Estimate(usd=Decimal("0.3"))]),
    st.sampled_from(["a/b", "c"]),
)
def test_a_rule_more_never_weakens_the_answer(before, more, of, estimate, path):
    def answered(*rules):
        policy = Policy(approval=("off",), rules=rules)
        return judge(policy, of, {"path": path}, estimate=estimate, workspace=PLACE).answer

    rules = [rule(said, **match) for said, match in before]

    fewer = answered(*rules)
    all_of_them = answered(*rules, rule(more[0], **more[1]))

    assert ORDER.index(all_of_them) >= ORDER.index(fewer)


def test_an_agent_is_recorded_with_its_rules_and_read_again():
    agent = AgentSpec(
        name="a", provider="scripted", model="m", policy=Policy(rules=(rule(paths=("x",)),))
    )

    assert agent == AgentSpec.model_validate_json(agent.model_dump_json())


# D36
@pytest.mark.parametrize(
    ("policy", "names"),
    [
        (Policy(), ("delete", "burn", "wire")),
        (Policy(approval=("off",)), ()),
        (Policy(auto_approve=True), ()),
        (Policy(auto_approve_after=3), ()),
        (Policy(auto_approve=True, rules=(rule("ask", tools=("look",), votes=2),)), ("look",)),
        (Policy(approval=("off",), rules=(rule("ask", tools=("put",), paths=("a",)),)), ("put",)),
        (Policy(approval=("off",), rules=(rule("deny", paths=("a",)),)), ()),
        (Policy(auto_approve=True, rules=(rule("ask", paths=("a",)),)), ()),
        (
            Policy(
                auto_approve=True,
                rules=(rule("ask", tools=("put",), paths=("a",), may_grant=("ann",)),),
            ),
            ("put",),
        ),
        (
            Policy(
                auto_approve=True,
                rules=(rule("ask", tools=("put",), paths=("a",), exclude_requester=True),),
            ),
            ("put",),
        ),
        (Policy(approval=("cost",)), ("work",)),
        (Policy(approval=("cost",), auto_approve=True, deny_from_usd=Decimal(2)), ()),
        (Policy(approval=("off",), rules=(rule("deny", usd_from=Decimal(1)),)), ("work",)),
        (Policy(approval=("off",), rules=(rule("allow", usd_from=Decimal(1)),)), ()),
    ],
)
def test_it_is_known_before_the_start_whether_somebody_may_be_asked(policy, names):
    tools = (*TOOLS, ESTIMATING)
    agent = AgentSpec(name="a", provider="scripted", model="m", tools=tools, policy=policy)

    assert names == tools_that_may_ask(agent)


def test_it_is_known_before_the_start_of_which_tools_a_rule_about_tags_may_ask():
    risky, tame = (tool(name).model_copy(update={"tags": (name,)}) for name in ("risky", "tame"))
    asks = Policy(approval=("off",), rules=(rule("ask", tags=("risky",), paths=("a",)),))
    agent = AgentSpec(name="a", provider="scripted", model="m", tools=(risky, tame), policy=asks)

    assert ("risky",) == tools_that_may_ask(agent)
