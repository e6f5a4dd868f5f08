"""Ollama's models hold the contract of all models, with tools and without (000-069)."""

import pytest

from cueline.providers.ollama.provider import PROVIDER
from cueline.testing.model_contract import ModelContract
from cueline.testing.model_server import error, lines
from tests.providers.aimock_server import AimockServer, TextCallServer
from tests.providers.test_ollama import done, said

RECORDED = {
    "text": lines(
        *(said(content=text) for text in ("It rains, ", "as it ", "often ", "does.")), done()
    ),
    "thinking": lines(said(thinking="Paris, then."), said(content="Let me see."), done()),
    "limit": lines(said(content="It "), done("length")),
    "too long": error(400, {"error": "the input length exceeds the context length"}),
    "error in stream": lines(said(content="It "), {"error": "llama runner process died"}),
}


class TestOllama(ModelContract):
    title = "ollama"
    provider = PROVIDER
    model = "qwen3"
    parameters = {"tool_protocol": "native"}  # noqa: RUF012
    recorded = RECORDED
    # The server parses the arguments: there is no half of a call.
    server_lacks = frozenset({"Malformed arguments"})

    @pytest.fixture
    def server(self, aimock):
        with AimockServer(aimock) as server:
            yield server


# 000-030, 000-058
class TestOllamaWithoutTools(ModelContract):
    title = "ollama (tools in the prompt)"
    provider = PROVIDER
    model = "gemma"
    parameters = {"tool_protocol": "prompt"}  # noqa: RUF012
    recorded = {  # noqa: RUF012
        **RECORDED,
        "cut": lines(
            said(content='<tool_call>{"name": "get_weather", "arguments": {"city": "Pa'),
            done("length"),
        ),
    }

    @pytest.fixture
    def server(self, aimock):
        with TextCallServer(aimock) as server:
            yield server
