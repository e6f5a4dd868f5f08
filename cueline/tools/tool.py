"""The tool contract: a typed function with declarations.

The declaration decides about a call whose outcome was lost in a crash: `read_only` and
`idempotent` calls run again, `reconcile` is asked, and any other call is never repeated
automatically (I5).
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

from msgspec import Struct, field
from pydantic import JsonValue

from cueline.actors.tool_port import FileImage, SandboxPlace
from cueline.errors import ConfigError, ToolFailedError, ToolImportError
from cueline.events.agent import Declared, ToolSpec
from cueline.events.agent_parts import (
    DEFAULT_ISOLATION,
    NO_DEMANDS,
    BreakerPolicy,
    Demands,
    Isolation,
    Preset,
    RetryPolicy,
)
from cueline.events.fact import shared_fields
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
from cueline.tools.progress import Report, drop_progress
from cueline.tools.schema import Signature, subject
from cueline.tools.target import fetch, locate

TIMEOUT_SECONDS = 300.0
OUTPUT_LIMIT = 100 * 1024 * 1024


class ToolContext(Struct, frozen=True, kw_only=True):
    """The call that a tool's function serves; injected into a parameter of this type."""

    session: str
    """The session's stream, by which `Runtime.session` finds it."""
    effect: str
    attempt: int
    key: str
    """The idempotency key: the same for every attempt of this call."""
    folder: Path | None = None
    changes: list[FileImage] = field(default_factory=list)
    """The files that the call has changed; the built-in file tools add to it."""
    isolation: Isolation = DEFAULT_ISOLATION
    """The isolation of the agent's commands."""
    hidden: tuple[Path, ...] = ()
    """The files of the log, which isolated commands do not see."""
    environment: tuple[str, ...] = ()
    """The names of the variables that the agent's file lists in `environment`."""
    overlay: str = ""
    """The folder that gets what isolated commands change; empty: the workspace gets it."""
    sandbox: SandboxPlace | None = None
    """The sandbox that has the workspace; None: the workspace is here."""
    options: dict[str, JsonValue] = {}
    """What the agent's file says to a shipped tool; empty for other tools."""
    report: Report = drop_progress
    """See `progress`."""

    def progress(self, share: float | None, text: str = "") -> None:
        """Show people who watch how far the call is; nothing is recorded, and it never waits.

        At most 10 a second are shown; others are dropped.

        Args:
            share: the done share of the work, from 0 to 1; None if it is unknown.
            text: what is done at the moment; up to 200 characters of it are shown.
        """
        self.report(share, text)

    @property
    def workspace(self) -> Path:
        """The folder with the agent's files.

        Raises:
            ToolFailedError: the tool does not declare `needs_workspace`.
        """
        if self.folder is None:
            reason = "there is no workspace here: declare the tool with `needs_workspace=True`"
            raise ToolFailedError("tool_error", reason)
        return self.folder


class Output(Struct, frozen=True):
    """The output of a tool that had to leave out a part."""

    content: bytes
    truncated_from: int | None = None
    """The size of the whole, in bytes."""
    media_type: str = ""
    text: bytes = b""
    """See `ToolOutput`."""


class Image(Struct, frozen=True):
    """An image as the result of a tool: PNG, JPEG, GIF or WebP, of up to 5 MB."""

    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool:
    """A function that a model may call."""

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
    """Estimates the cost of each call from its arguments."""
    paths: tuple[str, ...] = ()
    writes: tuple[str, str] | None = None
    demands: Demands = NO_DEMANDS

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the plain function."""
        return self.function(*args, **kwargs)

    def run(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> object:
        """Call the function; an async one returns an awaitable.

        Raises:
            ToolFailedError: the arguments are invalid; the message is for the model.
        """
        bound = self.signature.bind(arguments)
        if self.signature.injected is not None:
            bound[self.signature.injected] = context
        return self.function(**bound)

    def spec(self) -> ToolSpec:
        """Return the recorded form of the tool.

        Raises:
            ToolImportError: no other process could import the tool; put it in a module.
        """
        parameters = self.signature.schema()
        target = locate(self, self.function.__module__)
        promise = [self.name, parameters, self.declared, target, self.version]
        return ToolSpec(
            **shared_fields(self, ToolSpec),
            description=self.signature.description or self.name,
            parameters=parameters,
            target=target,
            estimates=self.estimator is not None,
            returns_text=self.signature.returns_text,
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
    demands: Demands = NO_DEMANDS,
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
    demands: Demands = NO_DEMANDS,
) -> Tool | Callable[[Function], Tool]:
    """Create a tool from a typed function at the top level of a module.

    The model gets the docstring, and for each parameter its type and the text of an
    `Args:` section or of `Annotated[..., Field(description=...)]`. The runner fills a
    parameter of the type `ToolContext`.

    A sync function runs in a worker process; at the time-out this process and all that it
    started are killed. An async function runs in the runner's own loop, where it is cancelled;
    there it sees the runner's environment, and must neither block nor start processes.

    Args:
        function: the decorated function.
        name: the name for the model, if it is not the function's name.
        read_only: it changes nothing, so it may run again anywhere.
        idempotent: two calls with one idempotency key have the effect of one.
        reconcile: `fn(key)` returns the outcome of a call: "happened",
            "did_not_happen" or "unknown", or a pair of that and the output.
        sensitive: each call needs an approval.
        timeout_seconds: the time limit of a call.
        version: change it when the same arguments get another meaning.
        in_loop: False makes an async function run in a worker process.
        needs_workspace: calls run where the agent's files are.
        critical: False if the work has value without the tool: a failure of it
        makes the result partial.
        retry: the retry policy of repeatable calls, or the name of a preset;
            by default the agent's.
        breaker: the circuit breaker that stops all calls after failures.
        transient: exceptions after which a repeatable call is retried. Or raise
            a `ToolFailedError` of a transient kind.
        tags: tags for approval rules; `phase:NAME` ends the phase NAME.
        cost_usd: the estimated cost of a call, for approval rules: an amount, or
            a function of the call's arguments. It runs in the session's host,
            must not block, and may be async; if it fails or takes 5 s, a
            person is asked.
        paths: the arguments that name files, for approval rules.
        writes: the arguments that name a file and its new content, so that a
            question shows the diff.
        demands: the demands of calls on their runner, such as labels.

    Raises:
        ConfigError: the declaration contradicts itself, or has no JSON form.
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
            demands=demands,
        )

    return make if function is None else make(function)


@lru_cache(maxsize=1000)
def load(target: str) -> Tool:
    """Return the tool at *target*.

    Raises:
        ToolImportError: there is no such tool; make it importable.
    """
    found = fetch(target)
    if isinstance(found, Tool):
        return found
    reason = "decorate it with `@tool`" if callable(found) else f"a {type(found).__name__}"
    raise ToolImportError(target, f"not a tool: {reason}")
