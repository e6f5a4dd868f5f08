"""Which retry comes next, counted from the facts."""

from datetime import UTC, datetime, timedelta

import pytest

from cueline.console.session_lines import Attempts
from cueline.events.agent import AgentSpec, Fallback
from cueline.events.agent_parts import RetryPolicy
from cueline.events.inbox import ResumeAsked
from cueline.events.session import (
    MessageReceived,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    SessionStarted,
)

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
AGENT = AgentSpec(
    name="a",
    provider="p",
    model="m",
    fallback=(Fallback(provider="p", model="n", retry=RetryPolicy(max_retries=7)),),
)


def failed(effect="1.m"):
    return ModelFailed(
        effect=effect,
        attempt=1,
        kind="network",
        message="",
        failed_at=NOW,
        retry_at=NOW + timedelta(seconds=4),
    )


def asked(fallback):
    return ModelRequested(effect="1.m", attempt=2, digest="", prefix_digest="", fallback=fallback)


RESUMED = MessageReceived(inbox_version=2, recorded_at=NOW, message=ResumeAsked())


@pytest.mark.parametrize(
    ("between", "effect", "told"),
    [
        ([asked(0)], "1.m", "retry 2/3"),
        ([asked(1)], "1.m", "retry 1/7"),
        ([RESUMED], "1.m", "retry 1/3"),
        ([ModelReplied(effect="1.m", attempt=2, stop_reason="tool_use")], "2.m", "retry 1/3"),
    ],
    ids=["the same model", "another model", "after a resume", "the next turn"],
)
def test_a_retry_is_counted_as_the_rules_count_it(between, effect, told):
    attempts = Attempts()
    started = SessionStarted(agent=AGENT, goal=None, open=False, attached=False, epoch=1)

    for fact in (started, asked(0), failed(), *between, failed(effect)):
        attempts.learn(fact)

    assert f"; {told} in 4.0 s" == attempts.next_of(failed(effect), None)
