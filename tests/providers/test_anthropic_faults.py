"""What the Anthropic model makes of a provider that fails (003-068, C3, D30).

The real SDK asks llmock, a real server.
"""

import pytest

from cueline.errors import ProviderRefusedError, ProviderUnavailableError

TRANSIENT = {
    408: "timeout",
    429: "rate_limited",
    500: "unavailable",
    502: "unavailable",
    503: "unavailable",
    504: "timeout",
    529: "overloaded",
}
PERMANENT = {
    400: "invalid_request",
    401: "auth",
    402: "auth",
    403: "auth",
    404: "invalid_request",
    413: "context_too_long",
    422: "invalid_request",
}


@pytest.fixture
def url(llmock):
    return llmock.base_url("anthropic")


@pytest.mark.parametrize(("status", "kind"), TRANSIENT.items())
async def test_what_may_pass_is_worth_another_attempt(llmock, url, ask, status, kind):
    llmock.fail(status, retry_after=1.5)

    with pytest.raises(ProviderUnavailableError) as caught:
        await ask(url)

    assert (kind, 1.5) == (caught.value.kind, caught.value.retry_after)


@pytest.mark.parametrize(("status", "kind"), PERMANENT.items())
async def test_what_will_not_pass_is_not_tried_again(llmock, url, ask, status, kind):
    llmock.fail(status)

    with pytest.raises(ProviderRefusedError) as caught:
        await ask(url)

    assert kind == caught.value.kind


async def test_the_sdk_does_not_try_again_by_itself(llmock, url, ask):
    llmock.fail(529, times=None)

    with pytest.raises(ProviderUnavailableError):
        await ask(url)

    assert 1 == len(llmock.requests)


async def test_a_model_that_is_not_there_is_named(llmock, url, ask):
    llmock.fail(404)

    with pytest.raises(ProviderRefusedError, match="model claude-none-1: "):
        await ask(url, model="claude-none-1")


@pytest.mark.parametrize("code", [None, "context_length_exceeded"])
async def test_a_prompt_that_is_too_long_is_known_by_a_code_or_the_vendors_words(
    llmock, url, ask, code
):
    words = "no" if code else "prompt is too long: 208310 tokens > 200000 maximum"
    llmock.fail(400, message=words, code=code)

    with pytest.raises(ProviderRefusedError) as caught:
        await ask(url)

    assert "context_too_long" == caught.value.kind


async def test_a_stream_cut_short_is_no_reply(llmock, url, ask):
    llmock.truncate(after_chunks=3)

    with pytest.raises(ProviderUnavailableError, match="malformed_reply: the stream ended"):
        await ask(url)
    await ask(url)

    llmock.assert_resilient()


async def test_a_stream_that_loses_its_connection_is_no_reply(llmock, url, ask):
    llmock.disconnect(after_chunks=2)

    with pytest.raises(ProviderUnavailableError, match="network: RemoteProtocolError"):
        await ask(url)


async def test_a_chunk_that_is_not_json_spoils_the_reply(llmock, url, ask):
    llmock.corrupt(after_chunks=4)

    with pytest.raises(ProviderUnavailableError, match=r"malformed_reply: .*JSONDecodeError"):
        await ask(url)


async def test_a_stream_that_falls_silent_is_given_up(llmock, url, ask):
    await ask(url)  # so that a connection is there: to make one takes time, too
    llmock.stall(seconds=30)

    with pytest.raises(ProviderUnavailableError, match=r"timeout: silence \(ReadTimeout\)"):
        await ask(url, parameters={"chunk_timeout_seconds": 0.1})


async def test_a_reply_that_takes_too_long_is_given_up(llmock, url, ask):
    llmock.slow_first_token(30)

    with pytest.raises(ProviderUnavailableError, match=r"timeout: no whole reply in 0\.1 s"):
        await ask(url, parameters={"timeout_seconds": 0.1})


async def test_an_address_where_nobody_listens_is_worth_another_attempt(vendor, ask):
    vendor.server_close()

    with pytest.raises(
        ProviderUnavailableError, match=r"network: ConnectError.*\(127\.0\.0\.1\)"
    ) as caught:
        await ask(vendor.url)

    assert {} == caught.value.used, "it is known to have cost nothing"
