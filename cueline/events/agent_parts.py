"""The parts of a recorded agent: plan, failure policies, demands, headers, recorded results.

`$NAME` in a value stands for an environment variable, so that no secret is recorded.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from operator import eq, is_, not_
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, field_validator, model_validator

from cueline.events.fact import LASTING, TIME, Number, Part, Seconds, Time, Whole

Preset = Literal["standard", "exact", "short"]
"""The name of a retry policy."""


class RetryPolicy(Part):
    """How a repeatable effect is retried; the name of a preset is accepted.

    The n-th retry waits min(cap, base * factor**(n-1)), spread by +/- jitter;
    the spread is a hash of key and attempt (I10).
    """

    max_retries: Whole = Field(default=3, ge=0, le=20)
    """The most retries, without the first attempt."""
    base_seconds: Seconds = Field(default=1.0, ge=0)
    factor: Number = Field(default=2.0, ge=1)
    cap_seconds: Seconds = Field(default=60.0, ge=0)
    jitter: Number = Field(default=0.25, ge=0, le=1)
    deadline_seconds: Annotated[float | None, LASTING, TIME] = Field(default=None, gt=0)
    """No retry begins later than this after the first failure; None: no such limit."""

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, given: Any) -> Any:
        if not isinstance(given, str):
            return given
        if given not in RETRY_PRESETS:
            raise ValueError(f"no preset {given!r}; presets are {', '.join(RETRY_PRESETS)}")
        return RETRY_PRESETS[given]

    @classmethod
    def named(cls, preset: str) -> Self:
        """Return the policy of a preset.

        Raises:
            ValueError: there is no such preset; the message lists the presets.
        """
        return cls.model_validate(preset)


RETRY_PRESETS: Final[dict[Preset, dict[str, float]]] = {
    "standard": {"max_retries": 3, "base_seconds": 1, "cap_seconds": 30},
    "exact": {"max_retries": 3, "base_seconds": 2, "jitter": 0},
    "short": {"max_retries": 2, "base_seconds": 1},
}
"""The retry presets: waits of 1, 2, 4 s; of exactly 2, 4, 8 s; of 1, 2 s (C2)."""


class BreakerPolicy(Part):
    """When the circuit breaker of a failing dependency opens."""

    threshold: Whole = Field(default=5, ge=0, le=1000)
    """The number of transient failures within the window that opens the breaker; 0: never."""
    window_seconds: Time = Field(default=60.0, gt=0, le=86_400)
    timeout_seconds: Time = Field(default=60.0, gt=0, le=86_400)
    """The time from opening to the first probe; doubled after each failed probe."""
    failure_rate: Number = Field(default=0.0, ge=0, le=1)
    """The minimum share of failed calls in the window, as a second condition."""
    min_calls: Whole = Field(default=0, ge=0)
    """The minimum number of calls in the window, as a second condition."""
    on_open: Literal["wait", "fallback", "pause"] = "wait"
    """With an open breaker: wait, continue without the tool or with a fallback model, or pause."""


Word = Annotated[str, Field(min_length=1)]


class Demands(Part):
    """The demands of a call on its runner; an empty field is no demand."""

    runner: str = Field(default="", exclude_if=not_)
    """The name of the runner: its label `name`, or its incarnation."""
    machine: str = Field(default="", exclude_if=not_)
    """The machine of the runner; with a workspace, the machine of the workspace."""
    labels: dict[Word, str] = Field(default={}, exclude_if=not_)
    """The labels, with values, that the runner has to have."""
    resources: dict[Word, Annotated[Number, Field(gt=0)]] = Field(default={}, exclude_if=not_)
    """The minimum resources of the runner: `gpus`, `cpus` …"""

    def __bool__(self) -> bool:
        """Whether any field demands something."""
        return bool(self.runner or self.machine or self.labels or self.resources)

    def __hash__(self) -> int:
        """Return a hash; without one, pydantic copies `NO_DEMANDS` for each tool."""
        return hash((self.runner, self.machine))

    def __str__(self) -> str:
        """Return the demands in words: `the label gpu=a100, 2 gpus`."""
        named = {"the name": self.runner, "the machine": self.machine}
        words = [f"{what} {name}" for what, name in named.items() if name]
        words += [f"the label {key}={value}" for key, value in self.labels.items()]
        return ", ".join([*words, *(f"{need:g} {name}" for name, need in self.resources.items())])


NO_DEMANDS: Final = Demands()


_NAME: Final = re.compile(r"[A-Za-z0-9-]+")
_VALUE: Final = re.compile(r"[ -~]+")
_VARIABLE: Final = re.compile(r"\$([A-Za-z_]\w*)", re.ASCII)
_SECRET: Final = re.compile(
    "auth|cookie|credential|key|passw|secret|signature|token", re.IGNORECASE
)


def is_secret(name: str) -> bool:
    """Whether a header or a part of an address holds a secret, by its *name*."""
    return _SECRET.search(name) is not None


def problem_of(headers: Mapping[str, str]) -> str:
    """Return the fault of *headers*; empty if they are valid."""
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            return f"{name!r} is no header with a value, both in ASCII"
        if is_secret(name) and not _VARIABLE.search(value):
            return f"{name!r} would be recorded; write $NAME for the variable that holds its value"
    return ""


def variables_in(headers: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of the variables in the values of *headers*."""
    for value in headers.values():
        yield from _VARIABLE.findall(value)


