"""An agent as it will run: what `StartAsked` and `SessionStarted` record.

Resuming uses the recorded agent, never the file it came from.
"""

from decimal import Decimal
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    model_validator,
)

from cueline.events.number import (
    LARGEST,
    LASTING,
    NUMBER,
    PAYABLE,
    TIME,
    Number,
    Parameters,
    Seconds,
    Time,
    Whole,
)

Declared = Literal["read_only", "idempotent", "reconcile", "nothing"]
"""What a tool says of doing it twice; `nothing` is the default for what writes."""

Preset = Literal["standard", "exact", "short"]
"""The name of a retry policy."""


class Part(BaseModel):
    """A part of a fact."""

    # Else NaN would be written as null, which may be meant.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class RetryPolicy(Part):
    """How an effect that may be repeated is tried again; the name of a preset will do.

    The n-th retry waits min(cap, base * factor**(n-1)), spread by +/- jitter;
    the spread is a hash of key and attempt (I10).
    """

    max_retries: Whole = Field(default=3, ge=0, le=20)
    """Retries, not attempts: the first attempt is none of them."""
    base_seconds: Seconds = Field(default=1.0, ge=0)
    factor: Number = Field(default=2.0, ge=1)
    cap_seconds: Seconds = Field(default=60.0, ge=0)
    jitter: Number = Field(default=0.25, ge=0, le=1)
    deadline_seconds: Annotated[float | None, LASTING, TIME] = Field(default=None, gt=0)
    """From the first failure on: no retry begins later; None: only their number counts."""

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
            ValueError: there is no such preset; the message names those that are.
        """
        return cls.model_validate(preset)


RETRY_PRESETS: Final[dict[Preset, dict[str, float]]] = {
    "standard": {"max_retries": 3, "base_seconds": 1, "cap_seconds": 30},
    "exact": {"max_retries": 3, "base_seconds": 2, "jitter": 0},
    "short": {"max_retries": 2, "base_seconds": 1},
}
"""After 1, 2, 4 s · after 2, 4, 8 s, to the second · after 1, 2 s (C2)."""


class BreakerPolicy(Part):
    """When a dependency that keeps failing is left alone for a while."""

    threshold: Whole = Field(default=5, ge=0, le=1000)
    """So many failures that may pass, within the window, open the breaker; 0: it never opens."""
    window_seconds: Time = Field(default=60.0, gt=0, le=86_400)
    timeout_seconds: Time = Field(default=60.0, gt=0, le=86_400)
    """How long it stays open before a probe; doubled each time that one fails."""
    failure_rate: Number = Field(default=0.0, ge=0, le=1)
    """And so large a share of the calls in the window has to have failed."""
    min_calls: Whole = Field(default=0, ge=0)
    """And there have to be so many calls in the window."""
    on_open: Literal["wait", "fallback", "pause"] = "wait"
    """What a session does meanwhile: wait, use what it has instead, or ask a person."""


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
    critical: bool = True
    """Without it the work cannot be whole; the failure of any other makes the result partial."""
    retry: RetryPolicy | None = None
    """Its own, where it has one; else the agent's `tool_retry`, else its `retry`."""
    tags: tuple[str, ...] = ()
    """Words that rules of approval go by; `phase:NAME` ends the phase NAME."""
    cost_usd: Decimal | None = None
    """What a call is estimated to cost, beside the model's own cost."""
    estimates: bool = False
    """The tool estimates each call by itself; `cost_usd` says nothing then."""
    paths: tuple[str, ...] = ()
    """The arguments that name files."""
    writes: tuple[str, str] | None = None
    """The arguments that name a file, and what is written there as a whole."""
    breaker: BreakerPolicy | None = None
    """Without one its failures are nobody else's concern."""
    digest: str
    """sha256 of name, schema, declaration, target and version."""


