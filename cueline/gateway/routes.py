"""The table of the HTTP API: each request or question of a client, and its path.

Parameters, schemas and descriptions are derived from the functions and models named here.
"""

import ast
import inspect
import textwrap
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from inspect import Parameter
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, Field, create_model

from cueline.client import rows
from cueline.client.client import Client
from cueline.client.context import acting_for
from cueline.client.decide import question_of
from cueline.client.receipt import DecisionReceipt, PauseReceipt, Receipt, StopReceipt
from cueline.client.remote_runners import (
    leave_runner,
    register_runner,
    runner_heartbeat,
    runner_replies,
    runner_requests,
)
from cueline.client.retention import erase
from cueline.client.start import StartOptions
from cueline.client.tokens import issue_token, revoke_token, rotate_token, tokens
from cueline.client.wishes import make_wish, wish
from cueline.deciders.person import Person
from cueline.errors import ConfigError, CuelineError
from cueline.events.inbox import (
    SET_BY_CUELINE,
    DecisionGiven,
    MessageSent,
    ModelChangeAsked,
    PauseAsked,
    RaiseAsked,
    StopAsked,
)

_ONLY_HERE: Final = ("by", "without_secrets")
"""What only a process with the log may say: who asks, and which secrets it does without."""
_RECEIPTS: Final[dict[type, type]] = {
    PauseAsked: PauseReceipt,
    StopAsked: StopReceipt,
    DecisionGiven: DecisionReceipt,
}
"""The answers to wishes, if they are more than a `Receipt`."""
_QUOTED: Final = {"GroupBy": rows.GroupBy}
"""The types that a method names without importing them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One request of the API."""

    method: Literal["GET", "POST"]
    path: str
    """The path below `/v1`; the names in braces are arguments of *call*."""
    call: Callable[..., Awaitable[object]]
    """A function of a client and keyword arguments; the result is the response."""
    command: str
    """The command for the same; empty: there is none."""
    query: Mapping[str, Parameter]
    """The parameters that may follow the path."""
    body: type[BaseModel] | None = None
    wish: type[BaseModel] | None = None
    """The model of the wish that it records."""
    keyed: bool = False
    """Whether the header `Idempotency-Key` is the argument `key`."""
    summary: str = ""
    description: str = ""


def _asks(
    path: str,
    call: Callable[..., Awaitable[object]],
    command: str,
    *,
    without: Collection[str] = (),
    texts: Mapping[str, str] = MappingProxyType({}),
) -> Route:
    """Return the route of a question: the arguments of a method are the path and the query.

    *texts* describe the arguments that the docstring describes in prose.
    """
    summary, description, arguments = _told(call)
    arguments |= texts
    query = {
        name: each.replace(annotation=Annotated[each.annotation, arguments.get(name, "")])
        for name, each in _parameters(call, path, without).items()
    }
    return Route(
        method="GET",
        path=path,
        call=call,
        command=command,
        query=query,
        summary=summary,
        description=description,
    )


def _does(
    path: str,
    call: Callable[..., Awaitable[object]],
    command: str,
    *,
    texts: Mapping[str, str] = MappingProxyType({}),
) -> Route:
    """Return the route of a request: the arguments of a method are the path and the body."""
    asked = _asks(path, call, command, without=(*_ONLY_HERE, "key"), texts=texts)
    fields: dict[str, Any] = {}
    for name, each in asked.query.items():
        kind, told = get_args(each.annotation)
        default = ... if each.default is Parameter.empty else each.default
        fields[name] = (kind, Field(default, description=told))
    body = create_model(_title(call), __config__={"extra": "forbid"}, **fields)
    keyed = "key" in inspect.signature(call).parameters
    return replace(asked, method="POST", query={}, body=body, keyed=keyed)


