"""Sends requests to a `cueline serve`, and reads its answers and errors."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import datetime, timedelta
from functools import cache
from importlib.metadata import version
from ipaddress import ip_address
from typing import Any, Final
from uuid import uuid4

import httpx2
import msgspec

from cueline import errors
from cueline.client.document import document
from cueline.clock import Clock
from cueline.config.config_file import TOKEN
from cueline.config.environment import HERE, caller_trace
from cueline.errors import ConfigError, CuelineError, LogUnavailableError, UnknownOutcomeError
from cueline.events.log_url import LogUrl
from cueline.events.store import RecordedEvent
from cueline.gateway.routes import ROUTES, Route

PREFIX: Final = "/log"
"""The path below `/v1` of the requests about the log itself."""
CATEGORIES: Final = frozenset({"session", "inbox", "approval"})
"""The categories of the streams that a server sends."""
HEARTBEAT_SECONDS: Final = 10.0
"""How often the server sends something, if nothing happens."""
_WAITS: Final = (0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0)
"""The seconds between attempts: a server has a minute to come back."""
_STRANGER: Final = 401
_TOO_MANY: Final = 429
_LATER: Final = frozenset({_TOO_MANY, 502, 503, 504})
"""The statuses of a server or proxy that may answer later."""
_TIMEOUT: Final = httpx2.Timeout(3 * HEARTBEAT_SECONDS, connect=5.0)
_AT_ONCE: Final = httpx2.Timeout(2.0)
"""For a question that blocks the event loop."""
_LONG: Final = httpx2.Timeout(600.0, connect=5.0)
"""For requests that the server answers when it has read the log, or run a session to its end."""


class HttpServer:
    """See `LogServer`: a `cueline serve`, over HTTP."""

    def __init__(self, url: LogUrl) -> None:
        """Prepare requests to the server at *url*; nothing is sent.

        Raises:
            ConfigError: the URL has a password or a query, or would send a token unencrypted;
            or there is no token.
        """
        self.name = str(url)
        base = _checked(self.name)
        token = url.token or HERE.get(TOKEN, "")
        if not token:
            why = "the server wants a token: `cueline tokens issue` makes one there"
            raise ConfigError(self.name, f"{why}; set {TOKEN} to it")
        self._how: dict[str, Any] = {
            "base_url": f"{base}/v1",
            "headers": {"Authorization": f"Bearer {token}"},
            "timeout": _TIMEOUT,
        }
        self._http = httpx2.AsyncClient(**self._how)
        self.log_id = ""
        """The log's id, once it was asked for."""
        self._clock: Clock

    def use(self, clock: Clock) -> None:
        """Wait by *clock*."""
        self._clock = clock

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def greet(self) -> None:
        """See `LogServer.greet`; learns the log's id."""
        try:
            answer = await self._http.get(f"{PREFIX}/about")
        except httpx2.TransportError as error:
            raise self._unreachable(error) from None
        self._check(answer)
        self.log_id = str(answer.json()["log"])

    def running_up(self) -> str | None:
        """Return the record of the log's `cueline up`; None if the server does not say at once."""
        try:
            with httpx2.Client(**{**self._how, "timeout": _AT_ONCE}) as http:
                answer = http.get(f"{PREFIX}/up")
        except httpx2.TransportError:
            return None
        return answer.text if answer.is_success else None

    async def get(self, path: str, **query: Any) -> httpx2.Response:
        """Return the answer to a question about the log.

        Raises:
            LogUnavailableError: the server did not come back within a minute.
            CuelineError: the server's error.
        """
        return await self._send("GET", f"{PREFIX}{path}", repeats=True, params=query)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """See `LogServer.call`."""
        if name == "find":
            return (await self.get(f"/find/{_in_path(arguments['session'])}")).json()
        if name == "start":
            path = f"{PREFIX}/start"
            return (await self._send("POST", path, repeats=False, json=dict(arguments))).json()
        if (route := _routes().get(name)) is None:
            raise errors.RejectedError(name, "only a process that can open the log can do that")
        given = {key: each for key, each in arguments.items() if each not in (None, (), "")}
        path = re.sub(r"{(\w+)}", lambda found: _in_path(given.pop(found[1])), route.path)
        how: dict[str, Any] = {}
        if route.method == "GET":
            how["params"] = {key: _text(given.pop(key)) for key in route.query if key in given}
        if route.keyed:
            # With a key of its own, each attempt counts as the same request.
            how["headers"] = {"Idempotency-Key": given.pop("key", None) or uuid4().hex}
        if route.body is not None:
            fields = route.body.model_fields
            how["json"] = {key: _plain(given.pop(key)) for key in fields if key in given}
        if given.keys() - _UNSENT:
            field = min(given.keys() - _UNSENT)
            raise ConfigError(field, "a server does not take this from another machine")
        repeats = route.method == "GET" or route.keyed
        return (await self._send(route.method, path, repeats=repeats, **how)).json()

    async def live_text(self, stream: str) -> AsyncGenerator[str]:
        """See `LogServer.live_text`."""
        while True:
            try:
                async with aclosing(self._lines(f"/text/{_in_path(stream)}", {})) as lines:
                    async for each in lines:
                        yield each
            except httpx2.TransportError:
                pass
            await self._clock.sleep(_WAITS[2])

    async def events(self, path: str, query: dict[str, Any]) -> AsyncGenerator[RecordedEvent]:
        """Yield the events of a question; a broken connection is opened again after the last one.

        Raises:
            LogUnavailableError: the server did not come back within a minute.
            CuelineError: the server's error.
        """
        by_version = "stream" in query
        waits = iter(_WAITS)
        while True:
            try:
                async with aclosing(self._lines(path, query)) as lines:
                    async for line in lines:
                        event = msgspec.json.decode(line, type=RecordedEvent)
                        waits = iter(_WAITS)
                        if query.get("back"):
                            query["until"] = event.version - 1
                        else:
                            query["after"] = event.version if by_version else event.position
                        if "limit" in query:
                            query["limit"] -= 1
                        yield event
                if by_version:
                    return
            except httpx2.TransportError as error:
                if (wait := next(waits, None)) is None:
                    raise self._unreachable(error) from None
                await self._clock.sleep(wait)

    async def _lines(self, path: str, query: Mapping[str, Any]) -> AsyncGenerator[str]:
        async with self._http.stream("GET", f"{PREFIX}{path}", params=query) as answer:
            if not answer.is_success:
                await answer.aread()
            if _comes_later(answer):
                raise httpx2.ReadError(f"the status is {answer.status_code}")
            self._check(answer)
            async for line in answer.aiter_lines():
                if line.startswith('{"problem":'):
                    raise _error_of(msgspec.json.decode(line)["problem"])
                if line:
                    yield line

    async def _send(self, method: str, path: str, *, repeats: bool, **how: Any) -> httpx2.Response:
        """Send a request, again if that can do no harm, and return the answer.

        Raises:
            LogUnavailableError: the server did not come back within a minute.
            UnknownOutcomeError: the connection broke before the answer came.
            CuelineError: the server's error.
        """
        failed: Exception | None = None
        how["headers"] = {"traceparent": caller_trace(), **how.get("headers", {})}
        for wait in (0.0, *_WAITS):
            await self._clock.sleep(wait)
            try:
                answer = await self._http.request(method, path, timeout=_LONG, **how)
            except httpx2.ConnectError as error:
                failed = error
            except httpx2.TransportError as error:
                if not repeats:
                    raise UnknownOutcomeError(self.name, _why(error)) from None
                failed = error
            else:
                again = repeats or answer.status_code == _TOO_MANY
                if not again or not _comes_later(answer):
                    self._check(answer)
                    return answer
                failed = httpx2.ReadError(f"the status is {answer.status_code}")
        assert failed is not None, "it failed, or it returned"
        raise self._unreachable(failed)

    def _check(self, answer: httpx2.Response) -> None:
        """Raise the error that *answer* tells of.

        Raises:
            LogUnavailableError: the token is unknown, or the server is no cueline of this version.
            CuelineError: the server's error.
        """
        problem = _problem(answer)
        if answer.is_success:
            if answer.headers.get("content-type", "").startswith("text/"):
                raise LogUnavailableError(self.name, "this is no `cueline serve`; check the URL")
        elif answer.status_code == _STRANGER:
            why = f"the server refuses the token in {TOKEN}: it is unknown, expired or revoked"
            raise LogUnavailableError(self.name, f"{why}; `cueline tokens issue` makes another")
        elif (conflict := _conflict(answer)) is not None:
            raise conflict
        elif problem is None:
            why = f"this is no `cueline serve` (status {answer.status_code}); check the URL"
            raise LogUnavailableError(self.name, why)
        elif problem["type"] == "about:blank" and answer.status_code in (404, 405):
            ours = version("cueline")
            why = f"its cueline has not this request: it is older than {ours}; install {ours} there"
            raise LogUnavailableError(self.name, why)
        else:
            raise _error_of(problem)

    def _unreachable(self, error: Exception) -> LogUnavailableError:
        why = f"the server cannot be reached ({_why(error)}); check that `cueline serve` runs there"
        return LogUnavailableError(self.name, why)


