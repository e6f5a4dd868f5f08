"""What cannot mean what it says, though each value is fine."""

import pytest

from cueline.deciders.policy_fault import faults
from cueline.events.agent import Hook, Policy, Rule
from tests.session_example import TOOLS as SPECS

TOOLS = [tool.name for tool in SPECS]


def rule(**fields):
    return Rule.model_validate({"name": "mine", "answer": "ask", **fields})


@pytest.mark.parametrize(
    ("policy", "key", "reason"),
    [
        ({"ask_from_usd": "0.05"}, "ask_from_usd", "below notify_from_usd"),
        ({"deny_from_usd": "0.40"}, "deny_from_usd", "below ask_from_usd"),
        ({"approval": ["off", "cost"]}, "approval", "leave it out"),
        ({"auto_approve_after": 90_000}, "auto_approve_after", "expires before"),
        ({"escalate_to": ["ann"]}, "escalate_to", "on_expiry"),
        ({"rules": [rule(), rule()]}, "rules.1.name", "two rules"),
        ({"rules": [rule(name=" ")]}, "rules.0.name", "empty"),
        ({"rules": [rule(may_grant=["a", "a"], votes=2)]}, "rules.0.votes", "takes 2 people"),
        ({"rules": [rule(answer="deny", votes=2)]}, "rules.0.votes", "who may allow it"),
        (
            {"rules": [rule(answer="deny", exclude_requester=True)]},
            "rules.0.exclude_requester",
            "who may allow it",
        ),
        ({"rules": [rule(tools=["lok"])]}, "rules.0.tools", "no tool of the agent"),
        ({"rules": [rule(answer="deny", paths=["a", ""])]}, "rules.0.paths", "fits nothing"),
        ({"rules": [rule(may_grant=[" "])]}, "rules.0.may_grant", "fits nothing"),
        ({"hooks": [Hook(on="asked")]}, "hooks.0.command", "either"),
        ({"hooks": [Hook(on="asked", url="$U", after_seconds=1)]}, "hooks.0.after_seconds", "only"),
        ({"hooks": [Hook(on="asked", url="example.org/x")]}, "hooks.0.url", "$NAME"),
        ({"hooks": [Hook(on="reminder", url="http://x")]}, "hooks.0.after_seconds", "waits"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_named_with_its_key(policy, key, reason):
    ((found, why),) = faults(Policy.model_validate(policy), TOOLS)

    assert key == found
    assert reason in why


# C12, C17: else nobody could allow what is escalated.
@pytest.mark.parametrize(
    "asks",
    [{"may_grant": ["ann"]}, {"votes": 2}, {"may_grant": ["ann", "ben", "boss"], "votes": 2}],
)
def test_whoever_is_asked_in_the_end_has_to_be_one_who_may_allow_it(asks):
    given = {"rules": [rule(**asks)], "on_expiry": "escalate", "escalate_to": ["boss"]}

    ((key, why),) = faults(Policy.model_validate(given))

    assert "escalate_to" == key
    assert "the rule 'mine' takes" in why


def test_a_policy_that_can_be_meant_has_no_faults():
    rules = (rule(tools=["lo*"], votes=2, may_grant=["team-*"]), rule(name="n", answer="deny"))
    hooks = (Hook(on="reminder", command=("mail", "ann"), after_seconds=60),)
    policy = Policy(rules=rules, hooks=hooks, on_expiry="escalate", escalate_to=("boss",))

    assert [] == [*faults(Policy()), *faults(policy, TOOLS)]


@pytest.mark.parametrize(
    "policy",
    [
        {"approval": ["off"]},
        {"approval": ["sensitive", "cost", "phase_gates"]},
        {"ask_from_usd": "0.10", "deny_from_usd": "0.10"},
        {"deny_from_usd": "0.50"},
        {"auto_approve_after": 299, "approval_seconds": 300},
    ],
    ids=str,
)
def test_what_is_just_within_its_bounds_can_be_meant(policy):
    assert [] == [*faults(Policy.model_validate(policy))]


def test_tools_are_not_looked_for_where_no_agent_is_known():
    assert [] == [*faults(Policy(rules=(rule(tools=["lok"]),)))]
