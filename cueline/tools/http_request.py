"""The built-in tools for HTTP, which reach what the agent's file allows; see `http_access`."""

import json
import os
from codecs import getincrementaldecoder
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

from pydantic import Field, JsonValue, SecretStr

from cueline.errors import ToolFailedError
from cueline.events.agent_parts import is_secret, variables_in, with_values
from cueline.events.fact import json_or_text
from cueline.events.message import IMAGE_LIMIT, image_type
from cueline.events.sanitize import CUT, Redactor, sanitize
from cueline.tools.http_access import HttpAccess, host_of, refusal
from cueline.tools.tool import Image, ToolContext, tool

if TYPE_CHECKING:
    import ssl

    import httpx2

REDIRECTS: Final = 5
SECONDS: Final = 60.0
CONNECT_SECONDS: Final = 10.0
_CHANGES_NOTHING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OURS: Final = frozenset({"connection", "content-length", "host", "transfer-encoding", "upgrade"})
"""The headers that the client sets; another host in one of them would get around the rules."""
_TOLD: Final = frozenset(
    {
        *("allow", "content-type", "etag", "last-modified", "link", "location"),
        *("retry-after", "www-authenticate"),
    }
)
"""The headers of an answer that are returned."""
_TOLD_STARTS: Final = ("ratelimit", "x-ratelimit")
_WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_TAKES_GET: Final = {301: {"POST"}, 302: _WRITES, 303: _WRITES | {"OPTIONS"}}
"""The methods that become GET at a redirect, by its status, as in browsers."""
_REDIRECTS: Final = {301, 302, 303, 307, 308}