def with_values(headers: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """Return *headers* with the *values* of their variables."""
    return {
        name: _VARIABLE.sub(lambda found: values[found[1]], value)
        for name, value in headers.items()
    }


def _absolute(path: str) -> str:
    if not path.startswith("/") or "/.." in path or "\0" in path:
        raise ValueError(f"{path!r} is no absolute path: write the whole path, without `..`")
    return path.rstrip("/") or "/"


GrantedPath = Annotated[str, AfterValidator(_absolute)]
"""An absolute path that isolated commands see."""


HOST_RULE: Final = re.compile(r"(\*|(?:\*\.)?[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?")
"""A host or a glob for hosts, and a port."""


def _host(text: str) -> str:
    if HOST_RULE.fullmatch(text) is None:
        raise ValueError(f"{text!r} is no host; write it as api.example.com or *.example.com:8443")
    return text


class IsolationLimits(Part):
    """The limits of an isolated command; each of the first five holds for one process."""

    memory_mb: Whole = Field(default=8192, ge=64, le=1 << 24)
    """The most MiB of memory that a process can write to."""
    open_files: Whole = Field(default=4096, ge=32)
    file_mb: Whole = Field(default=16_384, ge=1, le=1 << 24)
    """The largest file that a process can write, in MiB."""
    cpu_seconds: Seconds = Field(default=3600.0, ge=1)
    processes: Whole = Field(default=1024, ge=16)
    """The most processes and threads of the command; 301 or more if the runner is root."""
    private_mb: Whole = Field(default=1024, ge=1, le=1 << 24)
    """The size of each private folder, such as /tmp, in MiB; they are in memory."""


class Isolation(Part):
    """What the commands of an agent can reach; the name of a kind is accepted."""

    kind: Literal["auto", "bwrap", "landlock", "none"] = "auto"
    """`auto`: the best that the machine has; without any, commands are refused."""
    network: bool | tuple[Annotated[str, AfterValidator(_host)], ...] = False
    """Whether commands have the network of the machine, also its loopback interface.

    With hosts, commands reach these alone, by a proxy: `api.example.com`, `*.example.com:8443`. A
    host without a port has the ports 80 and 443; one that is no public address is named as such.
    """
    read: tuple[GrantedPath, ...] = ()
    """Further files and folders that commands can read."""
    write: tuple[GrantedPath, ...] = ()
    """Further files and folders that commands can change."""
    limits: IsolationLimits = IsolationLimits()

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, given: Any) -> Any:
        return {"kind": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _confines(self) -> Self:
        if self.kind == "none" and not isinstance(self.network, bool):
            raise ValueError("without isolation, commands reach every host: leave `network` out")
        return self


DEFAULT_ISOLATION: Final = Isolation()


class McpOAuth(Part):
    """How cueline logs in to an MCP server by OAuth."""

    client_id: str = Field(default="", exclude_if=not_)
    """A client that the server knows, or the https address of the client's metadata; empty:
    cueline registers itself."""
    client_secret: str = Field(default="", exclude_if=not_)
    """The secret of the client as `$NAME`, an environment variable; empty: it has none."""


class McpServer(Part):
    """An MCP server: a command that speaks on its standard streams, or an address.

    `$NAME` in a value of `env` or `headers` stands for an environment variable of the runner.
    """

    command: tuple[str, ...] = ()
    url: str = Field(default="", exclude_if=not_)
    env: dict[str, str] = Field(default={}, exclude_if=not_)
    """The variables of the command, in addition to PATH, HOME, USER, LANG and TERM."""
    headers: dict[str, str] = Field(default={}, exclude_if=not_)
    """The HTTP headers of each request to `url`."""
    oauth: McpOAuth | None = Field(default=None, exclude_if=partial(is_, None))
    """How cueline logs in to `url`; `true` is accepted. None: it sends no tokens."""
    tools: tuple[str, ...] | Literal["search"] = Field(
        default=("*",), exclude_if=partial(eq, ("*",))
    )
    """Globs for the names of the tools that the agent gets; `search`: all, by `find_tools`."""
    read_only: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """Globs for the tools that change nothing; what the server says of them does not count."""
    idempotent: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """Globs for the tools that may run twice."""
    ask: tuple[str, ...] | None = Field(default=None, exclude_if=partial(is_, None))
    """Globs for the tools whose calls need an approval; None: all tools but the read-only ones."""
    shared: bool = Field(default=False, exclude_if=not_)
    """Whether the sessions of a runner use one process; a stateful server would mix them up."""
    isolation: Isolation | None = Field(default=None, exclude_if=partial(is_, None))
    """What the command can reach; None: what the agent's commands can."""
    start_seconds: Seconds = Field(default=30.0, gt=0, exclude_if=partial(eq, 30.0))
    """The time in which the server has to start and list its tools."""

    @property
    def variables(self) -> set[str]:
        """The environment variables that the server gets."""
        secret = {"": self.oauth.client_secret if self.oauth else ""}
        return {name for each in (self.env, self.headers, secret) for name in variables_in(each)}

    @field_validator("oauth", mode="before")
    @classmethod
    def _with_defaults(cls, given: Any) -> Any:
        return ({} if given else None) if isinstance(given, bool) else given


class RecordedResult(Part):
    """The result of a call in an earlier session."""

    effect: str
    arguments: dict[str, JsonValue]
    """The arguments of the call, as the model requested them."""
    text: str
    """The text of the result, for the model."""
    failed: bool = Field(default=False, exclude_if=not_)
    media_type: str = Field(default="", exclude_if=not_)
    """The media type of the result's image; empty: no image."""
    image: str = Field(default="", exclude_if=not_)
    """The image in base64."""


class ToolRecording(Part):
    """The results of a tool in an earlier session, which answer the tool's calls in a rerun."""

    results: tuple[RecordedResult, ...] = ()
    run_others: bool = Field(default=False, exclude_if=not_)
    """Whether calls without a recorded result run; otherwise they fail as `not_recorded`."""

    def result_of(self, effect: str, arguments: dict[str, JsonValue]) -> RecordedResult | None:
        """Return the result of a call with equal *arguments*, preferably of *effect*; else None."""
        equal = [each for each in self.results if each.arguments == arguments]
        return next((each for each in equal if each.effect == effect), next(iter(equal), None))


Condition = Literal["always", "on_success", "on_issues_found"]
"""The outcomes of the needed steps with which a step runs; otherwise the step is skipped."""
StepStatus = Literal["completed", "failed", "skipped"]
"""How a step of a plan ended."""
MAX_PARALLEL: Final = 10
PROCEDURE: Final = "procedure"
"""The provider of agents that run a command; the plan of such an agent has one step."""
VALUE_LIMIT: Final = 1024 * 1024
"""The most bytes of a step's value, as text or JSON."""


def too_large(what: str, size: int) -> str:
    """Return the text of the error that *what*, of *size* bytes, is too large to be a value."""
    why = f"{what} has {size:,} bytes, and the most is {VALUE_LIMIT:,}"
    return f"{why}: let it write a file, and return the path"


class Step(Part):
    """A step of a plan: calls of the agent's tool with the step's name, or a wait for a message."""

    name: str
    needs: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """The steps that have to end before this step begins, also steps that its expressions read."""
    arguments: dict[str, JsonValue] = Field(default={}, exclude_if=not_)
    """The arguments of the step's call; texts may contain `{{ EXPRESSION }}`."""
    when: str = Field(default="", exclude_if=not_)
    """The expression whose value decides whether the step runs; empty: the step runs."""
    for_each: str = Field(default="", exclude_if=not_)
    """The expression whose value is a list; the step makes one call for each item."""
    wait: str = Field(default="", exclude_if=not_)
    """The name of the message whose text is the step's value; a step with a message has no tool."""
    timeout_seconds: Seconds | None = Field(default=None, gt=0, exclude_if=partial(is_, None))
    """The longest wait for the message; None: as long as for an approval."""
    critical: bool = Field(default=True, exclude_if=bool)
    """Whether the plan fails if the step's message does not come."""
    condition: Condition = Field(default="on_success", exclude_if=partial(eq, "on_success"))
    auto_approve: bool = Field(default=True, exclude_if=bool)
    """Whether the calls of steps that need it may run without a question."""


class Plan(Part):
    """The steps of a session, and its result."""

    steps: tuple[Step, ...]
    max_parallel: Whole = Field(default=MAX_PARALLEL, ge=1)
    """The most calls that run at a time; others wait."""
    output: str = Field(default="", exclude_if=not_)
    """The expression whose value is the result; empty: the value of the last completed step."""
