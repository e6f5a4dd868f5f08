"""What a model is told of a call that was not run to its end."""

import pytest

from cueline.deciders.session.failed_call import circuit_open, runner_gone
from cueline.events.agent_parts import Demands
from cueline.events.codes import Cause


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("breaker_open", "circuit_open: the tool search keeps failing (timeout)"),
        ("breaker_held", "circuit_open: the tool search asks to be left alone (timeout)"),
        ("breaker_probing", "circuit_open: the tool search is tried by one call"),
    ],
)
def test_the_model_is_told_why_a_breaker_keeps_a_call_back(code, told):
    cause = Cause(code=code, dependency="the tool search", failure="timeout")

    assert told == circuit_open(cause)


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (Cause(code="no_runner"), "there is no runner"),
        (Cause(code="no_runner", unmet=Demands(runner="big")), "no runner offers the name big"),
        (Cause(code="runner_unreachable", runner="r1"), "runner r1 cannot be reached"),
        (Cause(code="runner_unreachable"), "no runner can be reached"),
    ],
)
def test_the_model_is_told_that_no_runner_was_found(cause, told):
    assert told == runner_gone(cause)
