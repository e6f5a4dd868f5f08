"""The settings of cueline, as one frozen model that shares its tables with agent files."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeGuard, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from cueline.config.config_file import DEFAULT_LOG, IDLE_SECONDS, PREFIX
from cueline.config.problem import MEANINGS, URL, VARIABLE
from cueline.deciders.heartbeat import HEARTBEAT
from cueline.events.agent import Fallback, Limits, Policy, Price
from cueline.events.agent_parts import BreakerPolicy, RetryPolicy
from cueline.events.fact import Seconds, Time, Whole
from cueline.events.log_url import LogUrl

Variable = Annotated[str, Field(pattern=VARIABLE)]
Address = Annotated[str, Field(pattern=URL)]


def _log_url(name: object) -> LogUrl:
    if not isinstance(name, str | LogUrl):
        raise PydanticCustomError("path_type", "no path")
    return LogUrl.of(name)


Log = Annotated[LogUrl, PlainValidator(_log_url), PlainSerializer(str)]


def _checked(others: tuple[Fallback, ...]) -> tuple[Fallback, ...]:
    """Return the fallback models *others*; raise if one is invalid."""
    for index, other in enumerate(others):
        for key, pattern in (("base_url", URL), ("key_variable", VARIABLE)):
            said = getattr(other, key)
            if said is not None and not re.fullmatch(pattern, said):
                raise ValueError(f"fallback.{index}.{key} is not {MEANINGS[pattern]}")
        if not (other.provider and other.model):
            raise ValueError(f"fallback.{index} has an empty provider or model")
    return others


class ApprovalSettings(BaseModel):
    """How long an approval waits, unless the policy has another time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    attached_seconds: Seconds = Field(default=300.0, gt=0)
    """The wait in seconds if a person watches at a terminal."""
    detached_seconds: Seconds = Field(default=86_400.0, gt=0)
    """The wait in seconds if no person watches."""


class RunnerSettings(BaseModel):
    """The number of calls that one runner executes at a time, by kind."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    slots: Whole = Field(default=256, ge=1, le=10_000)
    """The number of calls of async tools, which run in the runner's event loop."""
    workers: Whole = Field(default=8, ge=1, le=1000)
    """The number of calls of other tools, each of which takes a process."""
    blueprints: str | None = Field(default=None, min_length=1)
    """The folder of the agent files that the runners of `cueline up` offer as blueprints."""


class ClusterSettings(BaseModel):
    """The times after which idle workers retire, and silent runners count as stale or dead."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    idle_seconds: Time = Field(default=IDLE_SECONDS, ge=0, le=86_400)
    """The time after which an idle worker above its group's minimum retires."""
    heartbeat_seconds: Time = Field(default=HEARTBEAT.interval, gt=0, le=86_400)
    """The interval at which the dispatcher checks the heartbeats of registered runners."""
    stale_seconds: Time = Field(default=HEARTBEAT.stale, gt=0, le=86_400)
    """The silence after which a runner gets no more runs."""
    removal_seconds: Time = Field(default=HEARTBEAT.removal, ge=30, le=86_400)
    """The silence after which a runner is removed; the runner ends itself after half the time."""


class SandboxSettings(BaseModel):
    """How many sandboxes of a log are started at a time, and when they stop."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_started: Whole = Field(default=10, ge=1, le=10_000)
    """The number of sandboxes that may be started at a time; other sessions wait in order."""
    stop_after_seconds: Time = Field(default=0.0, ge=0, le=3600)
    """The time for which the sandbox of a session that waits stays started."""


class SealSettings(BaseModel):
    """When `cueline up` and `cueline serve` seal their log, and where the seals go."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    every_seconds: Time = Field(default=60.0, ge=0, le=86_400)
    """The time for which an event stays unsealed; 0: the log is not sealed by itself."""
    every_events: Whole = Field(default=1000, ge=1, le=10_000_000)
    """The number of new events that are sealed earlier."""
    folder: str | None = Field(default=None, min_length=1)
    """The folder outside of the log for the seals."""
    key: str | None = Field(default=None, min_length=1)
    """The file with the private key, in PEM."""


class TelemetrySettings(BaseModel):
    """Where traces of the sessions go, and what they have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    endpoint: Address | None = None
    """The URL to which `cueline serve` sends traces by OTLP; without it, none are sent."""
    content: bool = False
    """Whether traces have what people, models and tools said."""


class UserSettings(BaseModel):
    """The provider, model and address of one user, instead of the settings for all users."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: str | None = Field(default=None, min_length=1)
    model: str | None = Field(default=None, min_length=1)
    base_url: str | None = Field(default=None, pattern=URL)


