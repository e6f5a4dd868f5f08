"""The tool contract: a typed function, and what is declared of it.

What is declared decides what happens to a call whose outcome was lost in a
crash: `read_only` and `idempotent` calls are run again, `reconcile` is asked,
and a call of which nothing is declared is never repeated on its own (I5).
"""

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, overload

from msgspec import Struct
from pydantic import JsonValue

from cueline.errors import ConfigError, ToolFailedError, ToolImportError
from cueline.events.agent import BreakerPolicy, Declared, Preset, RetryPolicy, ToolSpec
from cueline.tools.declaration import (
    Function,
    Transient,
    as_words,
    check_named,
    cost_of,
    declaration,
    exceptions,
    name_of,
    positive,
    retries_of,
)
from cueline.tools.schema import Signature, subject
from cueline.tools.target import fetch, locate

TIMEOUT_SECONDS = 300.0
OUTPUT_LIMIT = 100 * 1024 * 1024


class ToolContext(Struct, frozen=True, kw_only=True):
    """The call that a tool's function serves; injected into a parameter of this type."""

    session: str
    """Its stream, by which `Runtime.session` finds it."""
    effect: str
    attempt: int
    key: str
    """The idempotency key: the same for every attempt of this call."""
    folder: Path | None = None

    @property
    def workspace(self) -> Path:
        """Where the agent's files are.

        Raises:
            ToolFailedError: the tool is not declared as needing it.
        """
        if self.folder is None:
            reason = "there is no workspace here: declare the tool with `needs_workspace=True`"
            raise ToolFailedError("tool_error", reason)
        return self.folder


