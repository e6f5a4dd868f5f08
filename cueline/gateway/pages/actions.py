"""Carries out what people ask for on a page: the requests of the API, from forms.

The fields of a form are those of the request's body, as texts. The answer is a sentence; a new
session is opened.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final, get_args

from fastapi import APIRouter, Request
from pydantic import BaseModel, ValidationError
from starlette.datastructures import QueryParams
from starlette.responses import Response

from cueline.client.session import Session
from cueline.errors import CuelineError
from cueline.events.agent import ModelChoice
from cueline.events.fact import json_or_text
from cueline.gateway.guard import caller_of
from cueline.gateway.pages.page import link_of, render
from cueline.gateway.problem import first_fault, status_of
from cueline.gateway.routes import ROUTES, Route

_SHOWN_ONCE: Final = frozenset({"/tokens", "/tokens/{token}/rotate"})
"""The requests whose answer has to be read whole: they are not for a page."""
_SAID: Final = {"pause": "It will pause.", "stop": "It will stop.", "resume": "It goes on."}


def actions() -> APIRouter:
    """Return a route for each request of the API."""
    router = APIRouter(include_in_schema=False)
    for route in ROUTES:
        if route.method == "POST" and route.path not in _SHOWN_ONCE:
            router.add_api_route(f"/act{route.path}", _action(route), methods=["POST"])
    return router


def _action(route: Route) -> Callable[[Request], Awaitable[Response]]:
    async def act(request: Request) -> Response:
        form = dict(QueryParams((await request.body()).decode(errors="replace")))
        answer, _, resolution = form.pop("answer", "").partition(":")
        if form.pop("edit_was", "") == form.get("edit"):
            form.pop("edit", None)
        if given := _given(form):
            form["result"] = given
        if answer:  # the button of a question
            form |= {"verdict": answer, "resolution": resolution}
        try:
            assert route.body is not None, "each request has a body"
            body = route.body.model_validate(_values(route.body, form))
            asked = {name: getattr(body, name) for name in body.model_fields_set}
            done = await route.call(caller_of(request).client, **request.path_params, **asked)
        except ValidationError as error:
            _, said = first_fault(error)
            return render(request, "said.html", said=said, failed=True, status=422)
        except CuelineError as error:
            status = status_of(error)
            return render(request, "said.html", said=str(error), failed=True, status=status)
        if isinstance(done, Session):
            answered = render(request, "said.html", said="Started.", failed=False)
            root = request.scope.get("root_path", "")
            answered.headers["HX-Redirect"] = f"{root}{link_of(done.id)}"
            return answered
        said = _SAID.get(route.path.rpartition("/")[2], "Recorded.")
        answered = render(request, "said.html", said=said, failed=False)
        answered.headers["HX-Trigger"] = "changed"
        return answered

    return act


def _given(form: dict[str, str]) -> str:
    """Take the values that a call asks for out of *form*; return them by key, as JSON."""
    names = [name for name in form if name.startswith("given:")]
    given: dict[str, dict[str, Any]] = {}
    for name in names:
        text = form.pop(name)
        key, value, kind = json.loads(name.removeprefix("given:"))
        if text != "":
            given.setdefault(key, {})[value] = text if kind == "string" else json_or_text(text)
    return json.dumps(given, ensure_ascii=False) if names else ""


def _values(body: type[BaseModel], form: dict[str, str]) -> dict[str, Any]:
    """Return the values of the fields that were filled in; what is no text is JSON."""
    told: dict[str, Any] = {}
    for name, text in form.items():
        if text == "":
            continue
        field = body.model_fields.get(name)
        kind = None if field is None else field.annotation
        if kind is ModelChoice:
            told[name] = {"provider": "", "model": text}  # `PROVIDER/NAME`, as at a shell
        elif field is None or str in (kind, *get_args(kind)):
            told[name] = text
        else:
            told[name] = json_or_text(text)
    return told
