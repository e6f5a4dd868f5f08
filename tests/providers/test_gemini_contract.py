"""Gemini's models hold the contract of all models."""

import pytest

from cueline.providers.gemini.provider import PROVIDER
from cueline.testing.model_contract import ModelContract
from cueline.testing.model_server import error, events
from tests.providers.servers import LlmockServer
from tests.providers.test_gemini import done, said

THOUGHT = said({"text": "Paris, then.", "thought": True})
TEXTS = [said({"text": text}) for text in ("It rains, ", "as it ", "often ", "does.")]
TOO_LONG = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
BUSY = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}


# 000-063
class TestGemini(ModelContract):
    provider = PROVIDER
    model = "gemini-3.8-flash"
    signature = "c2ln"
    # The API sends arguments in one piece, parsed: there is no half of a call.
    server_lacks = frozenset({"Malformed arguments"})
    recorded = {  # noqa: RUF012
        "text": events(*TEXTS, done()),
        "thinking": events(
            THOUGHT, said({"text": "Let me see.", "thoughtSignature": "c2ln"}), done()
        ),
        "cached": events(
            TEXTS[0],
            done(cachedContentTokenCount=70, candidatesTokenCount=3, thoughtsTokenCount=30),
        ),
        "limit": events(TEXTS[0], done("MAX_TOKENS")),
        "too long": error(
            400, {"error": {"code": 400, "message": TOO_LONG, "status": "INVALID_ARGUMENT"}}
        ),
        "refusal": events(done("LANGUAGE")),
        "filtered": events(done("SAFETY")),
        "error in stream": events(TEXTS[0], BUSY),
    }

    @pytest.fixture
    def server(self, llmock):
        return LlmockServer(llmock, llmock.base_url("gemini"))