_UNSENT: Final = frozenset({"type", "session", "approval", "digest", "channel", "why"})
"""Fields of wishes that the server sets itself."""

_MEMBERS: Final = frozenset({"type", "title", "status", "detail", "retryable", "field"})
"""The members of a problem that are no values of the error."""


@cache
def _routes() -> dict[str, Route]:
    """Return the routes by the names of methods, and by the types of wishes."""
    return {
        each.call.__name__ if each.wish is None else each.wish.model_fields["type"].default: each
        for each in ROUTES
    }


def _checked(name: str) -> str:
    """Return the URL of a server without a slash at its end.

    Raises:
        ConfigError: it names no server, or has a password or a query, or is unencrypted on the way
        to another machine.
    """
    try:
        url = httpx2.URL(name.rstrip("/"))
    except httpx2.InvalidURL as error:
        raise ConfigError(name, f"this is no URL: {error}") from None
    if not url.host:
        raise ConfigError(name, "it names no server; write `https://` and its name")
    if url.userinfo or url.query or url.fragment:
        shown = f"{url.scheme}://{url.host}"
        why = f"write only the address of the server; the token belongs into {TOKEN}"
        raise ConfigError(shown, why)
    if url.scheme == "http" and not _is_loopback(url.host):
        raise ConfigError(name, "the token would be sent unencrypted; use https://")
    return str(url)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _in_path(value: object) -> str:
    """Return *value* for a path, where the tenant of a stream is before a colon."""
    text = str(value).removeprefix("session-").replace("/", ":", 1)
    return re.sub(r"[^\w.:-]", lambda found: "".join(f"%{b:02X}" for b in found[0].encode()), text)


