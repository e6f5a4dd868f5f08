"""Rules walk the calls that are not at rest, and overlook none."""

import pytest

from tests.deciders.test_session_children import calling, delegated, ended
from tests.session_example import received, returned, running

STORY = (
    delegated(0),
    delegated(1, "async_callback"),
    delegated(2),
    received(2, ended(2, text="Seen.")),
    received(3, ended(0, "failed", error_code="unknown", error="No.")),
    running("1.3", "look"),
    returned("1.3"),
)
AWAKE = (["1.1", "1.2", "1.3"], ["1.2", "1.3"], ["1.3"], ["1.3"], ["1.3"], ["1.3"], [])
DELEGATED = (1, 1, 2, 1, 0, 0, 0)


@pytest.mark.parametrize("facts", range(1, len(STORY) + 1))
def test_a_call_is_at_rest_while_its_child_runs_and_when_it_is_over(facts):
    turn = calling("helper", "other", "helper", "look").when(*STORY[:facts]).state.turn

    assert (AWAKE[facts - 1], DELEGATED[facts - 1]) == (
        [call.effect for call in turn.awake],
        turn.delegated,
    )
    assert turn == turn.with_calls(turn.calls)
