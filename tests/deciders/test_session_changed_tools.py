"""Tools that have changed since they were recorded."""

import pytest

from cueline.deciders.session import Status, due
from cueline.deciders.session.due import CloseApproval
from cueline.events.codes import Cause
from cueline.events.inbox import ResumeAsked
from cueline.events.session import (
    MessageReceived,
    ModelRequested,
    PromptPrefixChanged,
    SessionWaiting,
    ToolFailed,
    ToolSkipped,
)
from cueline.testing.given import given
from tests.deciders.owed import runs
from tests.session_example import (
    AGENT,
    broken,
    question,
    received,
    running,
    tool,
    up_to_reply,
)

CHANGED = "The tool has changed since; nothing was run. Ask again, as the tool is now."
SHOUT = tool("shout", "read_only").model_copy(update={"digest": "another"})


def meeting(*calls):
    """Return a session in which `shout` turned out to be another than was recorded."""
    past = given().when(*up_to_reply(*calls), running("1.0", calls[0]))
    return past.when(broken("1.0", "tool_changed"))


def test_a_call_of_a_tool_that_has_changed_waits_for_a_person():
    past = meeting("shout").then(ToolFailed, SessionWaiting)

    wait = past.state.waiting
    cause = Cause(code="tool_failed", failure="tool_changed", message="gone")
    assert ("operator", cause) == (wait.kind, wait.cause)
    past.when(received(2, ResumeAsked()))
    assert ["1.0"] == runs(past)


def test_accepted_tools_are_those_that_the_session_goes_on_with():
    past = meeting("shout").when(received(2, ResumeAsked(tools=(SHOUT,))))

    past.then(
        MessageReceived,
        ToolSkipped(effect="1.0", reason=CHANGED),
        PromptPrefixChanged(reason="tools_changed", before="scripted m", after="scripted m"),
        ModelRequested,
    )
    assert SHOUT == past.state.setup.tools["shout"]
    assert [t.name for t in AGENT.tools] == [t.name for t in past.state.agent.tools]
    assert "" == past.facts[-1].prefix_digest


def test_the_approval_of_a_changed_tools_call_is_closed():
    changed = tool("delete", sensitive=True).model_copy(update={"digest": "another"})
    past = given().when(*up_to_reply("delete"), question("1.0", "1.1.0.1"))

    past.when(received(2, ResumeAsked(tools=(changed,))))

    (closing,) = [effect for effect in due(past.state) if isinstance(effect, CloseApproval)]
    assert "change" == closing.superseded_by
    assert past.state.status is Status.RUNNING


@pytest.mark.parametrize("calls", [("look", "shout"), ("look", "nonsense", "shout")])
def test_calls_of_other_tools_are_run_all_the_same(calls):
    past = given().when(*up_to_reply(*calls), received(2, ResumeAsked(tools=(SHOUT,))))

    assert ["1.0"] == runs(past)
