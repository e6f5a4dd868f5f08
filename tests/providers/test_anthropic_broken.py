"""What Anthropic, or what stands in its place, streams is no whole reply: a failed attempt."""

import pytest

from cueline.errors import ProviderUnavailableError
from tests.providers.streaming import block, ended, started

BROKEN = {
    "no stop reason": [started(), {"type": "message_stop"}],
    "no end": [started(), *ended("end_turn")][:-1],
    "half a block": [
        started(),
        *list(block(0, {"type": "text", "text": ""}))[:-1],
        *ended("end_turn"),
    ],
    "a piece of no block": [
        started(),
        *list(block(0, {}, {"type": "text_delta", "text": "a"}))[1:],
    ],
    "no message": [{"type": "message_start"}],
    "tokens below zero": [started(input_tokens=-1), *ended("end_turn", output_tokens=1)],
    "nothing": [],
    "an error of no type": [started(), {"type": "error"}],
}


@pytest.mark.parametrize("events", BROKEN.values(), ids=BROKEN)
async def test_what_is_not_a_whole_reply_is_a_failed_attempt(vendor, ask, events):
    vendor.will_say(*events)

    with pytest.raises(ProviderUnavailableError, match="malformed_reply"):
        await ask(vendor.url)


GARBAGE = {
    "a number": b"event: message_start\ndata: 5\n\n",
    "no fields": b"event: message_start\ndata: {}\n\n",
    "no text": b"event: message_start\ndata: \xff\xfe\n\n",
    "an error in prose": b"event: error\ndata: oops\n\n",
    "a page": b"<html>Sign in to the hotel's network</html>",
}


@pytest.mark.parametrize("stream", GARBAGE.values(), ids=GARBAGE)
async def test_what_is_no_reply_at_all_is_a_failed_attempt(vendor, ask, stream):
    vendor.will_stream(stream)

    with pytest.raises(ProviderUnavailableError, match="malformed_reply"):
        await ask(vendor.url)


async def test_a_reply_that_cannot_be_unpacked_is_a_failed_attempt(vendor, ask):
    vendor.will_stream(b"no gzip", **{"content-encoding": "gzip"})

    with pytest.raises(ProviderUnavailableError, match="network"):
        await ask(vendor.url)


async def test_an_error_in_the_middle_of_a_stream_is_known_by_its_type(vendor, ask):
    error = {"type": "overloaded_error", "message": "Overloaded"}
    vendor.will_say(started(), {"type": "error", "error": error})

    with pytest.raises(ProviderUnavailableError, match="overloaded: "):
        await ask(vendor.url)