class Limits(Part):
    """What a session may use."""

    max_turns: Whole = Field(default=50, ge=1)
    """Model calls since the last message of a user."""
    max_tool_calls_per_turn: Whole = Field(default=100, ge=1)
    """What the model asks for beyond it in one turn is not run, and it is told so."""
    max_output_tokens: Whole = Field(default=8192, ge=1)
    """Of one model call."""
    max_tokens: Annotated[int | None, LARGEST, NUMBER] = Field(default=None, ge=1)
    """Of the session and all its descendants, sent and answered."""
    max_cost: Annotated[Decimal | None, PAYABLE] = Field(default=None, gt=0)
    """In US dollars, likewise."""
    max_active_seconds: Seconds = Field(default=14_400.0, gt=0)
    """Of work: what its model calls and tool calls take, each counted, also side by side."""
    max_wall_seconds: Annotated[float | None, LASTING, TIME] = Field(default=None, gt=0)
    """Since the start, whatever the session does or waits for."""
    max_depth: Whole = Field(default=4, ge=0)
    """How many sessions may be above a child that it asks for."""
    max_descendants: Whole = Field(default=100, ge=0)
    """Of a session without a parent: how many may ever be below it, at any depth."""


Profile = Literal["off", "sensitive", "cost", "all_writes", "phase_gates"]
Answer = Literal["allow", "notify", "ask", "deny"]
"""What a rule says of a call, the weakest first; `notify` allows it, and tells people."""


def _listed(value: object) -> object:
    """Take one profile for a list of one: `approval = "off"`."""
    return (value,) if isinstance(value, str) else value


class Rule(Part):
    """One rule of approval: what it says of the calls that fit all that it names."""

    name: str
    answer: Answer
    tools: tuple[str, ...] = ()
    """Names of tools; `*` stands for anything."""
    sensitive: bool | None = None
    declared: tuple[Declared, ...] = ()
    tags: tuple[str, ...] = ()
    """It has one of these tags."""
    phases: tuple[str, ...] = ()
    """It ends one of these phases; `*` stands for any."""
    paths: tuple[str, ...] = ()
    """Globs: one of its paths lies there. `**` crosses folders."""
    commands: tuple[str, ...] = ()
    """Globs: one of its texts, or a command in it, reads like this."""
    items_over: Annotated[int | None, LARGEST, NUMBER] = Field(default=None, ge=0)
    """One of its lists is longer: a batch."""
    bytes_over: Annotated[int | None, LARGEST, NUMBER] = Field(default=None, ge=0)
    """Its arguments take more than this, in JSON."""
    usd_from: Decimal | None = Field(default=None, ge=0)
    """It is estimated to cost this or more."""
    may_grant: tuple[str, ...] = ()
    """Who may allow it; empty: anybody. `*` stands for anything."""
    votes: Whole = Field(default=1, ge=1, le=9)
    """So many people have to allow it."""
    exclude_requester: bool = False
    """Whoever asked for the session may not allow it."""


class Hook(Part):
    """What is run, or called, to reach people about a question."""

    on: Literal["asked", "reminder", "notify"]
    """`asked`: also when others are asked, for nobody answered; `notify`: the call goes on."""
    command: tuple[str, ...] = ()
    """Run with the question as JSON on its standard input."""
    url: str | None = None
    """Sent the question as JSON; `$NAME` is that of a variable that holds it, if it is secret."""
    after_seconds: Seconds = Field(default=0.0, ge=0)
    """Of a reminder: so long after the question."""


def url_variable(hook: Hook) -> str | None:
    """Return the variable that holds the hook's URL, where it is not written out."""
    return hook.url[1:] if hook.url is not None and hook.url.startswith("$") else None


