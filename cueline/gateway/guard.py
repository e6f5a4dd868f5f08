"""Lets in who has a token: finds who calls, and refuses what is too large."""

import hmac
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from cueline.client.client import Client
from cueline.gateway.problem import problem

BODY_LIMIT: Final = 40 * 1024 * 1024
"""The most bytes of a request's body: attachments of 30 MB in base64."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request."""

    client: Client
    """Carries out the caller's requests, in the caller's name."""


def caller_of(request: HTTPConnection) -> Caller:
    """Return who sent *request*; only after the guard has let it in."""
    caller: Caller = request.state.caller
    return caller


class Guard:
    """An ASGI app that passes on the requests with a known token, and puts the caller to them."""

    def __init__(self, app: ASGIApp, client: Client, token: str) -> None:
        self._app = app
        self._client = client
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if (refused := _too_large(headers) or self._stranger(headers)) is not None:
            await refused(scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = Caller(self._client)
        await self._app(scope, receive, send)

    def _stranger(self, headers: Headers) -> Response | None:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        known = hmac.compare_digest(given.encode(), self._token.encode())
        if scheme.lower() == "bearer" and known:
            return None
        said = "send the header `Authorization: Bearer TOKEN`; `cueline serve` prints the token"
        refused = problem(401, "Unauthorized", said)
        refused.headers["www-authenticate"] = "Bearer"
        return refused


def _too_large(headers: Headers) -> Response | None:
    if "transfer-encoding" in headers:
        said = "the length of the body is missing; send the header `Content-Length`"
        return problem(411, "LengthRequired", said)
    if int(headers.get("content-length", "0") or 0) > BODY_LIMIT:
        most = f"the body is larger than {BODY_LIMIT // 1024 // 1024} MB"
        return problem(413, "TooLarge", f"{most}; send less, or put the data into a file")
    return None
