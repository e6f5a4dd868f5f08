"""A tool that asks a person, through the host: what is recorded, and what it gets back."""

import json

import pytest

from cueline.actors.tool_port import ToolQuestion
from cueline.events.input_request import REQUESTS_LIMIT, InputRequest
from cueline.events.session import ApprovalRequested, ToolAsked, ToolFailed, ToolReturned
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SessionHarness

SCHEMA = {"type": "object", "properties": {"colour": {"type": "string"}}}


class Asks:
    """A tool that asks first, and tells what it was given."""

    def __init__(self, message="Which?", state="where I was"):
        self.question = ToolQuestion(
            (InputRequest(key="which", message=message, parameters=SCHEMA),), state
        )
        self.orders = []

    async def __call__(self, order):
        self.orders.append(order)
        if order.given is None:
            return self.question
        return json.dumps([order.given.answers, order.given.state])


def scene_of(act, **more):
    return SessionHarness([asks_for(("read", {})), says("Done.")], act=act, **more)


async def test_the_question_is_put_to_a_person_and_the_session_rests():
    asks = Asks()
    scene = scene_of(asks)

    await scene.begin()

    asked = await scene.last(ApprovalRequested)
    assert ("what_to_answer", asks.question.requests) == (asked.question, asked.requests)
    assert "waiting" == (await scene.state()).status


@pytest.mark.parametrize(
    ("result", "answers"),
    [
        ('{"which": {"colour": "red"}}', {"which": {"colour": "red"}}),
        ("red", {"which": "red"}),  # as no client sends it, and as a log may hold it
    ],
)
async def test_the_tool_gets_the_answer_and_its_state(result, answers):
    asks = Asks()
    scene = scene_of(asks)
    await scene.begin()

    await scene.decide(result=result)

    returned = await scene.last(ToolReturned)
    assert [answers, "where I was"] == json.loads(returned.output)
    first, second = asks.orders
    assert (1, 2, first.digest) == (first.attempt, second.attempt, second.digest)
    assert second.given.digest == (await scene.last(ToolAsked)).digest


async def test_a_secret_in_the_question_is_removed():
    scene = scene_of(Asks("Is hunter22hunter22 right?"), secrets=["hunter22hunter22"])

    await scene.begin()

    asked = await scene.last(ToolAsked)
    assert "hunter22" not in asked.requests[0].message
    assert asked.cleaned


@pytest.mark.parametrize("question", [Asks("x" * REQUESTS_LIMIT).question, ToolQuestion(())])
async def test_a_question_that_is_none_or_too_long_fails_the_call(question):
    asks = Asks()
    asks.question = question
    scene = scene_of(asks)

    await scene.begin()

    failed = await scene.last(ToolFailed)
    assert "asks a person for too much" in failed.message


async def test_a_refusal_is_told_to_the_model():
    asks = Asks()
    scene = scene_of(asks)
    await scene.begin()

    await scene.decide("deny")

    assert 1 == len(asks.orders)
    assert "rejected by human operator" in await scene.told()
