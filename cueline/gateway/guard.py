"""Lets in who has a token: finds who calls, and refuses strangers and what is too large.

A program sends its token in `Authorization: Bearer`, or as the password of `Authorization: Basic`
if it takes only a URL; a browser sends it in the cookie of its login.
A request of a browser that changes something must come from a page of this server: by
`Sec-Fetch-Site`, and by a text in `X-CSRF-Token` that only such a page has.
"""

import hmac
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from time import monotonic
from typing import Final

from starlette.datastructures import URL, Headers
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cueline.client.client import Client
from cueline.client.context import acting_for
from cueline.client.tokens import TokenBook, person_of
from cueline.deciders.person import Person
from cueline.events.token import TokenIssued
from cueline.events.trace import valid_traceparent
from cueline.gateway.problem import problem
from cueline.gateway.rate_limit import RateLimit

BODY_LIMIT: Final = 40 * 1024 * 1024
"""The most bytes of a request's body: attachments of 30 MB in base64."""
FORM_LIMIT: Final = 256 * 1024
"""The most bytes of a form of a page: its fields are read at once."""
OPEN_LIMIT: Final = 8 * 1024
"""The most bytes of a request without a token."""
OPEN: Final = ("/login", "/static/")
"""The beginnings of the paths that need no token."""
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request."""

    client: Client
    """Carries out the caller's requests, in the caller's name."""
    token: TokenIssued | None = None
    """The caller's token; None for the token of the server's own settings."""
    csrf: str = ""
    """The text for `X-CSRF-Token` of a browser; empty for a program."""

    @property
    def person(self) -> str:
        """The name that is recorded with the caller's requests."""
        return self.client.log.user


def caller_of(request: HTTPConnection) -> Caller:
    """Return who sent *request*; only after the guard has let it in."""
    caller: Caller = request.state.caller
    return caller


def cookie_name(client: Client) -> str:
    """Return the name of the login cookie, another for each log: ports share their cookies."""
    return f"cueline_{client.log.id[:8]}"


def csrf_of(token: str) -> str:
    """Return the text that only pages of this server, for this login, have."""
    return sha256(f"csrf:{token}".encode()).hexdigest()


class Guard:
    """An ASGI app that passes on the requests with a valid token, and puts the caller to them."""

    def __init__(
        self, app: ASGIApp, client: Client, token: str | None, strangers: RateLimit
    ) -> None:
        """Guard *app*; *token* is one of the server's settings, *strangers* counts by address."""
        self._app = app
        self._client = client
        self._token = token
        self._book = TokenBook(client.log)
        self._strangers = strangers
        self._requests = RateLimit(most=2000, per_second=500)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refused = _too_large(headers, path_of(scope))
        if refused is None and not path_of(scope).startswith(OPEN):
            found = await self._caller(scope, headers)
            if isinstance(found, Response):
                refused = found
            else:
                scope.setdefault("state", {})["caller"] = found
                send = self._while_it_counts(found, send)
        await (refused or self._app)(scope, receive, send)

    def _while_it_counts(self, caller: Caller, send: Send) -> Send:
        """Return *send*, which ends an answer of several parts when the caller's token ends."""
        looked, ended = monotonic(), False

        async def guarded(message: Message) -> None:
            nonlocal looked, ended
            if ended:
                return
            if message.get("more_body") and caller.token and monotonic() - looked >= 1:
                looked, ended = monotonic(), not await self._book.counts(caller.token.token)
                if ended:
                    message = {"type": "http.response.body", "body": b""}
            await send(message)

        return guarded

    async def _caller(self, scope: Scope, headers: Headers) -> Caller | Response:
        """Return who sent the request, or the refusal."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "basic":
            scheme, given = "bearer", _password(given)
        cookies = HTTPConnection(scope).cookies
        browser = scheme == "" and (given := cookies.get(cookie_name(self._client), "")) != ""
        here = given.encode()
        if not browser and scheme.lower() != "bearer":
            found = None
        elif self._token is not None and hmac.compare_digest(here, self._token.encode()):
            found = Caller(acting_for(self._client, Person(self._client.log.user)))
        elif (token := await self._book.issued_to(given)) is None or token.kind == "code":
            found = None
        elif browser == (token.kind == "browser"):
            csrf = csrf_of(given) if browser else ""
            found = Caller(acting_for(self._client, person_of(token)), token, csrf)
        else:
            found = None
        if found is None:
            return self._stranger(scope, headers)
        if wait := self._requests.take(found.person if found.token is None else found.token.token):
            return too_many(wait)
        if browser and scope["method"] not in _SAFE and not _from_own_page(headers, found.csrf):
            said = "the request does not come from a page of this server; load the page again"
            return problem(403, "CrossSite", said)
        trace = valid_traceparent(headers.get("traceparent", ""))
        found.client.log = replace(found.client.log, traceparent=trace)
        return found

    def _stranger(self, scope: Scope, headers: Headers) -> Response:
        if wait := self._strangers.take((scope.get("client") or ("",))[0]):
            return too_many(wait)
        if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
            query = scope.get("query_string", b"").decode()
            back = path_of(scope) + (f"?{query}" if query else "")
            login = URL(f"{scope.get('root_path', '')}/login")
            return RedirectResponse(login.include_query_params(next=back), 303)
        said = "send the header `Authorization: Bearer TOKEN`; `cueline tokens issue` makes tokens"
        refused = problem(401, "Unauthorized", said)
        refused.headers["www-authenticate"] = "Bearer"
        return refused


def path_of(scope: Mapping[str, object]) -> str:
    """Return the path of a request below the place where the app is mounted."""
    return str(scope["path"]).removeprefix(str(scope.get("root_path", "")))


def _from_own_page(headers: Headers, csrf: str) -> bool:
    site = headers.get("sec-fetch-site", "same-origin")
    given = headers.get("x-csrf-token", "")
    return site == "same-origin" and hmac.compare_digest(given.encode(), csrf.encode())


def too_many(wait: float) -> Response:
    """Return the refusal of a request that came too early."""
    refused = problem(429, "TooManyRequests", f"too many requests: wait {wait:.0f} s")
    refused.headers["retry-after"] = f"{wait:.0f}"
    return refused


def _password(given: str) -> str:
    """Return the password in what `Authorization: Basic` has; a URL of a program can have one."""
    with suppress(ValueError):
        return b64decode(given, validate=True).decode().partition(":")[2]
    return ""


def _too_large(headers: Headers, path: str) -> Response | None:
    if "transfer-encoding" in headers:
        said = "the length of the body is missing; send the header `Content-Length`"
        return problem(411, "LengthRequired", said)
    limit = (
        OPEN_LIMIT
        if path.startswith(OPEN)
        else FORM_LIMIT
        if path.startswith("/act/")
        else BODY_LIMIT
    )
    if int(headers.get("content-length", "0") or 0) > limit:
        most = f"the body is larger than {limit // 1024:,} kB"
        return problem(413, "TooLarge", f"{most}; send less, or put the data into a file")
    return None
