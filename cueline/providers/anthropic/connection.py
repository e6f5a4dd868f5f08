"""Calls Anthropic through its SDK, and translates its errors."""

import asyncio
import json
import operator
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import httpx2
from anthropic import (
    APIConnectionError,
    APIError,
    APIStatusError,
    APITimeoutError,
    AsyncAnthropic,
    AsyncStream,
    DefaultAsyncHttpxClient,
    Timeout,
)
from anthropic.types import RawMessageStreamEvent

from cueline.actors.model_port import DeltaSink, ModelReply, ModelRequest
from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.events.sanitize import CUT
from cueline.providers.account import Account
from cueline.providers.anthropic.reply import StreamedReply
from cueline.providers.anthropic.request import Json, count_body, request_body
from cueline.providers.event_stream import WholeCharacters
from cueline.providers.fault import Fault, code_of, fault_of, redact_fault, with_usage
from cueline.providers.http import UNCONNECTED, what_failed
from cueline.providers.patience import (
    CONNECT_SECONDS,
    LIST_SECONDS,
    REST_SECONDS,
    Patience,
    patience_of,
)

T = TypeVar("T")

NOT_FOUND: Final = 404

# In the middle of a stream, the SDK lets errors of its HTTP and JSON layers through.
FAILURES: Final = (
    APIError,
    httpx2.HTTPError,
    httpx2.StreamError,
    json.JSONDecodeError,
    UnicodeDecodeError,
    TimeoutError,
)


class AnthropicClient:
    """A client of one account, for any number of calls at a time."""

    def __init__(self, account: Account) -> None:
        self._is_vendor = account.is_vendor
        self._client = AsyncAnthropic(
            api_key=account.key.get_secret_value(),
            base_url=account.base_url.partition("?")[0],
            default_query=dict(httpx2.QueryParams(account.base_url.partition("?")[2])),
            # The SDK sends the key as a bearer token only; gateways look for x-api-key.
            default_headers=account.sent_headers(
                {} if account.is_vendor else {"x-api-key": account.key.get_secret_value()}
            ),
            # cueline retries: its retries are recorded, and outlive this process.
            max_retries=0,
            # On a redirect to another host, a request loses its Authorization, but neither x-api-
            # key nor the conversation.
            http_client=DefaultAsyncHttpxClient(follow_redirects=False),
        )
        self._redactor = account.redactor
        self._calls = 0
        self._retired = False

    async def reply(self, request: ModelRequest, deltas: DeltaSink) -> ModelReply:
        """Return the whole reply; it raises as `Model.reply`."""
        body, patience = self._body(request), patience_of(request.agent)
        reply = StreamedReply(WholeCharacters(deltas))
        try:
            return await self._asked(self._stream(body, patience, reply), body["model"], patience)
        except (ProviderUnavailableError, ProviderRefusedError) as fault:
            if reply.used is None:
                raise
            raise with_usage(fault, reply.used) from fault.__cause__

    async def count(self, request: ModelRequest) -> int | None:
        """Return the API's token count of the prompt; it raises as `TokenCounter.count`."""
        body = count_body(self._body(request))
        if body is None:
            return None
        patience = patience_of(request.agent).of_a_count
        return await self._asked(self._count(body, patience), body["model"], patience)

    def _body(self, request: ModelRequest) -> Json:
        return request_body(request.agent, request.messages, is_vendor=self._is_vendor)

    async def _asked(
        self, asking: Coroutine[object, object, T], model: str, patience: Patience
    ) -> T:
        """Return the answer of the API, or raise the error for its failure."""
        self._calls += 1
        try:
            async with asyncio.timeout(patience.total):
                return await asking
        except FAILURES as error:
            fault = translation(error, model, patience)
            # An answer may repeat the request, and with it the key.
            told = f"{fault} {error}"
            hidden = told.replace(CUT, "") != self._redactor.redact_parts(told)
            fault = redact_fault(self._redactor, fault) if hidden else fault
            raise fault from None if hidden else error
        finally:
            self._calls -= 1
            await self._close_if_done()

    async def _stream(self, body: Json, patience: Patience, reply: StreamedReply) -> ModelReply:
        async with await self._client.messages.create(
            model=body["model"],
            max_tokens=body["max_tokens"],
            # The SDK copies `messages`, at 10 us a message; it sends `extra_body` unchanged.
            messages=[],
            stream=True,
            extra_body=body,
            timeout=_timeout(patience),
        ) as stream:
            return await collect_reply(stream, reply)

    async def _count(self, body: Json, patience: Patience) -> int:
        rest = {name: body[name] for name in body.keys() - {"model", "messages"}}
        answer = await self._client.messages.count_tokens(
            model=body["model"],
            messages=body["messages"],
            extra_body=rest,
            timeout=_timeout(patience),
        )
        with check_piece():
            return operator.index(answer.input_tokens)

    async def models(self) -> list[str]:
        """Return the names of the server's models.

        Raises:
            ProviderUnavailableError: there was no answer in time.
            ProviderRefusedError: the server refuses.
        """
        return await self._asked(self._models(), "", Patience(total=LIST_SECONDS))

    async def _models(self) -> list[str]:
        return [model.id async for model in self._client.models.list()]

    async def retire(self) -> None:
        """Close the connections as soon as no call needs them."""
        self._retired = True
        await self._close_if_done()

    async def _close_if_done(self) -> None:
        if self._retired and not self._calls:
            await self._client.close()


