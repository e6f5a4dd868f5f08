"""Calls a vendor's HTTP API without an SDK: JSON requests, and streams of JSON."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Final

import httpx2

from cueline.actors.model_port import DeltaSink, ModelReply, drop_delta
from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.events.message import Block, ToolCall, Usage
from cueline.events.sanitize import CUT
from cueline.providers.account import Account
from cueline.providers.event_stream import DONE, WholeCharacters, json_events
from cueline.providers.fault import BY_TYPE, Fault, error_in, fault_of, redact_fault, with_usage
from cueline.providers.patience import CONNECT_SECONDS, REST_SECONDS, Patience

Json = dict[str, Any]
Pieces = AsyncIterator[Any]
"""The JSON values of a stream, in order."""

FAILURES: Final = (
    *(httpx2.HTTPError, httpx2.StreamError, TimeoutError, ValueError),
    *(ProviderUnavailableError, ProviderRefusedError),
)
_MALFORMED: Final = (AttributeError, ArithmeticError, LookupError, TypeError, ValueError)
UNCONNECTED: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)
_OK: Final = 200


class PartialReply:
    """The received part of a reply; the subclass of an adapter reads the vendor's pieces."""

    def __init__(
        self,
        deltas: DeltaSink = drop_delta,
        *,
        asked: str = "",
        prefix: str = "call_",
        lacking: tuple[str, ...] = (),
    ) -> None:
        """Begin a reply.

        Args:
            deltas: gets the pieces of the reply.
            asked: the model, as the agent names it.
            prefix: the prefix of the ids of calls for which the server sends no id.
            lacking: the capabilities that the request had to do without.
        """
        self.ended = False
        """Whether the vendor has sent its last necessary piece."""
        self._deltas = WholeCharacters(deltas)
        self._asked = asked
        self._prefix = prefix
        self._lacking = lacking
        self._model = ""

    def add(self, piece: Any) -> None:
        """Add the next piece; ignore unknown kinds.

        Raises:
            ProviderUnavailableError: the piece is an error; try again.
            ProviderRefusedError: the piece is an error; do not repeat the request.
        """
        raise NotImplementedError

    def end(self) -> None:
        """Handle the end of the stream, which in some dialects ends the reply."""

    def whole(self) -> ModelReply:
        """Return the reply.

        Raises:
            ProviderUnavailableError: a part is missing; try again.
            ProviderRefusedError: the model declined.
        """
        raise NotImplementedError

    def _usage(self) -> Usage | None:
        """Return the final usage, if it was sent."""
        raise NotImplementedError

    @property
    def used(self) -> dict[str, int] | None:
        """The final usage, if it was sent; None before the end."""
        usage = self._known_usage() if self.ended else None
        return None if usage is None else usage.model_dump()

    def _known_usage(self) -> Usage | None:
        """Return the final usage; None if it cannot be read and has to be estimated."""
        try:
            return self._usage()
        except _MALFORMED:
            return None

    def _check_ended(self) -> None:
        if not self.ended:
            raise ProviderUnavailableError("malformed_reply", "the stream ended before the reply")

    def _made(
        self, content: Iterable[Block], calls: Iterable[ToolCall], *, cut: bool
    ) -> ModelReply:
        """Return the reply with this content; *cut* if it reached the output limit."""
        calls = tuple(calls)
        return ModelReply(
            content=tuple(content),
            calls=calls,
            stop_reason="max_tokens" if cut else "tool_use" if calls else "end_turn",
            usage=self._known_usage() or Usage(),
            model=self._model,
            lacking=self._lacking,
        )


def bearer(account: Account) -> dict[str, str]:
    """Return the header with the key of *account*; empty if the account has no key."""
    return {"Authorization": f"Bearer {account.key.get_secret_value()}"} if account.key else {}


