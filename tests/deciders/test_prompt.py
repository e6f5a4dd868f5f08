"""The prompt as a fold: what the model is told, and in which order."""

import json

import pytest

from cueline.deciders.prompt import GO_ON, Prompt, encode, images_of, opening_digest, result_of
from cueline.events.message import ImageBlock, ToolMessage
from cueline.events.session import ModelRequested, SessionTakenOver, ToolReconciled, ToolSkipped
from cueline.testing.given import given
from tests.session_example import (
    AGENT,
    NOW,
    agent,
    asking,
    broken,
    returned,
    running,
    said,
    saying,
    started,
    up_to_reply,
)


def prompt_of(*commands):
    past, prompt = given(), Prompt()
    for command in commands:
        for fact in past.when(command).facts:
            prompt.add(fact)
    return prompt


def spoken(prompt):
    return [json.loads(message) for message in prompt.messages]


def test_results_come_in_call_order_and_messages_after_them():
    prompt = prompt_of(
        *up_to_reply("look", "put"),
        said(2, "And?"),
        running("1.0", "look"),
        running("1.1", "put"),
        returned("1.1"),
        returned("1.0"),
    )

    assert ["user", "assistant", "tool", "tool", "user"] == [m["role"] for m in spoken(prompt)]
    assert ["call-1-0", "call-1-1"] == [m["call"] for m in spoken(prompt)[2:4]]


def test_what_was_not_requested_yet_is_not_in_the_prompt():
    prompt = prompt_of(*up_to_reply("look"), said(2, "And?"))

    assert ["user", "assistant"] == [m["role"] for m in spoken(prompt)]
    assert ["look"] == [call.name for call in prompt.calls.values()]


def test_a_resumed_session_sends_the_same_bytes():
    begun = [*up_to_reply("look"), running("1.0", "look")]
    taken = SessionTakenOver(epoch=2, at=NOW)

    undisturbed = prompt_of(*begun, returned("1.0"), asking(2))
    again = [broken("1.0", "lost"), running("1.0", "look", 2), returned("1.0", attempt=2)]
    resumed = prompt_of(*begun, taken, *again, asking(2), taken)

    assert undisturbed.messages == resumed.messages
    assert undisturbed.digest == resumed.digest


def test_a_request_says_which_part_the_last_one_had():
    past = given().when(started())
    first = past.facts[1]

    past.when(asking(), saying("look"), running("1.0", "look"), returned("1.0"))

    second = next(fact for fact in past.facts if isinstance(fact, ModelRequested))
    assert first.digest == second.prefix_digest != second.digest


def test_an_agent_that_thinks_otherwise_has_another_prompt():
    other = AGENT.model_copy(update={"instructions": "Think again."})

    assert opening_digest(AGENT) != opening_digest(other)
    assert prompt_of(started()).digest != prompt_of(started(other)).digest


def test_facts_that_the_model_does_not_see_leave_the_prompt_unchanged():
    """So a limit, or whatever an agent can be told some day, breaks no promise of I10."""
    assert opening_digest(AGENT) == opening_digest(agent(max_turns=1))


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        (returned("1.0", "yes"), ("yes", False)),
        (broken("1.0", "timeout"), ("timeout: gone", True)),
        (ToolSkipped(effect="1.0", reason="no"), ("no", True)),
        (ToolSkipped(effect="1.0", reason="no", degraded=True), (f"no\n{GO_ON}", True)),
        (ToolReconciled(effect="1.0", outcome="happened", by="tool"), ("", False)),
        (ToolReconciled(effect="1.0", outcome="unknown", by="policy", output="?"), ("?", False)),
        (ToolReconciled(effect="1.0", outcome="unknown", by="tool"), None),
        (ToolReconciled(effect="1.0", outcome="did_not_happen", by="tool"), None),
    ],
    ids=[
        "returned",
        "failed",
        "skipped",
        "done without",
        "happened",
        "told",
        "cannot tell",
        "runs again",
    ],
)
def test_the_model_is_told_what_became_of_a_call_that_is_over(fact, told):
    assert told == result_of(fact)


def test_a_message_is_encoded_as_pydantic_writes_it():
    message = ToolMessage(call="c", text="größer 🦜 \u2028 \x00")

    assert message.model_dump_json().encode() == encode(message)


def test_the_image_of_a_result_is_shown_to_the_model_with_its_text():
    seen = returned("1.0", "a chart").model_copy(
        update={"image": "aGk=", "media_type": "image/png"}
    )

    assert (ImageBlock(media_type="image/png", data="aGk="),) == images_of(seen)
    assert () == images_of(returned("1.0", "no chart"))