class Policy(Part):
    """Who decides what the agent may not decide alone."""

    approval: Annotated[tuple[Profile, ...], BeforeValidator(_listed)] = ("sensitive",)
    """Ready-made rules; `off` is none."""
    rules: tuple[Rule, ...] = ()
    """Rules beside those; deny is stronger than ask, and ask than allow."""
    notify_from_usd: Decimal = Field(default=Decimal("0.10"), ge=0)
    """Of the profile `cost`: people are told of such a call, and it goes on."""
    ask_from_usd: Decimal = Field(default=Decimal("0.50"), ge=0)
    """Likewise: a person has to allow it."""
    deny_from_usd: Decimal | None = Field(default=None, ge=0)
    """Likewise: nobody can allow it."""
    in_doubt: Literal["ask", "tell"] = "ask"
    """A call whose outcome is unknown: a person is asked, or the model is told."""
    auto_approve: bool = False
    """Requests are granted at once, and recorded as such."""
    auto_approve_after: Annotated[float | None, LASTING, TIME] = Field(default=None, gt=0)
    """Requests are granted after so many seconds in which nobody denied them."""
    approval_seconds: Seconds = Field(default=86_400.0, gt=0)
    on_deny: Literal["inform", "pause", "cancel"] = "inform"
    """The agent is told and goes on; the session pauses; or it is stopped."""
    on_expiry: Literal["pause", "deny_and_continue", "fail", "escalate"] = "pause"
    """What never runs: and then the session pauses, goes on, or fails; or others are asked."""
    escalate_to: tuple[str, ...] = ()
    """Who may answer when nobody did; empty: anybody."""
    hooks: tuple[Hook, ...] = ()


Rate = Annotated[Decimal, PAYABLE, Field(ge=0)]
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


class Fallback(Part):
    """Another model of the agent, for when the one before it cannot answer."""

    provider: str
    model: str
    parameters: Parameters = {}
    retry: RetryPolicy | None = None
    """None: as the agent's."""
    base_url: str | None = None
    key_variable: str | None = None


class AgentSpec(Part):
    """Everything that decides how the agent runs."""

    name: str
    provider: str
    model: str
    parameters: dict[str, JsonValue] = {}
    """Passed to the provider as they are: output_config, thinking …"""
    instructions: str = ""
    """The system prompt, as rendered."""
    tools: tuple[ToolSpec, ...] = ()
    limits: Limits = Limits()
    limit_sources: dict[str, str] = {}
    """For each limit that is not a default: where it came from."""
    retry: RetryPolicy = RetryPolicy()
    """Of model calls, and of tools where nothing else is said."""
    tool_retry: RetryPolicy | None = None
    fallback: tuple[Fallback, ...] = ()
    """The models that are asked, in this order, when the agent's own cannot answer."""
    breaker: BreakerPolicy = BreakerPolicy()
    """Of its models."""
    policy: Policy = Policy()
    prices: dict[str, Price] = {}
    """By `provider/model`, or `provider/*`; `*` is what to assume of an unknown price."""
    on_unknown_price: Literal["error", "assume", "ignore"] | None = None
    """None: `error` where money is limited, else `ignore`."""
    workspace: Workspace | None = None
    secrets: tuple[str, ...] = ()
    """Names of environment variables whose values are never recorded (I11)."""
    environment: tuple[str, ...] = ()
    """Names of those that its tools see, though they are secrets or look like credentials."""
    base_url: str | None = None
    """The provider's address, when it is not the vendor's own."""
    key_variable: str | None = None
    """The environment variable that holds the provider's key."""


def answering(agent: AgentSpec, fallback: int) -> AgentSpec:
    """Return *agent* as it asks: 0 its own model, n its n-th fallback."""
    if fallback == 0:
        return agent
    other = agent.fallback[fallback - 1]
    return agent.model_copy(
        update={
            "provider": other.provider,
            "model": other.model,
            "parameters": other.parameters,
            "base_url": other.base_url,
            "key_variable": other.key_variable,
            "retry": other.retry or agent.retry,
        }
    )


def each_model(agent: AgentSpec) -> list[AgentSpec]:
    """Return *agent* as it asks each of its models, its own first."""
    return [answering(agent, fallback) for fallback in range(len(agent.fallback) + 1)]


def tool_retries(agent: AgentSpec, tool: str) -> RetryPolicy:
    """Return how calls of a tool are tried again: as it says itself, else as the agent does."""
    own = next((each.retry for each in agent.tools if each.name == tool), None)
    return own or agent.tool_retry or agent.retry