class HttpClient:
    """The connections to one account, for any number of calls at a time; see `Client`."""

    pieces_of: Callable[[AsyncIterator[bytes]], AsyncGenerator[Any]] = staticmethod(json_events)
    """Reads the stream of a reply."""

    def __init__(self, account: Account, headers: Mapping[str, str]) -> None:
        self._account = account
        self._redactor = account.redactor
        # On a redirect to another host, a request loses its Authorization, but neither its other
        # headers nor the conversation.
        self._client = httpx2.AsyncClient(
            headers=account.sent_headers(headers), follow_redirects=False
        )
        self._calls = 0
        self._retired = False

    async def stream(
        self,
        path: str,
        body: Json,
        patience: Patience,
        reply: PartialReply,
        fault: Callable[[int, str, Mapping[str, str]], Fault] | None = None,
    ) -> ModelReply:
        """Send *body* to *path*, and return the reply, collected in *reply*.

        Args:
            path: the path after the account's address.
            body: the JSON of the request.
            patience: the longest waits.
            reply: an empty reply, to which the pieces are added.
            fault: makes the error of an HTTP status, body and headers; None for `usual_fault`.

        Raises:
            ProviderUnavailableError: wait and try again.
            ProviderRefusedError: do not repeat this request.
        """
        self._calls += 1
        try:
            async with asyncio.timeout(patience.total):
                return await self._streamed(path, body, patience, reply, fault or usual_fault)
        except FAILURES as error:
            known = translation(error, patience)
            if reply.used is not None:
                known = with_usage(known, reply.used)
            raise self._without_key(known, str(error)) from None
        finally:
            self._calls -= 1
            await self._close_if_done()

    async def get(self, path: str, patience: Patience) -> Any:
        """Return the JSON at *path*.

        Raises:
            ProviderUnavailableError: there was no answer; try again.
            ProviderRefusedError: the server refuses.
        """
        return await self._whole("GET", self._account.url(path), None, patience)

    async def post(self, path: str, body: Json, patience: Patience) -> Any:
        """Return the JSON answer to *body*, in one piece; it raises as `get`."""
        return await self._whole("POST", self._account.url(path), body, patience)

    async def retire(self) -> None:
        """Close the connections as soon as no call needs them."""
        self._retired = True
        await self._close_if_done()

    async def _close_if_done(self) -> None:
        if self._retired and not self._calls:
            await self._client.aclose()

    async def _whole(self, method: str, url: str, body: Json | None, patience: Patience) -> Any:
        try:
            async with asyncio.timeout(patience.total):
                answer = await self._client.request(
                    method, url, json=body, timeout=_timeout(patience)
                )
            if answer.status_code != _OK:
                raise usual_fault(answer.status_code, answer.text, answer.headers)
            return answer.json()
        except FAILURES as error:
            raise self._without_key(translation(error, patience), str(error)) from None

    async def _streamed(
        self,
        path: str,
        body: Json,
        patience: Patience,
        reply: PartialReply,
        fault: Callable[[int, str, Mapping[str, str]], Fault],
    ) -> ModelReply:
        async with self._client.stream(
            "POST", self._account.url(path), json=body, timeout=_timeout(patience)
        ) as answer:
            if answer.status_code != _OK:
                text = (await answer.aread()).decode(errors="replace")
                raise fault(answer.status_code, text, answer.headers)
            await self._check_server(body, answer.headers)
            async with aclosing(self.pieces_of(answer.aiter_bytes())) as pieces:
                await collect(pieces, reply)
        try:
            return reply.whole()
        except _MALFORMED as error:
            raise malformed(error) from error

    async def _check_server(self, body: Json, headers: Mapping[str, str]) -> None:
        """Raise if the server, by its *headers*, lacks a capability that *body* needs."""

    def _without_key(self, fault: Fault, text: str) -> Fault:
        """Return *fault* without the account's key, which an answer may repeat."""
        told = f"{fault} {text}"
        if told.replace(CUT, "") == self._redactor.redact_parts(told):
            return fault
        return redact_fault(self._redactor, fault)


async def collect(pieces: Pieces, reply: PartialReply) -> None:
    """Add all *pieces* to *reply*.

    An error after the end of a reply does not invalidate the reply, which is paid for.
    """
    now = asyncio.get_running_loop().time
    try:
        async with asyncio.timeout(None) as rest:
            async for piece in pieces:
                try:
                    if piece is DONE:
                        reply.end()
                    else:
                        reply.add(piece)
                except _MALFORMED as error:
                    raise malformed(error) from error
                rest.reschedule(now() + REST_SECONDS if reply.ended else None)
    except FAILURES:
        if not reply.ended:
            raise


def usual_fault(status: int, text: str, headers: Mapping[str, str]) -> Fault:
    """Return the error for an answer with the *status* of an error."""
    error = error_in(text)
    if not isinstance(error, Mapping):
        return fault_of(status, None, str(error or text or "no message"), headers)
    kind = next((error[name] for name in ("code", "type") if known_type(error.get(name))), None)
    return fault_of(status, kind or error.get("type"), str(error.get("message") or text), headers)


def known_type(value: object) -> bool:
    """Whether *value* is a type or code of an error that is known here."""
    return isinstance(value, str) and value in BY_TYPE


def malformed(error: Exception) -> ProviderUnavailableError:
    """Return the error for a piece that is missing something, or has another form."""
    what = f"a piece of the reply is malformed ({type(error).__name__})"
    return ProviderUnavailableError("malformed_reply", what)


def what_failed(error: BaseException) -> str:
    """Return the text of a transport's *error*, with the host that could not be reached."""
    told = f"{type(error).__name__}: {error}"
    if isinstance(error, httpx2.ProxyError):
        told = f"the proxy that the environment names refused the connection: {error}"
    return f"{told} ({error.request.url.host})" if isinstance(error, UNCONNECTED) else told


def translation(error: Exception, patience: Patience) -> Fault:
    """Translate an *error* of the transport into an error of cueline."""
    # A request that did not arrive has used no tokens.
    used: dict[str, int] | None = {} if isinstance(error, UNCONNECTED) else None
    match error:
        case ProviderUnavailableError() | ProviderRefusedError():
            return error
        case httpx2.TimeoutException():
            return ProviderUnavailableError(
                "timeout", f"silence ({type(error).__name__})", used=used
            )
        case TimeoutError():
            return ProviderUnavailableError("timeout", f"no whole reply in {patience.total:g} s")
        case httpx2.HTTPError() | httpx2.StreamError():
            return ProviderUnavailableError("network", what_failed(error), used=used)
        case _:
            what = f"a piece of the reply cannot be read ({type(error).__name__})"
            return ProviderUnavailableError("malformed_reply", what)


def _timeout(patience: Patience) -> httpx2.Timeout:
    return httpx2.Timeout(patience.chunk, connect=min(patience.chunk, CONNECT_SECONDS))
