"""What an agent is recorded with."""

import pytest
from pydantic import ValidationError

from cueline.events.agent import Fallback, Hook, Policy, RetryPolicy, url_variable
from cueline.events.inbox import StartAsked
from cueline.events.number import LONGEST_SECONDS
from cueline.events.upcast import UPCASTERS
from tests.session_example import AGENT, NOW


# I11: a URL that holds a token is in a variable, and only its name is recorded.
@pytest.mark.parametrize(
    ("hook", "variable"),
    [
        (Hook(on="asked", url="$HOOK_URL"), "HOOK_URL"),
        (Hook(on="asked", url="https://example.org/$x"), None),
        (Hook(on="asked", command=("$HOOK_URL",)), None),
    ],
)
def test_a_hook_may_name_the_variable_that_holds_its_url(hook, variable):
    assert variable == url_variable(hook)


def test_times_that_could_be_set_once_are_read_for_ever():
    asked = StartAsked(agent=AGENT, asked_at=NOW).model_dump(mode="json")
    for part, time in [
        ("retry", "base_seconds"),
        ("retry", "cap_seconds"),
        ("policy", "approval_seconds"),
    ]:
        asked["agent"][part][time] = 1e9

    read = StartAsked.model_validate(UPCASTERS["StartAsked", 1](asked)).agent

    longest = LONGEST_SECONDS
    assert RetryPolicy(base_seconds=longest, cap_seconds=longest) == read.retry
    assert Policy(approval_seconds=longest) == read.policy


@pytest.mark.parametrize("wrong", [True, 1e9, float("inf"), float("nan")])
def test_no_other_time_can_be_set(wrong):
    with pytest.raises(ValidationError):
        RetryPolicy(cap_seconds=wrong)


def test_parameters_that_json_cannot_say_are_refused():
    with pytest.raises(ValidationError, match="nan and inf are nothing that JSON can say"):
        Fallback(provider="scripted", model="m", parameters={"temperature": float("nan")})
