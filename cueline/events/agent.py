"""An agent as it will run: what `StartAsked` and `SessionStarted` record.

Resuming uses the recorded agent, never the file it came from.
"""

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

Declared = Literal["read_only", "idempotent", "reconcile", "nothing"]
"""What a tool says of doing it twice; `nothing` is the default for what writes."""


class Part(BaseModel):
    """A part of a fact."""

    # Else NaN would be written as null, which may be meant.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class ToolSpec(Part):
    """One tool, as the model is told of it and as a runner finds it."""

    name: str
    description: str
    parameters: dict[str, JsonValue]
    """JSON Schema of the arguments, as sent to the model."""
    declared: Declared = "nothing"
    sensitive: bool = False
    """Whether a person has to allow each call."""
    target: str
    """`module:name`, or `path.py:name` for a script."""
    version: str = "1"
    timeout_seconds: float = 300.0
    in_loop: bool = False
    """Runs in the runner's own loop (an async function), not in a worker process."""
    needs_workspace: bool = False
    digest: str
    """sha256 of name, schema, declaration, target and version."""


class RetryPolicy(Part):
    """How an effect that may be repeated is tried again.

    The n-th retry waits min(cap, base * factor**(n-1)), spread by +/- jitter;
    the spread is a hash of key and attempt (I10).
    """

    max_retries: int = Field(default=3, ge=0, le=20)
    base_seconds: float = Field(default=1.0, ge=0)
    factor: float = Field(default=2.0, ge=1)
    cap_seconds: float = Field(default=60.0, ge=0)
    jitter: float = Field(default=0.25, ge=0, le=1)


class Limits(Part):
    """What a session may use."""

    max_turns: int = Field(default=50, ge=1)
    """Model calls since the last message of a user."""
    max_output_tokens: int = Field(default=8192, ge=1)
    """Of one model call."""


class Policy(Part):
    """Who decides what the agent may not decide alone."""

    approval: Literal["sensitive", "off"] = "sensitive"
    """`sensitive`: calls of tools declared sensitive are asked for; `off`: none."""
    in_doubt: Literal["ask", "tell"] = "ask"
    """A call whose outcome is unknown: a person is asked, or the model is told."""
    auto_approve: bool = False
    """Requests are granted at once, and recorded as such."""
    approval_seconds: float = Field(default=86_400.0, gt=0)


Rate = Annotated[Decimal, Field(ge=0)]
"""US dollars for a million tokens."""


class Price(Part):
    """What a model costs, from a price list of one's own."""

    input: Rate
    output: Rate
    cache_read: Rate | None = None
    """None: as `input`."""
    cache_write: Rate | None = None


class Workspace(Part):
    """Where the agent's files are."""

    machine: str
    path: str


class AgentSpec(Part):
    """Everything that decides how the agent runs."""

    name: str
    provider: str
    model: str
    parameters: dict[str, JsonValue] = {}
    """Passed to the provider as they are: temperature, thinking …"""
    instructions: str = ""
    """The system prompt, as rendered."""
    tools: tuple[ToolSpec, ...] = ()
    limits: Limits = Limits()
    limit_sources: dict[str, str] = {}
    """For each limit that is not a default: where it came from."""
    retry: RetryPolicy = RetryPolicy()
    policy: Policy = Policy()
    prices: dict[str, Price] = {}
    """By `provider/model`, or `provider/*`; `*` is what to assume of an unknown price."""
    on_unknown_price: Literal["error", "assume", "ignore"] | None = None
    """None: `error` where money is limited, else `ignore`."""
    workspace: Workspace | None = None
    secrets: tuple[str, ...] = ()
    """Names of environment variables whose values are never recorded (I11)."""
    base_url: str | None = None
    """The provider's address, when it is not the vendor's own."""
    key_variable: str | None = None
    """The environment variable that holds the provider's key."""
