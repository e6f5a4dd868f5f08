"""The transport of the providers that have no SDK."""

import pytest

from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.providers import http
from cueline.providers.account import Account
from cueline.providers.http import HttpClient
from cueline.providers.openai.responses import ResponsesReply
from cueline.providers.patience import Patience
from cueline.testing.model_example import TEXT, text_of
from cueline.testing.model_server import Recorded, RecordedServer
from tests.providers.test_openai_contract import TestOpenAIResponses as Contract

WHOLE = Contract.recorded["text"]


@pytest.fixture
async def server():
    async with RecordedServer() as server:
        yield server


@pytest.fixture
async def ask(server):
    client = HttpClient(Account(base_url=server.base_url), {})

    async def ask_server():
        return await client.stream("/responses", {}, Patience(total=5), ResponsesReply(asked="m"))

    yield ask_server
    await client.retire()


async def test_a_connection_that_stays_open_takes_nothing_from_a_whole_reply(
    server, ask, monkeypatch
):
    monkeypatch.setattr(http, "REST_SECONDS", 0.05)
    server.answers.append(WHOLE)
    server.may_end.clear()
    server.stops_after = 1.0

    assert TEXT == text_of(await ask())


@pytest.mark.parametrize("more", [b"data: oops\n\n", b'data: {"type": "error", "code": "x"}\n\n'])
async def test_what_comes_after_a_whole_reply_takes_nothing_from_it(server, ask, more):
    server.answers.append(Recorded(WHOLE.body + more))

    assert TEXT == text_of(await ask())


# What it used is settled, and is not the whole reservation.
async def test_what_a_refused_reply_used_is_told(server, ask):
    server.answers.append(Contract.recorded["refusal"])

    with pytest.raises(ProviderRefusedError, match=r"^refused: ") as caught:
        await ask()

    assert {"input": 9, "output": 7, "cache_read": 0, "cache_write": 0} == caught.value.used


async def test_a_listing_that_is_not_json_is_malformed(server):
    client = HttpClient(Account(base_url=server.base_url), {})
    server.answers.append(Recorded(b"<html>", media_type="text/html"))

    with pytest.raises(ProviderUnavailableError, match=r"^malformed_reply: "):
        await client.get("/models", Patience(total=5))

    await client.retire()
