"""Signs a browser in by a code from the shell, and out."""

import re
from typing import Final

from fastapi import APIRouter, Request
from starlette.datastructures import URL, QueryParams
from starlette.responses import RedirectResponse, Response

from cueline.client.client import Client
from cueline.client.tokens import BROWSER_HOURS, TokenBook, revoke_token
from cueline.gateway.guard import caller_of, cookie_name, too_many
from cueline.gateway.pages.page import render
from cueline.gateway.problem import problem
from cueline.gateway.rate_limit import RateLimit

_FAILED: Final = "This code does not count (any more). `cueline open` gives another."
_OWN_PATH: Final = re.compile(r"/([^/\\].*)?")


def login(client: Client, strangers: RateLimit) -> APIRouter:
    """Return the routes that sign browsers in and out; *strangers* counts the attempts."""
    router = APIRouter(include_in_schema=False)
    book = TokenBook(client.log)

    @router.get("/login")
    async def ask(
        request: Request,
        code: str = "",
        next: str = "/",  # noqa: A002 - the word of the link
        failed: bool = False,  # noqa: FBT001, FBT002 - a parameter of the link
    ) -> Response:
        """Ask for the code. Only the button uses it up: programs open links to preview them."""
        said = _FAILED if failed else ""
        return render(request, "login.html", code=code, next=_own(next), said=said)

    @router.post("/login")
    async def sign_in(request: Request) -> Response:
        """Give a browser a cookie for its code."""
        root = request.scope.get("root_path", "")
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return problem(403, "CrossSite", "sign in on the page of this server")
        if wait := strangers.take(request.client.host if request.client else ""):
            return too_many(wait)
        form = QueryParams((await request.body()).decode(errors="replace"))
        token = await book.issued_to(form.get("code", "").strip())
        seconds = BROWSER_HOURS * 3600
        made = None
        if token is not None and token.kind == "code":
            made = await book.exchange(token, kind="browser", seconds=seconds)
        if made is None:
            again = URL(f"{root}/login").include_query_params(failed=1)
            return RedirectResponse(again, 303)
        answer = RedirectResponse(root + _own(form.get("next", "/")), 303)
        answer.set_cookie(
            cookie_name(client),
            made.text,
            max_age=seconds,
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )
        return answer

    @router.post("/logout")
    async def sign_out(request: Request) -> Response:
        """End the token of a browser."""
        caller = caller_of(request)
        if caller.token is not None:
            await revoke_token(client, caller.token.token)
        answer = RedirectResponse(f"{request.scope.get('root_path', '')}/login", 303)
        answer.delete_cookie(cookie_name(client))
        return answer

    return router


def _own(path: str) -> str:
    """Return *path* if it is one of this server, else the first page."""
    return path if _OWN_PATH.fullmatch(path) else "/"