def _timeout(patience: Patience) -> Timeout:
    return Timeout(patience.chunk, connect=min(patience.chunk, CONNECT_SECONDS))


async def collect_reply(
    stream: AsyncStream[RawMessageStreamEvent], reply: StreamedReply
) -> ModelReply:
    """Return the reply of *stream*, collected in *reply*.

    Raises:
        ProviderUnavailableError: it is not a whole reply.
        ProviderRefusedError: the model declined.
    """
    now = asyncio.get_running_loop().time
    try:
        async with asyncio.timeout(None) as rest:
            async for event in stream:
                with check_piece():
                    reply.add(event)
                rest.reschedule(now() + REST_SECONDS if reply.ended else None)
    except (*FAILURES, ProviderUnavailableError):
        # An error after the end of a reply does not invalidate the reply, which is paid for.
        if not reply.ended:
            raise
    with check_piece():
        return reply.whole()


@contextmanager
def check_piece() -> Iterator[None]:
    """Raise for a malformed piece of a reply.

    The SDK does not validate: a missing or wrong value shows when it is used.

    Raises:
        ProviderUnavailableError: try again.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        what = f"a piece of the reply is malformed ({type(error).__name__})"
        raise ProviderUnavailableError("malformed_reply", what) from error


def translation(error: Exception, model: str, patience: Patience) -> Fault:
    """Translate an *error* of the SDK into an error of cueline."""
    cause = error.__cause__ or error
    # A request that did not arrive has used no tokens.
    used: dict[str, int] | None = {} if isinstance(cause, UNCONNECTED) else None
    match error:
        case APIStatusError():
            about = f"model {model}: " if model and error.status_code == NOT_FOUND else ""
            message = f"{about}{error.api_message or 'no message'}"
            type_ = code_of(error.body) or error.type
            return fault_of(error.status_code, type_, message, error.response.headers)
        case APITimeoutError() | httpx2.TimeoutException():
            return ProviderUnavailableError(
                "timeout", f"silence ({type(cause).__name__})", used=used
            )
        case TimeoutError():
            return ProviderUnavailableError("timeout", f"no whole reply in {patience.total:g} s")
        case APIConnectionError() | httpx2.HTTPError() | httpx2.StreamError():
            return ProviderUnavailableError("network", what_failed(cause), used=used)
        case _:
            what = f"a piece of the reply cannot be read ({type(error).__name__})"
            return ProviderUnavailableError("malformed_reply", what)