def _wishes(
    path: str,
    kind: type[BaseModel],
    command: str,
    *,
    without: Collection[str] = (),
) -> Route:
    """Return the route of a wish: the public fields of its model are the body."""
    docs = field_docs(kind)
    fields: dict[str, Any] = {
        name: (field.annotation, Field(field.default, description=docs.get(name)))
        for name, field in kind.model_fields.items()
        if name not in {"type", *without} and SET_BY_CUELINE not in field.metadata
    }

    async def call(
        client: Client, session: str = "", key: str | None = None, **said: Any
    ) -> object:
        if "approval" in said:
            stream = (await question_of(client, said["approval"])).session
        else:
            stream = await client.find(session)
        asked = make_wish(kind, **said)
        receipt = await wish(client, stream, asked, key=key)  # type: ignore[call-overload]
        return await _read_here(client, receipt) if kind is DecisionGiven else receipt

    call.__annotations__["return"] = _RECEIPTS.get(kind, Receipt)
    told = inspect.getdoc(kind) or ""
    return Route(
        method="POST",
        path=path,
        call=call,
        command=command,
        query={},
        body=create_model(f"{kind.__name__}Body", __config__={"extra": "forbid"}, **fields),
        wish=kind,
        keyed=True,
        summary=told.partition("\n")[0],
        description=told.partition("\n")[2].strip(),
    )


async def _read_here(client: Client, receipt: DecisionReceipt) -> DecisionReceipt:
    """Let a session that no process drives go on here with the decision about its call.

    Whoever may decide need not be allowed to resume sessions.
    """
    if receipt.read_by != "nobody":
        return receipt
    with suppress(CuelineError):  # what it lacks here, `cueline resume` says
        await acting_for(client, Person(client.log.user, client.log.tenant)).resume(receipt.session)
        return replace(receipt, read_by="here")
    return receipt


def _parameters(
    call: Callable[..., Awaitable[object]], path: str, without: Collection[str]
) -> dict[str, Parameter]:
    """Return the parameters of a method that are not in *path*, with their types."""
    found = {}
    for name, each in list(inspect.signature(call).parameters.items())[1:]:
        if name in without or f"{{{name}}}" in path:
            continue
        kind = each.annotation
        kind = _QUOTED[kind] if isinstance(kind, str) else kind
        found[name] = each.replace(annotation=kind, kind=Parameter.KEYWORD_ONLY)
    return found


def _told(call: Callable[..., Awaitable[object]]) -> tuple[str, str, dict[str, str]]:
    """Return the first line, the rest and the arguments of a docstring, without its errors.

    Arguments that are options of a start have their texts from there.
    """
    head, _, rest = (inspect.getdoc(call) or "").partition("\n\nRaises")[0].partition("\n\nArgs:\n")
    summary, _, description = head.partition("\n")
    arguments, name = {**field_docs(StartOptions)}, ""
    for line in rest.partition("\n\n")[0].splitlines():
        first, colon, text = line.strip().partition(": ")
        if colon and first in inspect.signature(call).parameters:
            name, arguments[first] = first, text
        else:
            arguments[name] += f" {line.strip()}"
    return summary, description.strip(), arguments


def syntax_of(source: str) -> list[ast.stmt]:
    """Return the statements of *source*.

    CPython counts how deep it is for all threads together: a parse beside another one can fail.
    """
    with suppress(SystemError):
        return ast.parse(source).body
    return ast.parse(source).body


@cache
def field_docs(kind: type) -> dict[str, str]:
    """Return the docstrings of the fields of a class, by name."""
    (body,) = syntax_of(textwrap.dedent(inspect.getsource(kind)))
    lines = body.body if isinstance(body, ast.ClassDef) else []
    return {
        before.target.id: inspect.cleandoc(after.value.value)
        for before, after in pairwise(lines)
        if isinstance(before, ast.AnnAssign)
        and isinstance(before.target, ast.Name)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
        and isinstance(after.value.value, str)
    }


def _title(call: Callable[..., Awaitable[object]]) -> str:
    name: str = call.__name__
    return "".join(word.capitalize() for word in name.split("_")) + "Body"