class Settings(BaseModel):
    """All settings; every key has a value.

    The settings contain no secret, only the names of variables with secrets (I11).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    log: Log = DEFAULT_LOG
    """The log: a path or a URL."""
    grace_seconds: Time = Field(default=5.0, ge=0, le=3600)
    """The time that running effects have to finish after a signal or a stop."""
    hide_thinking: bool = False
    """Whether the model's thoughts are hidden at a terminal."""
    provider: str | None = Field(default=None, min_length=1)
    model: str | None = Field(default=None, min_length=1)
    base_url: str | None = Field(default=None, pattern=URL)
    key_variable: Variable | None = None
    headers: dict[str, str] = {}
    allow_base_urls: tuple[Address, ...] = ()
    """The addresses, besides the vendor and this machine, to which an agent file may send a key."""
    allow_key_variables: tuple[Variable, ...] = ()
    """The variables, besides the provider's own, that an agent file may send."""
    secrets: tuple[Variable, ...] = ()
    prices: dict[str, Price] = {}
    on_unknown_price: Literal["error", "assume", "ignore"] | None = None
    limits: Limits = Limits()
    retry: RetryPolicy = RetryPolicy()
    tool_retry: RetryPolicy | None = None
    fallback: Annotated[tuple[Fallback, ...], AfterValidator(_checked)] = ()
    breaker: BreakerPolicy = BreakerPolicy()
    policy: Policy = Policy()
    approval: ApprovalSettings = ApprovalSettings()
    runner: RunnerSettings = RunnerSettings()
    cluster: ClusterSettings = ClusterSettings()
    sandboxes: SandboxSettings = SandboxSettings()
    seal: SealSettings = SealSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    users: dict[str, UserSettings] = {}
    """The settings of single users, by name."""


ADDED = frozenset({"allow_base_urls", "allow_key_variables", "prices", "secrets"})
"""The keys for which the values of all sources are combined."""
OF_PROVIDER = frozenset({"model", "base_url", "key_variable", "headers"})
"""The keys that a source sets for its provider; the values are never sent to another provider."""
APPROVAL_SECONDS = "policy.approval_seconds"
"""The key of an approval's wait; if it is not set, the table `approval` has the wait."""


_RENAMED = {"limits.max_active_seconds": "CUELINE_TIME_BUDGET"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting, for example `limits.max_turns`."""

    key: str
    field: FieldInfo

    @property
    def kind(self) -> Any:
        """The type of the setting's values."""
        return self.field.annotation

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The accepted types: one type, a type and None, or some words."""
        choice = get_origin(self.kind) not in (None, tuple, dict)
        return get_args(self.kind) if choice else (self.kind,)

    @property
    def default(self) -> Any:
        """The setting's default value."""
        return self.field.get_default(call_default_factory=True)

    @property
    def variable(self) -> str | None:
        """The environment variable of the setting; None if only a file can set it."""
        if self._is_list and _is_model(get_args(self.kind)[0]):
            return None
        if get_origin(self.kind) is dict or any(map(_is_model, self.kinds)):
            return None
        name = self.key.removeprefix("limits.").replace(".", "_").upper()
        return _RENAMED.get(self.key, PREFIX + name)

    def read(self, value: object) -> Any:
        """Return the validated *value* of the setting.

        Raises:
            ValueError: the value is invalid.
        """
        return self._adapter.validate_python(value)

    def read_text(self, text: str) -> Any:
        """Return the value in *text*; commas separate the items of a list.

        Raises:
            ValueError: the value is invalid.
        """
        if self._is_list:
            return self.read([word.strip() for word in text.split(",") if word.strip()])
        return self._adapter.validate_strings(text)

    @property
    def _is_list(self) -> bool:
        return get_origin(self.kind) is tuple

    @property
    def _adapter(self) -> TypeAdapter[Any]:
        kind: Any = self.kind
        for check in self.field.metadata:
            kind = Annotated[kind, check]
        return TypeAdapter(kind)


@cache
def leaves() -> Mapping[str, Setting]:
    """Return all settings, by key."""
    return {leaf.key: leaf for leaf in leaves_of(Settings)}


def leaves_of(shape: type[BaseModel], above: str = "") -> Iterator[Setting]:
    """Yield the settings of *shape* and of the tables in it."""
    for name, field in shape.model_fields.items():
        if (table := table_of(field)) is not None:
            yield from leaves_of(table, f"{above}{name}.")
        else:
            yield Setting(f"{above}{name}", field)


def table_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the shape of *field* if it is a table; None for a single value."""
    return field.annotation if _is_model(field.annotation) else None


def _is_model(kind: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
