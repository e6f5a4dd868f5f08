"""Calls the Gemini API."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from cueline.actors.model_port import Delta, DeltaSink, ModelReply, ModelRequest, drop_delta
from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.events.message import Block, OpaqueBlock, TextBlock, ThinkingBlock, ToolCall, Usage
from cueline.providers.account import Account
from cueline.providers.event_stream import count_of, tool_call
from cueline.providers.fault import Fault, error_in, fault_of
from cueline.providers.gemini.request import (
    PROVIDER,
    SIGNATURE,
    count_body,
    model_path,
    request_body,
)
from cueline.providers.http import HttpClient, PartialReply, malformed
from cueline.providers.patience import Patience, patience_of
from cueline.providers.tool_protocol import ToolProtocol, as_asked

KINDS: Final = {
    "API_KEY_INVALID": "authentication_error",
    "FAILED_PRECONDITION": "permission_error",  # no billing, or not in this country
    "INVALID_ARGUMENT": "invalid_request_error",
    "RESOURCE_EXHAUSTED": "rate_limit_error",
    "UNAVAILABLE": "server_error",
}
"""The type of an error by its reason or status, if the HTTP status is not specific enough."""


def gemini_fault(status: int, text: str, headers: Mapping[str, str]) -> Fault:
    """Return the error for an answer with the *status* of an error."""
    error = error_in(text)
    if not isinstance(error, Mapping):
        return fault_of(status, None, text or "no message", headers)
    details = list(details_of(error))
    reasons = (*(detail.get("reason") for detail in details), error.get("status"))
    kind = next((KINDS[name] for name in reasons if isinstance(name, str) and name in KINDS), None)
    delays = [detail["retryDelay"] for detail in details if "retryDelay" in detail]
    asked = {"retry-after": str(delays[0]).removesuffix("s")} if delays else {}
    code = error.get("code")
    return fault_of(
        code if status == 200 and isinstance(code, int) else status,  # noqa: PLR2004 - within a stream
        kind or error.get("status"),
        str(error.get("message") or text),
        {**asked, **headers},
    )


def details_of(error: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the readable details of an error."""
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, Mapping):
            yield detail


CUT: Final = "MAX_TOKENS"
FINISHED: Final = frozenset({"STOP", "FUNCTION_CALL", CUT})
"""The stop reasons; only gateways send `FUNCTION_CALL`."""
FILTERED: Final = frozenset(
    {
        "BLOCKLIST",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "IMAGE_SAFETY",
        "PROHIBITED_CONTENT",
        "RECITATION",
        "SAFETY",
        "SPII",
    }
)
"""The stop reasons of the filter, which would stop the same request again."""
DECLINED: Final = frozenset({"LANGUAGE"})