Method = Literal["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
Headers = Annotated[
    dict[str, str],
    Field(
        description="$NAME in a value stands for an environment variable that the agent may use."
    ),
]
Answer = dict[str, JsonValue] | Image


class _Request(NamedTuple):
    method: str
    url: "httpx2.URL"
    headers: dict[str, str]
    content: bytes | None


@tool(read_only=True, sensitive=True, timeout_seconds=SECONDS)
async def http_get(
    url: str,
    headers: Headers | None = None,
    method: Literal["GET", "HEAD"] = "GET",
    *,
    context: ToolContext,
) -> Answer:
    """Get what an http address has: its status, headers and body, as JSON, text or an image.

    Redirects are followed. Also an answer with an error status is returned.
    """
    return await exchange(method, url, headers or {}, None, context)


@tool(sensitive=True, timeout_seconds=SECONDS)
async def http_request(  # noqa: D417 - the model is not told of the context
    url: str,
    method: Method = "POST",
    headers: Headers | None = None,
    body: JsonValue = None,
    *,
    context: ToolContext,
) -> Answer:
    """Send an HTTP request that may change something; prefer http_get for one that does not.

    It returns the status, headers and body of the answer, also of one with an error status.

    Args:
        url: the http or https address.
        method: the method of the request.
        headers: the headers of the request.
        body: a text, which is sent as it is, or any other JSON, which is sent as JSON.
    """
    return await exchange(method, url, headers or {}, body, context)


async def exchange(
    method: str, address: str, headers: Mapping[str, str], body: JsonValue, context: ToolContext
) -> Answer:
    """Send a request, follow its redirects, and return the answer.

    Raises:
        ToolFailedError: it may not be sent, or there is no answer; the message has no secret.
    """
    import httpx2  # noqa: PLC0415 - few agents use it, and the import takes long

    filled, values = filled_headers(headers, context.environment)
    redactor = Redactor(map(SecretStr, values))
    content, kind = content_of(body)
    if kind and "content-type" not in map(str.lower, headers):
        filled["Content-Type"] = kind
    of_one_host = {name for name in filled if is_secret(name) or _names_variable(headers, name)}
    try:
        request = _Request(method, httpx2.URL(address), filled, content)
        answer = await _follow(request, of_one_host, context)
    except httpx2.InvalidURL as error:
        raise refusal(f"{address!r} is no address: {error}") from None
    except httpx2.HTTPError as error:
        told = redactor.redact(f"{type(error).__name__}: {error}".removesuffix(": "))[0]
        effect = "" if method in _CHANGES_NOTHING else "; the request may have had effects"
        raise ToolFailedError("network", f"there is no answer: {told}{effect}") from None
    if isinstance(answer, Image):
        return answer
    # The host does not know these values if the runner is on another machine. The mark of a cut
    # stays for the secrets that only the host knows.
    clean = sanitize(answer, redactor)[0]
    return {**clean, "body": f"{clean['body']}{CUT}"} if "cut" in clean else clean


def filled_headers(
    headers: Mapping[str, str], allowed: Iterable[str]
) -> tuple[dict[str, str], list[str]]:
    """Return *headers* with the values of their variables, and these values.

    Raises:
        ToolFailedError: a header is not the caller's to set, or names a variable that is not
            *allowed* or not set.
    """
    for name in headers:
        if name.lower() in _OURS:
            raise ToolFailedError("invalid_arguments", f"the header {name!r} cannot be set")
    values = {}
    for name in variables_in(headers):
        if name not in set(allowed):
            why = f"the agent's file does not list {name} in `environment`"
            raise ToolFailedError("invalid_arguments", f"${name} has no value: {why}")
        values[name] = os.environ.get(name, "").strip()
        if not values[name]:
            raise refusal(f"${name} has no value: the variable is not set where the tool runs")
    return with_values(headers, values), list(values.values())


async def _follow(request: _Request, of_one_host: Collection[str], context: ToolContext) -> Answer:
    """Send *request*, and follow its redirects, without the headers *of_one_host* to others."""
    access = HttpAccess.model_validate(context.options)
    passed = ""
    for _ in range(REDIRECTS + 1):
        async with _client() as client:
            try:
                access.check(request.url)
                addresses = await access.addresses_of(request.url)
                response = await _send(client, request, addresses)
            except ToolFailedError as error:
                raise ToolFailedError(error.kind, passed + error.message) from None
            try:
                if response.status_code not in _REDIRECTS or "location" not in response.headers:
                    return await answer_of(response, request.url, access.max_bytes)
            finally:
                await response.aclose()
        passed = f"{request.method} {request.url} was answered by a redirect: "
        request = _redirected(request, response, of_one_host)
    raise refusal(f"it was redirected more than {REDIRECTS} times, at last to {request.url}")


def _redirected(
    request: _Request, response: "httpx2.Response", of_one_host: Collection[str]
) -> _Request:
    url = request.url.join(response.headers["location"])
    if _origin(url) != _origin(request.url):
        kept = {name: each for name, each in request.headers.items() if name not in of_one_host}
        request = request._replace(headers=kept)
    status = response.status_code
    if request.method in _TAKES_GET.get(status, ()):
        request = request._replace(method="GET", content=None)
    return request._replace(url=url)


def content_of(body: JsonValue) -> tuple[bytes | None, str]:
    """Return the content of a request, and its media type."""
    match body:
        case None:
            return None, ""
        case str():
            return body.encode(errors="replace"), "text/plain; charset=utf-8"
    return json.dumps(body).encode(), "application/json"


def _names_variable(headers: Mapping[str, str], name: str) -> bool:
    return any(variables_in({name: headers.get(name, "")}))


def _origin(url: "httpx2.URL") -> tuple[str, str, int | None]:
    return url.scheme, host_of(url), url.port


@lru_cache(maxsize=1)
def _certificates() -> "ssl.SSLContext":
    import httpx2  # noqa: PLC0415 - as above

    return httpx2.create_ssl_context()


def _client() -> "httpx2.AsyncClient":
    """Return a client for one request.

    Its connections are not used again: two hosts can have one address, and the certificate of a
    connection was checked for one of them. It takes no proxy and no password from the environment.
    """
    import httpx2  # noqa: PLC0415 - as above

    return httpx2.AsyncClient(
        transport=httpx2.AsyncHTTPTransport(verify=_certificates()),
        trust_env=False,
        headers={"User-Agent": "cueline", "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
    )


async def _send(
    client: "httpx2.AsyncClient", request: _Request, addresses: Iterable[str]
) -> "httpx2.Response":
    """Send *request* to the first of *addresses* that can be connected to."""
    import httpx2  # noqa: PLC0415 - as above

    failed = ""
    for address in addresses:
        sent = client.build_request(
            request.method,
            request.url.copy_with(host=address),
            headers={**request.headers, "Host": request.url.netloc.decode()},
            content=request.content,
            extensions={"sni_hostname": host_of(request.url)},
        )
        try:
            return await client.send(sent, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            failed = str(error) or type(error).__name__
    raise ToolFailedError("network", f"{host_of(request.url)} cannot be connected to: {failed}")


async def answer_of(response: "httpx2.Response", url: "httpx2.URL", most: int) -> Answer:
    """Return the answer for the model.

    Raises:
        ToolFailedError: its body is neither text nor an image that models take.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_image = kind.startswith("image/") and not kind.endswith("xml")
    content, cut = await _read(response, IMAGE_LIMIT if is_image else most)
    if image_type(content) and not cut:
        return Image(content)
    text = text_of(content, response.charset_encoding or "utf-8", kind, is_whole=not cut)
    if text is None:
        what = f"{cut or f'{len(content):,}'} bytes of {kind or 'no declared type'}"
        raise refusal(f"{url} has {what}; only text, JSON, and images up to 5 MB are read")
    shown = {
        name: value
        for name, value in response.headers.items()
        if name in _TOLD or name.startswith(_TOLD_STARTS)
    }
    answer: dict[str, JsonValue] = {
        "status": response.status_code,
        "url": str(url),
        "headers": dict(shown),
        "body": text,
    }
    if cut:
        answer["body"] = text + CUT
        answer["cut"] = f"the body has {cut} bytes, of which these are the first {len(content):,}"
    elif kind == "application/json" or kind.endswith("+json"):
        answer["body"] = json_or_text(text)
    return answer


async def _read(response: "httpx2.Response", most: int) -> tuple[bytes, str]:
    """Return at most *most* bytes of the body, and the size of a body that is longer."""
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > most:
            size = response.headers.get("content-length", "")
            known = size.isdecimal() and "content-encoding" not in response.headers
            return bytes(content[:most]), f"{int(size):,}" if known else f"more than {most:,}"
    return bytes(content), ""


def text_of(content: bytes, charset: str, kind: str, *, is_whole: bool) -> str | None:
    """Return *content* as text; None if it is none."""
    try:
        b"x".decode(charset, "replace")  # refuses codecs that do not decode to text
        errors = "replace" if kind.startswith("text/") else "strict"
        # The end may be cut within a character.
        text = getincrementaldecoder(charset)(errors).decode(content, final=is_whole)
    except (LookupError, ValueError):
        return None
    return None if "\0" in text else text
