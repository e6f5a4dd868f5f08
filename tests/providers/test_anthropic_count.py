"""How many tokens a prompt has, by Anthropic's own count."""

import asyncio

import pytest

from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.events.agent import ToolSpec
from cueline.providers.patience import COUNT_SECONDS, Patience

LOOK = ToolSpec(name="look", description="Looks.", parameters={}, target="a:look", digest="d")
ENDED = [
    {"type": "message_start", "message": {"id": "m", "model": "m", "usage": {"input_tokens": 1}}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]


def will_count(vendor, body=b'{"input_tokens": 14}'):
    vendor.will_fail(200, body)


# C23
async def test_the_prompt_is_counted_as_it_is_sent(vendor, ask, count):
    fields = {"instructions": "Be brief.", "tools": (LOOK,), "parameters": {"temperature": 0.5}}
    will_count(vendor)
    vendor.will_say(*ENDED)

    counted = await count(vendor.url, **fields)
    await ask(vendor.url, **fields)

    assert 14 == counted
    assert ["/v1/messages/count_tokens", "/v1/messages"] == vendor.paths
    ours, sent = vendor.bodies
    assert {"stream", "max_tokens", "temperature"} == sent.keys() - ours.keys()
    assert ours == {name: sent[name] for name in ours}


# Whatever else it may add to the prompt, the endpoint does not count it.
async def test_what_cannot_be_counted_is_not_asked_about(vendor, count):
    assert await count(vendor.url, parameters={"mcp_servers": []}) is None
    assert [] == vendor.paths


FAULTS = {
    404: ProviderRefusedError,
    429: ProviderUnavailableError,
    500: ProviderUnavailableError,
    529: ProviderUnavailableError,
}


@pytest.mark.parametrize(("status", "fault"), FAULTS.items())
async def test_a_count_that_fails_is_not_tried_again(vendor, count, status, fault):
    vendor.will_fail(status, b"{}")

    with pytest.raises(fault):
        await count(vendor.url)

    assert 1 == len(vendor.paths)


@pytest.mark.parametrize("body", [b"{}", b'{"input_tokens": "many"}', b"[]", b"what?"])
async def test_what_is_not_a_count_is_malformed(vendor, count, body):
    will_count(vendor, body)

    with pytest.raises(ProviderUnavailableError, match="malformed_reply"):
        await count(vendor.url)


async def test_a_count_that_takes_long_is_given_up(vendor, count):
    vendor.may_answer.clear()
    will_count(vendor)

    with pytest.raises(ProviderUnavailableError, match="timeout"):
        await count(vendor.url, parameters={"timeout_seconds": 0.1})

    vendor.may_answer.set()


async def test_a_count_can_be_cancelled(vendor, count):
    vendor.may_answer.clear()
    will_count(vendor)
    counting = asyncio.create_task(count(vendor.url))
    await asyncio.to_thread(vendor.was_asked.wait)

    counting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await counting
    vendor.may_answer.set()


def test_a_count_is_waited_for_seconds_only():
    assert COUNT_SECONDS <= 2
    assert Patience(total=COUNT_SECONDS, chunk=COUNT_SECONDS) == Patience().of_a_count
    assert Patience(total=1, chunk=0.5) == Patience(total=1, chunk=0.5).of_a_count


async def test_an_answer_that_repeats_the_key_does_not_give_it_away(vendor, count):
    vendor.will_fail(400, b'{"error": {"type": "x", "message": "bad sk-test-0123456789"}}')

    with pytest.raises(ProviderRefusedError) as raised:
        await count(vendor.url)

    assert "sk-test" not in str(raised.value)