class StreamedReply(PartialReply):
    """The received part of a reply."""

    def __init__(self, deltas: DeltaSink = drop_delta, **about: Any) -> None:
        super().__init__(deltas, **about)
        self._content: list[Block] = []
        self._kind: Literal["text", "thinking"] = "text"
        self._open: list[str] = []
        """The pieces of the open block."""
        self._calls: list[ToolCall] = []
        self._reason = self._reason_text = self._blocked = ""
        self._counts: dict[str, Any] = {}

    def add(self, piece: Any) -> None:
        if piece.get("error"):
            raise gemini_fault(200, json.dumps(piece), {})
        self._model = piece.get("modelVersion") or self._model
        self._counts = piece.get("usageMetadata") or self._counts
        if blocked := (piece.get("promptFeedback") or {}).get("blockReason"):
            self._blocked, self.ended = blocked, True
        for candidate in (piece.get("candidates") or ())[:1]:
            for part in (candidate.get("content") or {}).get("parts") or ():
                self._add_part(part)
            if reason := candidate.get("finishReason"):
                self._reason, self.ended = reason, True
                self._reason_text = candidate.get("finishMessage") or ""

    def _add_part(self, part: Any) -> None:
        signature = part.get(SIGNATURE)
        if "functionCall" in part:
            self._close()
            self._calls.append(self._call(part["functionCall"], signature))
        elif "text" in part:
            self._add_text("thinking" if part.get("thought") else "text", part["text"])
            if signature:
                self._close(signature)
        else:
            self._close()
            self._content.append(self._opaque(part))

    def _add_text(self, kind: Literal["text", "thinking"], text: str) -> None:
        if kind != self._kind:
            self._close()
            self._kind = kind
        if not text:
            return
        self._open.append(text)
        self._deltas(Delta(kind, text))

    def _close(self, signature: str = "") -> None:
        """End the open block, with its signature."""
        text, self._open = "".join(self._open), []
        if self._kind == "thinking":
            if text or signature:
                thoughts = ThinkingBlock(text=text, signature=signature, provider=PROVIDER)
                self._content.append(thoughts)
            return
        if text:
            self._content.append(TextBlock(text=text))
        if signature:
            self._content.append(self._opaque({SIGNATURE: signature}))

    def _opaque(self, data: dict[str, Any]) -> OpaqueBlock:
        return OpaqueBlock(provider=PROVIDER, model=self._asked, data=data)

    def _call(self, asked: Any, signature: str | None) -> ToolCall:
        call_id = asked.get("id") or f"{self._prefix}{len(self._calls)}"
        call = tool_call(call_id, asked["name"], json.dumps(asked.get("args") or {}))
        if not signature:
            return call
        return call.model_copy(update={"opaque": self._opaque({SIGNATURE: signature})})

    def _usage(self) -> Usage | None:
        """Return the usage; thoughts are paid for as output."""
        if not self._counts:
            return None
        counts = {n: count_of(v) for n, v in self._counts.items() if n.endswith("TokenCount")}
        cached = counts.get("cachedContentTokenCount", 0)
        sent = counts.get("promptTokenCount", 0) + counts.get("toolUsePromptTokenCount", 0)
        output = counts.get("candidatesTokenCount", 0) + counts.get("thoughtsTokenCount", 0)
        return Usage(input=max(0, sent - cached), output=output, cache_read=cached)

    def whole(self) -> ModelReply:
        self._check()
        self._close()
        return self._made(self._content, self._calls, cut=self._reason == CUT)

    def _check(self) -> None:
        """Raise if the reply is not whole, or was stopped."""
        self._check_ended()
        if self._blocked:
            raise ProviderRefusedError("content_filtered", f"prompt blocked ({self._blocked})")
        told = f"{self._reason}{self._reason_text and f': {self._reason_text}'}"
        if self._reason in FILTERED:
            raise ProviderRefusedError("content_filtered", f"the answer was stopped ({told})")
        if self._reason in DECLINED:
            raise ProviderRefusedError("refused", f"the model declined to answer ({told})")
        if self._reason not in FINISHED:
            raise ProviderUnavailableError("malformed_reply", f"the answer ended with {told}")


_LISTING = Patience(total=30, chunk=30)


class GeminiClient(HttpClient):
    """A client of one account, for any number of calls at a time."""

    def __init__(self, account: Account) -> None:
        super().__init__(account, {"x-goog-api-key": account.key.get_secret_value()})
        self._protocol = ToolProtocol(self._ask)

    async def reply(self, request: ModelRequest, deltas: DeltaSink) -> ModelReply:
        """Return the whole reply; it raises as `Model.reply`."""
        return await self._protocol.reply(request, deltas)

    async def _ask(self, request: ModelRequest, deltas: DeltaSink) -> ModelReply:
        agent = request.agent
        reply = StreamedReply(deltas, asked=agent.model, prefix=f"call_{request.turn}_")
        path = f"{model_path(agent.model)}:streamGenerateContent?alt=sse"
        body = request_body(agent, request.messages)
        return await self.stream(path, body, patience_of(agent), reply, gemini_fault)

    async def count(self, request: ModelRequest) -> int:
        """Return the API's token count of the prompt; it raises as `TokenCounter.count`."""
        agent, messages = as_asked(request.agent, request.messages)
        body = count_body(agent, request_body(agent, messages))
        path = f"{model_path(agent.model)}:countTokens"
        answer = await self.post(path, body, patience_of(agent).of_a_count)
        try:
            return int(answer["totalTokens"])
        except (KeyError, TypeError, ValueError) as error:
            raise malformed(error) from error

    async def models(self) -> list[str]:
        """Return the names of the models that answer messages."""
        listed = await self.get("/v1beta/models?pageSize=1000", _LISTING)
        return [
            model["name"].removeprefix("models/")
            for model in listed["models"]
            if "generateContent" in model.get("supportedGenerationMethods", ())
        ]
