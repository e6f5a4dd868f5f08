"""What Anthropic, or what stands in its place, streams is no whole reply: a failed attempt."""

import pytest

from cueline.errors import ProviderUnavailableError
from cueline.events.message import TextBlock, Usage
from cueline.providers.anthropic import connection
from tests.providers.streaming import block, ended, started

SAID = [
    started(input_tokens=1),
    *block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "a"}),
    *ended("end_turn", output_tokens=1),
]
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
    "nothing": [],
    "an error of no type": [started(), {"type": "error"}],
}


@pytest.mark.parametrize("events", BROKEN.values(), ids=BROKEN)
async def test_what_is_not_a_whole_reply_is_a_failed_attempt(vendor, ask, events):
    vendor.will_say(*events)

    with pytest.raises(ProviderUnavailableError, match="malformed_reply"):
        await ask(vendor.url)


@pytest.mark.parametrize("usage", [{"input_tokens": -1}, {"input_tokens": "ten"}])
async def test_a_reply_counts_though_its_usage_cannot_be_read(vendor, ask, usage):
    vendor.will_say(started(**usage), *SAID[1:])

    reply = await ask(vendor.url)

    assert ((TextBlock(text="a"),), Usage()) == (reply.content, reply.usage)


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


AFTERWARDS = {
    "an end of another dialect": b"event: done\ndata: [DONE]\n\n",
    "an error": b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n',
    "a piece without its fields": b'event: message_delta\ndata: {"type":"message_delta"}\n\n',
}


@pytest.mark.parametrize("more", AFTERWARDS.values(), ids=AFTERWARDS)
async def test_what_comes_after_a_whole_reply_takes_nothing_from_it(vendor, ask, more):
    vendor.will_say(*SAID)
    vendor.will_stream(vendor.answers.pop()[2] + more)

    assert (TextBlock(text="a"),) == (await ask(vendor.url)).content


async def test_a_connection_that_is_lost_after_a_whole_reply_takes_nothing_from_it(vendor, ask):
    vendor.will_say(*SAID)
    vendor.will_cut(vendor.answers.pop()[2])

    assert (TextBlock(text="a"),) == (await ask(vendor.url)).content


async def test_a_connection_that_stays_open_after_a_whole_reply_takes_nothing_from_it(
    vendor, ask, monkeypatch
):
    monkeypatch.setattr(connection, "REST_SECONDS", 0.05)
    vendor.will_say(*SAID)
    vendor.will_cut(vendor.answers.pop()[2])
    vendor.may_close.clear()

    try:
        reply = await ask(vendor.url, parameters={"timeout_seconds": 2})
    finally:
        vendor.may_close.set()

    assert (TextBlock(text="a"),) == reply.content


async def test_a_reply_that_begins_anew_after_its_end_is_to_end_anew(vendor, ask):
    vendor.will_say(*SAID, started())

    with pytest.raises(ProviderUnavailableError, match="malformed_reply"):
        await ask(vendor.url)


async def test_a_reply_that_is_cut_off_after_its_usage_is_paid_for(vendor, ask):
    vendor.will_say(*SAID[:-1])
    vendor.will_cut(vendor.answers.pop()[2])

    with pytest.raises(ProviderUnavailableError, match="network") as caught:
        await ask(vendor.url)

    assert {"input": 1, "output": 1} == {n: used for n, used in caught.value.used.items() if used}
