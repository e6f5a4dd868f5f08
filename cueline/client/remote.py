"""Requests about a log that a server has: the server carries them out, and this reads the answer.

The same methods work with both kinds of log. Reading a session, and watching it, is done here,
on the events that the server sends.
"""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from importlib import import_module
from inspect import signature
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast, get_args, get_origin
from typing import get_type_hints as type_hints

from pydantic import ConfigDict, TypeAdapter

from cueline.errors import LogUnavailableError, UnknownOutcomeError
from cueline.events.stream import shown
from cueline.stores.backend import LogServer

if TYPE_CHECKING:
    from cueline.client.context import Connection
    from cueline.client.receipt import Receipt
    from cueline.client.session import Session

C = TypeVar("C")
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound="Receipt")
_ROWS = (
    "client.limits",
    "client.open_read_models",
    "client.proposals",
    "client.receipt",
    "client.rows",
    "client.runs",
    "client.sandboxes",
    "client.session",
    "client.show",
    "client.status",
    "client.tokens",
    "client.verify",
    "projections.transcript",
)
"""The modules with the classes of results, which methods name without importing them."""


def at_server(
    method: Callable[Concatenate[C, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[C, P], Coroutine[Any, Any, R]]:
    """Return *method* of a client, which asks the server of a log that has one."""

    @wraps(method)
    async def call(client: C, /, *args: P.args, **given: P.kwargs) -> R:
        server = cast("Connection", client).log.server
        if server is None:
            return await method(client, *args, **given)
        arguments = signature(method).bind(client, *args, **given).arguments
        arguments.pop(next(iter(arguments)))
        told = await server.call(method.__name__, arguments)
        return cast("R", _result(cast("Connection", client), told, _kind_of(method)))

    return call


def _result(client: "Connection", told: Any, kind: Any) -> Any:
    """Return the result of a method of type *kind* from its JSON.

    Raises:
        LogUnavailableError: the log is damaged; the message names the damage.
    """
    from cueline.client.open_read_models import Page  # noqa: PLC0415 - it imports this module's users
    from cueline.client.receipt import StartReceipt  # noqa: PLC0415
    from cueline.client.session import Session  # noqa: PLC0415

    if isinstance(told, dict) and told.get("damage"):
        raise LogUnavailableError(str(client.log.url), told["damage"])
    if kind is Session:
        receipt = receipt_from(told, StartReceipt)
        return Session(client, client.log.session_stream(receipt.session), receipt)
    if get_origin(kind) is Page:
        return Page(read_as(told["rows"], _rows_of(kind)), told["more"], next=told["next"])
    return read_as(told, kind)


def _rows_of(page: Any) -> Any:
    return tuple[(*get_args(page), ...)]  # type: ignore[misc]


@cache
def _kind_of(method: Callable[..., object]) -> Any:
    names: dict[str, Any] = {}
    for each in _ROWS:
        names |= vars(import_module(f"cueline.{each}"))
    said = SimpleNamespace(__annotations__={"return": signature(method).return_annotation})
    return type_hints(said, method.__globals__, names)["return"]


def receipt_from(told: Any, kind: "type[T]") -> "T":
    """Return the receipt of a server, whose own process is another one here."""
    if told["read_by"] == "here":
        told = {**told, "read_by": "elsewhere"}
    receipt: T = read_as(told, kind)
    return receipt


def read_as(told: Any, kind: Any) -> Any:
    """Return the value of type *kind* whose JSON is *told*."""
    return _reader_of(kind).validate_python((told,))[0]


@cache
def _reader_of(kind: Any) -> "TypeAdapter[tuple[Any]]":
    # In a tuple, as a dataclass would not take the setting: some have a field for an error.
    return TypeAdapter(tuple[kind], config=ConfigDict(arbitrary_types_allowed=True))


@dataclass(frozen=True, slots=True)
class RemoteRequest:
    """A resume or fork that the server checks and records when it is sent."""

    stream: str
    """The stream of the session that continues or starts."""
    method: str
    arguments: Mapping[str, object]

    @property
    def id(self) -> str:
        """The id of the session."""
        return shown(self.stream)

    async def submit(self, client: "Connection", *, key: str | None = None) -> "Session":  # noqa: ARG002 - as the others
        """Send the request, and return the session; raises the errors of the client's method."""
        from cueline.client.session import Session  # noqa: PLC0415 - it imports this module

        server = client.log.server
        assert server is not None, "the log has a server"
        told = await server.call(self.method, self.arguments)
        return cast("Session", _result(client, told, Session))

    def with_time_to_answer(self, seconds: float) -> "RemoteRequest":  # noqa: ARG002 - as a fork has it
        """Return the request: the server sets the waiting time of questions."""
        return self


async def start_at(server: LogServer, request: Any) -> "Receipt":
    """Let the server start the session of *request*, a `StartRequest`.

    Raises:
        UnknownOutcomeError: the session may be recorded; the message has its id.
    """
    from cueline.client.receipt import StartReceipt  # noqa: PLC0415

    said = {
        "id": request.id,
        "key": request.key,
        "parent": request.parent,
        "asked": request.asked.model_dump(mode="json"),
        "waived": None if request.waived is None else request.waived.model_dump(mode="json"),
        "messages": [each.model_dump(mode="json") for each in request.messages],
    }
    try:
        return receipt_from(await server.call("start", said), StartReceipt)
    except UnknownOutcomeError as error:
        why = f"{error.reason}; `cueline resume {request.id}` continues it, or says that it is not"
        raise UnknownOutcomeError(error.stream, why) from error
