"""Renders pages, and sends the files that they need: the server is all that a browser asks."""

import secrets
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import URL
from starlette.responses import FileResponse, HTMLResponse, Response

from cueline.gateway.guard import path_of
from cueline.gateway.pages import show
from cueline.gateway.problem import problem

STATIC: Final = Path(__file__).with_name("static")
"""The folder of the files that pages need."""
_KINDS: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
NAV: Final = {
    "/": "Sessions",
    "/approvals": "Approvals",
    "/runs": "Runs",
    "/costs": "Costs",
    "/fleet": "Fleet",
    "/breakers": "Breakers",
    "/audit": "Audit",
}
"""The pages that every page links to."""
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_POLICY: Final = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types htmx"
)


@cache
def templates() -> Environment:
    """Return the templates, which escape all texts."""
    made = Environment(
        loader=PackageLoader("cueline.gateway.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"nav": NAV, "file": _url_of_file}
    made.filters |= show.FILTERS | {"link": link_of}
    return made


@cache
def _url_of_file(name: str) -> str:
    """Return the URL of a file, which changes with its content."""
    digest = sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/static/{name}?{digest}"


def render(
    request: Request, template: str, *, status: int = 200, here: str = "", **values: Any
) -> Response:
    """Return a page, or a part of one for htmx, with the headers that protect it.

    Args:
        request: the request; its caller is named on the page.
        template: the file below `templates/`.
        status: the HTTP status.
        here: the path of the page in `NAV`.
        values: what the template shows; all texts are escaped.
    """
    nonce = secrets.token_urlsafe(16)
    caller = getattr(request.state, "caller", None)
    shared = {
        "nonce": nonce,
        "caller": caller,
        "here": here,
        "root": request.scope.get("root_path", ""),
        "path": path_of(request.scope),
        "query": request.url.query,
    }
    parts = templates().get_template("parts.html").make_module(shared)
    text = templates().get_template(template).render(parts=parts, **shared, **values)
    policy = {"Content-Security-Policy": _POLICY.format(nonce=nonce)}
    return HTMLResponse(text, status, headers=HEADERS | policy)


def files() -> APIRouter:
    """Return the routes of the files of the pages."""
    router = APIRouter(include_in_schema=False)

    @router.get("/static/{name}")
    async def file(name: str) -> Response:
        """Send a file; its URL changes with its content, so it may be kept."""
        path = STATIC / name
        if path.parent != STATIC or path.suffix not in _KINDS or not path.is_file():
            return problem(404, "NotFound", f"there is no file {name}")
        kept = {"Cache-Control": "public, max-age=31536000, immutable"}
        return FileResponse(path, media_type=_KINDS[path.suffix], headers=kept)

    return router


def link_of(session: str) -> str:
    """Return the path of the page of a session."""
    return f"/sessions/{session.replace('/', ':', 1)}"


def error_page(request: Request, title: str, detail: str, status: int) -> Response:
    """Return the page of an error."""
    came = URL(request.headers.get("referer", ""))
    is_ours = came.netloc == request.headers.get("host") and not came.path.startswith("//")
    is_other = came.path != path_of(request.scope)
    return render(
        request,
        "error.html",
        status=status,
        title=title.removesuffix("Error"),
        detail=detail,
        back=came.path if is_ours and is_other else "",
    )
