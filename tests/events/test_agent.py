"""What an agent is recorded with."""

import pytest

from cueline.events.agent import Hook, url_variable


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