_SESSION: Final = "/sessions/{session}"
_OF_A_CHECK: Final = {"until": "The last version to decide again; by default the newest."}
_OF_A_RUN: Final = {
    "blueprint": "The name of a blueprint, from `/v1/blueprints`.",
    "queue_seconds": "How long the run waits for a runner before it fails, in seconds.",
}
ROUTES: Final = (
    _asks("/sessions", Client.sessions, "cueline list --json"),
    _asks(_SESSION, Client.show, "cueline show {session} --json"),
    _asks(f"{_SESSION}/transcript", Client.transcript, ""),
    _asks(f"{_SESSION}/export", Client.export, "cueline export {session}"),
    _asks(f"{_SESSION}/workflow", Client.workflow_state, "cueline workflow show {session} --json"),
    _asks(f"{_SESSION}/check", Client.check, "cueline replay {session} --json", texts=_OF_A_CHECK),
    _asks(f"{_SESSION}/rerun", Client.rerun_result, ""),
    _asks(f"{_SESSION}/diff/{{other}}", Client.diff, "cueline diff {session} {other} --json"),
    _asks(f"{_SESSION}/budget", Client.budget, "cueline budget show {session} --json"),
    _wishes(f"{_SESSION}/messages", MessageSent, "cueline send {session} TEXT"),
    _wishes(f"{_SESSION}/model", ModelChangeAsked, "cueline send {session} --model MODEL"),
    _wishes(f"{_SESSION}/pause", PauseAsked, "cueline pause {session}"),
    _wishes(f"{_SESSION}/limits", RaiseAsked, "cueline budget raise {session}"),
    _wishes(f"{_SESSION}/stop", StopAsked, "cueline stop {session}"),
    _does("/sessions/{id}/resume", Client.resume, "cueline resume {id}"),
    _does(f"{_SESSION}/fork", Client.fork, "cueline fork {session} --at N"),
    _asks("/approvals", Client.pending, "cueline pending --json"),
    _wishes(
        "/approvals/{approval}/decision",
        DecisionGiven,
        "cueline approve {approval}",
        without=("approval", "by"),
    ),
    _asks("/runs", Client.runs, "cueline runs --json"),
    _does("/runs", Client.submit, "cueline submit BLUEPRINT", texts=_OF_A_RUN),
    _does("/runs/{run}/retry", Client.retry, "cueline retry {run}"),
    _asks("/blueprints", Client.blueprints, "cueline blueprints --json"),
    _asks("/runners", Client.runners, "cueline runners --json"),
    _does("/runners", register_runner, "cueline runner start --connect URL"),
    _does("/runners/{runner}/heartbeat", runner_heartbeat, ""),
    _does("/runners/{runner}/requests", runner_requests, ""),
    _does("/runners/{runner}/replies", runner_replies, ""),
    _does("/runners/{runner}/leave", leave_runner, ""),
    _asks("/costs", Client.costs, "cueline costs --json"),
    _asks("/audit", Client.audit, "cueline audit --json"),
    _asks("/audit/sql", Client.sql, "cueline audit --sql QUERY --json"),
    _asks("/breakers", Client.breakers, "cueline breakers --json"),
    _does("/breakers/{name}/reset", Client.reset_breaker, "cueline breakers reset {name}"),
    _does("/proposals", Client.propose, ""),
    _does("/proposals/{proposal}/commit", Client.commit_proposal, ""),
    _does("/proposals/{proposal}/reject", Client.reject_proposal, ""),
    _does("/proposals/{proposal}/undo", Client.undo_proposal, ""),
    _asks("/status", Client.status, "cueline status --json"),
    _asks("/fleet", Client.fleet, "cueline fleet --json"),
    _does("/fleet/scale", Client.scale, "cueline scale --hosts N"),
    _asks("/sandboxes", Client.sandboxes, "cueline sandboxes --json"),
    _asks("/tokens", tokens, "cueline tokens list --json"),
    _does("/tokens", issue_token, "cueline tokens issue PERSON"),
    _does("/tokens/{token}/rotate", rotate_token, "cueline tokens rotate {token}"),
    _does("/tokens/{token}/revoke", revoke_token, "cueline tokens revoke {token}"),
    _does("/erase", erase, "cueline erase SESSION"),
    _asks("/verify", Client.verify, "cueline audit verify --json"),
)
"""All requests of the API, except for the streams of events."""


def pairs(name: str, given: list[str]) -> dict[str, str]:
    """Return the mapping that is written as `key=value`, one item for each key.

    Raises:
        ConfigError: an item has no `=`.
    """
    found = {}
    for each in given:
        key, sign, value = each.partition("=")
        if not sign:
            raise ConfigError(name, f"{each!r} is not of the form key=value")
        found[key] = value
    return found