def _text(value: object) -> Any:
    if isinstance(value, Mapping):
        return [f"{key}={each}" for key, each in value.items()]
    return value.isoformat() if isinstance(value, datetime) else str(document(value))


def _plain(value: object) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else document(value)


def _comes_later(answer: httpx2.Response) -> bool:
    """Whether a server or proxy may answer the same request later."""
    status = answer.status_code
    return status == _TOO_MANY or (status in _LATER and _problem(answer) is None)


def _problem(answer: httpx2.Response) -> dict[str, Any] | None:
    if not answer.headers.get("content-type", "").startswith("application/problem+json"):
        return None
    found: dict[str, Any] = msgspec.json.decode(answer.content)
    return found


def _conflict(answer: httpx2.Response) -> errors.BlueprintConflictError | None:
    """Return the error about a blueprint's name, whose form is older than that of problems."""
    if answer.headers.get("content-type") != "application/json":
        return None
    told = msgspec.json.decode(answer.content)
    if not isinstance(told, dict) or told.get("error") != "agent_name_collision":
        return None
    return errors.BlueprintConflictError(told["agent_name"], told["existing_runner_id"])


def _error_of(problem: Mapping[str, Any]) -> CuelineError:
    """Return the error that the server raised, with its message and values."""
    kind = getattr(errors, problem["type"], None)
    detail = str(problem["detail"])
    if problem["type"] in ("about:blank", "InvalidInput"):
        return ConfigError(str(problem.get("field", problem["title"])), detail)
    if not (isinstance(kind, type) and issubclass(kind, CuelineError)):
        return errors.RejectedError(problem["type"], detail)
    error = kind.__new__(kind, detail)
    vars(error).update({key: each for key, each in problem.items() if key not in _MEMBERS})
    error.args = tuple(problem[name] for name in kind.names if name in problem) or (detail,)
    if any(name not in problem for name in kind.names):
        # A value that is no text or number was not sent, so the server's message is used.
        missing = {name: getattr(kind, name, None) for name in kind.names if name not in problem}
        vars(error).update(missing, text=detail.replace("{", "{{").replace("}", "}}"))
    return error


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
