"""What an agent is recorded with."""

import pytest
from pydantic import ValidationError

from cueline.events.agent import Fallback, Hook, url_variable
from cueline.events.agent_parts import RetryPolicy


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


@pytest.mark.parametrize("wrong", [True, 1e9, float("inf"), float("nan")])
def test_no_other_time_can_be_set(wrong):
    with pytest.raises(ValidationError):
        RetryPolicy(cap_seconds=wrong)


def test_parameters_that_json_cannot_say_are_refused():
    with pytest.raises(ValidationError, match="nan and inf are nothing that JSON can say"):
        Fallback(provider="scripted", model="m", parameters={"temperature": float("nan")})
