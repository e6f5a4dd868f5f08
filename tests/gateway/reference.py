"""Write the reference of the HTTP API: `python -m tests.gateway.reference`."""

from inspect import Parameter
from pathlib import Path
from typing import get_args

from cueline.gateway.routes import ROUTES, Route

PAGE = Path(__file__).parents[2] / "docs/reference/http-api.md"
_HEAD = """# What can be asked over HTTP?

This page is made from the table of the API, `cueline/gateway/routes.py`.
[Here](../guides/http.md) is how to use it; `/v1/openapi.json` has the schemas of all answers.

A list answers `{"rows": […], "more": false, "next": null}`.
If there are more rows, `next` is the `cursor` of the next page.

A refused request answers a problem (RFC 9457): 401 without a valid token, 403 without the scope,
404, 409 and 422 for what cannot be done, 429 for too many requests.

A `GET` has an `ETag`; with `If-None-Match` the answer is 304 if nothing has changed.
"""


def page() -> str:
    """Return the reference as Markdown."""
    return "\n".join([_HEAD, *map(_section, ROUTES)])


def _section(route: Route) -> str:
    told = [f"## `{route.method} /v1{route.path}`", "", route.summary]
    if route.description:
        told += ["", route.description]
    fields = [
        (name, get_args(each.annotation)[1], each.default) for name, each in route.query.items()
    ]
    if route.body is not None:
        fields = [
            (name, field.description or "", ... if field.is_required() else field.default)
            for name, field in route.body.model_fields.items()
        ]
    if fields:
        kind = "parameter" if route.method == "GET" else "field"
        told += ["", f"| {kind} | default | is |", "| --- | --- | --- |"]
    for name, text, default in fields:
        told.append(f"| `{name}` | {_default(default)} | {_line(text)} |")
    if route.keyed:
        told += ["", "With the header `Idempotency-Key`, a second request is not recorded again."]
    if route.command:
        told += ["", f"At a shell: `{route.command}`"]
    return "\n".join(told) + "\n"


def _default(default: object) -> str:
    if default in (..., Parameter.empty):
        return "required"
    return "" if default in (None, "", (), [], {}) else f"`{default}`"


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