class Output(Struct, frozen=True):
    """What a tool returns that had to leave something out."""

    content: bytes
    truncated_from: int | None = None
    """The size of the whole, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool:
    """A function that a model may ask for."""

    name: str
    function: Function
    signature: Signature
    declared: Declared
    reconcile: Function | None
    sensitive: bool
    version: str
    timeout_seconds: float
    in_loop: bool
    needs_workspace: bool
    critical: bool = True
    retry: RetryPolicy | None = None
    breaker: BreakerPolicy | None = None
    transient: Transient = ()
    tags: tuple[str, ...] = ()
    cost_usd: Decimal | None = None
    estimator: Function | None = None
    """What estimates the cost of each call, from its arguments."""
    paths: tuple[str, ...] = ()
    writes: tuple[str, str] | None = None

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the function, as if it were not a tool."""
        return self.function(*args, **kwargs)

    def run(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> object:
        """Call the function; an async one returns what is to be awaited.

        Raises:
            ToolFailedError: the arguments do not fit; tell the model.
        """
        bound = self.signature.bind(arguments)
        if self.signature.injected is not None:
            bound[self.signature.injected] = context
        return self.function(**bound)

    def spec(self) -> ToolSpec:
        """Return the tool as it is recorded.

        Raises:
            ToolImportError: no other process could find it; put it in a module.
        """
        parameters = self.signature.schema()
        target = locate(self, self.function.__module__)
        promise = [self.name, parameters, self.declared, target, self.version]
        return ToolSpec(
            name=self.name,
            description=self.signature.description or self.name,
            parameters=parameters,
            declared=self.declared,
            sensitive=self.sensitive,
            target=target,
            version=self.version,
            timeout_seconds=self.timeout_seconds,
            in_loop=self.in_loop,
            needs_workspace=self.needs_workspace,
            critical=self.critical,
            retry=self.retry,
            breaker=self.breaker,
            tags=self.tags,
            cost_usd=self.cost_usd,
            estimates=self.estimator is not None,
            paths=self.paths,
            writes=self.writes,
            digest=hashlib.sha256(json.dumps(promise, sort_keys=True).encode()).hexdigest(),
        )


@overload
def tool(function: Function, /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    read_only: bool = False,
    idempotent: bool = False,
    reconcile: Function | None = None,
    sensitive: bool = False,
    timeout_seconds: float = TIMEOUT_SECONDS,
    version: str = "1",
    in_loop: bool | None = None,
    needs_workspace: bool = False,
    critical: bool = True,
    retry: RetryPolicy | Preset | None = None,
    breaker: BreakerPolicy | None = None,
    transient: Sequence[type[Exception]] = (),
    tags: Sequence[str] = (),
    cost_usd: Decimal | str | Function | None = None,
    paths: Sequence[str] = (),
    writes: tuple[str, str] | None = None,
) -> Callable[[Function], Tool]: ...
def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    read_only: bool = False,
    idempotent: bool = False,
    reconcile: Function | None = None,
    sensitive: bool = False,
    timeout_seconds: float = TIMEOUT_SECONDS,
    version: str = "1",
    in_loop: bool | None = None,
    needs_workspace: bool = False,
    critical: bool = True,
    retry: RetryPolicy | Preset | None = None,
    breaker: BreakerPolicy | None = None,
    transient: Sequence[type[Exception]] = (),
    tags: Sequence[str] = (),
    cost_usd: Decimal | str | Function | None = None,
    paths: Sequence[str] = (),
    writes: tuple[str, str] | None = None,
) -> Tool | Callable[[Function], Tool]:
    """Make a tool of a typed function at the top level of a module.

    The model is told the docstring, and of each parameter its type and what an
    `Args:` section or `Annotated[..., Field(description=...)]` says. A parameter
    of the type `ToolContext` is filled by the runner.

    A sync function runs in a worker process, which is killed at the time-out
    with everything that it started. An async function runs in the runner's own
    loop, where it is cancelled: there it sees the runner's environment, and must
    neither block nor start processes.

    Args:
        function: what is decorated.
        name: what the model calls it, when that is not the function's name.
        read_only: it changes nothing, so it may be run again anywhere.
        idempotent: twice with one idempotency key is the same as once.
        reconcile: `fn(key)` says what became of a call: "happened",
            "did_not_happen" or "unknown", or that and the output as a pair.
        sensitive: a person has to allow each call.
        timeout_seconds: how long a call may take.
        version: change it when the same arguments come to mean another thing.
        in_loop: False makes an async function run in a worker process.
        needs_workspace: calls go where the agent's files are.
        critical: False if the work is worth something without it: a failure
            then makes the result partial.
        retry: how a call that may be repeated is tried again, when that is not
            what the agent says; the name of a preset will do.
        breaker: when its failures keep everybody from calling it for a while.
        transient: the exceptions that pass: what raised one is tried again, if
            it may be repeated. Or raise a `ToolFailedError` of a kind that passes.
        tags: words that rules of approval go by; `phase:NAME` ends the phase NAME.
        cost_usd: what a call is estimated to cost, for rules of approval: an
            amount, or a function that is called with the call's arguments. It
            runs in the host of the session, must not block, and may be async;
            where it fails, or takes 5 s, a person is asked.
        paths: the arguments that name files, for rules of approval.
        writes: the arguments that name a file and what is written there as a
            whole: whoever is asked sees the difference.

    Raises:
        ConfigError: the declaration contradicts itself, or cannot be told to a model.
    """

    def make(function: Function) -> Tool:
        files = as_words(function, "paths", paths)
        check_named(function, (*files, *(writes or ())))
        asynchronous = inspect.iscoroutinefunction(function)
        if inspect.isasyncgenfunction(function):
            raise ConfigError(
                subject(function), "an async generator returns nothing; return a list"
            )
        if in_loop and not asynchronous:
            raise ConfigError(subject(function), "only an async function runs in the loop")
        signature = Signature.of(function, ToolContext)
        each_usd, estimator = cost_of(function, cost_usd, signature.names)
        return Tool(
            name=name_of(function, name),
            function=function,
            signature=signature,
            declared=declaration(
                function, read_only=read_only, idempotent=idempotent, reconcile=reconcile
            ),
            reconcile=reconcile,
            sensitive=sensitive,
            version=version,
            timeout_seconds=positive(function, timeout_seconds),
            in_loop=asynchronous if in_loop is None else in_loop,
            needs_workspace=needs_workspace,
            critical=critical,
            retry=retries_of(function, retry),
            breaker=breaker,
            transient=exceptions(function, transient),
            tags=as_words(function, "tags", tags),
            cost_usd=each_usd,
            estimator=estimator,
            paths=files,
            writes=writes,
        )

    return make if function is None else make(function)


@lru_cache(maxsize=1000)
def load(target: str) -> Tool:
    """Return the tool that *target* names.

    Raises:
        ToolImportError: there is none; make it importable.
    """
    found = fetch(target)
    if isinstance(found, Tool):
        return found
    reason = "decorate it with `@tool`" if callable(found) else f"a {type(found).__name__}"
    raise ToolImportError(target, f"not a tool: {reason}")
