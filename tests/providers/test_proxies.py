"""What a proxy, or a redirect, answers is not taken for the vendor's word."""

import asyncio

import pytest

from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.events.message import UserMessage
from cueline.providers.factory import account_for
from cueline.providers.registry import provider_named

KEYS = {"anthropic": "ANTHROPIC_API_KEY", "gemini": "GEMINI_API_KEY", "openai": "OPENAI_API_KEY"}
PAGE = b"<html>Blocked by your company</html>"

each_vendor = pytest.mark.parametrize("name", KEYS)


@pytest.fixture
async def ask(agent, request_for):
    """Ask the model of a provider at *url*."""
    models = []

    async def ask_at(name, url):
        fields = {"provider": name, "model": "m", "base_url": url}
        account = account_for(agent(**fields), {KEYS[name]: "sk-test-0123456789"})
        models.append(provider_named(name).make(account, None))
        return await models[-1].reply(request_for(messages=(UserMessage(text="hi"),), **fields))

    yield ask_at
    for model in models:
        await model.close()


@pytest.fixture
async def proxy(monkeypatch):
    """A proxy that lets nobody through."""

    async def refuse(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        monkeypatch.delenv("NO_PROXY")
        monkeypatch.delenv("no_proxy", raising=False)
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        yield


@each_vendor
@pytest.mark.usefixtures("proxy")
async def test_a_proxy_that_refuses_the_connection_is_named(ask, name):
    with pytest.raises(ProviderUnavailableError, match=r"network: the proxy .* refused .*403") as e:
        await ask(name, "https://api.example.com")

    assert {} == e.value.used


# The key is not wrong: nobody has read it.
@each_vendor
@pytest.mark.parametrize("status", [403, 407])
async def test_a_page_of_a_proxy_is_not_the_vendors_refusal(vendor, ask, name, status):
    vendor.answers.append((status, {"content-type": "text/html"}, PAGE))

    with pytest.raises(ProviderUnavailableError, match=f"network: HTTP {status} of a proxy"):
        await ask(name, vendor.url)


@each_vendor
async def test_a_key_that_the_vendor_refuses_is_refused(vendor, ask, name):
    vendor.will_fail(403, b'{"error": {"message": "no"}}')

    with pytest.raises(ProviderRefusedError, match="auth: HTTP 403"):
        await ask(name, vendor.url)


@each_vendor
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_names_where_to(vendor, ask, name, status):
    vendor.will_fail(status, b"", location="https://new.example.com/v1/messages")

    with pytest.raises(ProviderRefusedError, match=r"redirects to https://new\.example\.com/v1"):
        await ask(name, vendor.url)
