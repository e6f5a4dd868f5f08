"""A recorded agent: a resumed session uses it, never the file of the agent."""

from decimal import Decimal
from functools import partial
from operator import eq, is_, not_
from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, JsonValue

from cueline.events.agent_parts import (
    NO_DEMANDS,
    BreakerPolicy,
    Demands,
    Plan,
    RetryPolicy,
    ToolRecording,
)
from cueline.events.fact import (
    LARGEST,
    LASTING,
    NUMBER,
    PAYABLE,
    TIME,
    Number,
    Parameters,
    Part,
    Seconds,
    Whole,
)

Declared = Literal["read_only", "idempotent", "reconcile", "nothing"]
"""Whether a call may be repeated; `nothing` is the default for tools that write."""
OnTimeout = Literal["stop", "leave"]
"""Whether a child that does not end in time is stopped, or continues on its own."""
AGENT_SCHEME: Final = "agent:"
"""The scheme of the target of tools that start a child; the agent's name follows."""


class ToolSpec(Part):
    """One tool: its description for the model, and its target for a runner."""

    name: str
    description: str
    parameters: dict[str, JsonValue]
    """JSON Schema of the arguments, as sent to the model."""
    declared: Declared = "nothing"
    sensitive: bool = False
    """Whether each call needs an approval."""
    target: str
    """`module:name`, or `path.py:name` for a script."""
    version: str = "1"
    timeout_seconds: float = 300.0
    in_loop: bool = False
    """Whether it runs in the runner's event loop (an async function), not in a worker process."""
    needs_workspace: bool = False
    critical: bool = True
    """Whether the work needs the tool; if not, a failure of the tool makes the result partial."""
    retry: RetryPolicy | None = None
    """The tool's own policy; else the agent's `tool_retry`, else its `retry`."""
    tags: tuple[str, ...] = ()
    """Tags for approval rules; `phase:NAME` ends the phase NAME."""
    cost_usd: Decimal | None = None
    """The estimated cost of a call, beside the model's own cost."""
    estimates: bool = False
    """Whether the tool estimates each call; then `cost_usd` is not used."""
    paths: tuple[str, ...] = ()
    """The arguments that name files."""
    writes: tuple[str, str] | None = None
    """For each file argument that is overwritten: the argument with the new content."""
    breaker: BreakerPolicy | None = None
    """Without a breaker, its failures affect no other calls."""
    demands: Demands = Field(default=NO_DEMANDS, exclude_if=not_)
    """The demands of its calls on their runner, beside the agent's demands."""
    digest: str
    """sha256 of name, schema, declaration, target and version."""
    own_name: str = Field(default="", exclude_if=not_)
    """The tool's own name, if it is the tool of a step with another name."""
    returns_text: bool = Field(default=False, exclude_if=not_)
    """Whether the tool declares that it returns text, which is then never read as JSON."""
    on_timeout: OnTimeout = Field(default="stop", exclude_if=partial(eq, "stop"))
    """For a tool that starts a child."""
    recording: ToolRecording | None = Field(default=None, exclude_if=partial(is_, None))
    """The results that answer its calls in a rerun; None: the tool runs."""

    @property
    def runs(self) -> bool:
        """Whether some of its calls run on a runner, so that the tool is needed there."""
        if self.target.startswith(AGENT_SCHEME):
            return False
        return self.recording is None or self.recording.run_others

    def for_call(self, effect: str, arguments: dict[str, JsonValue]) -> Self:
        """Return the tool with the recorded result of one call only."""
        if self.recording is None:
            return self
        found = self.recording.result_of(effect, arguments)
        results = () if found is None else (found,)
        recording = self.recording.model_copy(update={"results": results})
        return self.model_copy(update={"recording": recording})


class Limits(Part):
    """The limits of a session."""

    max_turns: Whole = Field(default=50, ge=1)
    """Model calls since the last user message."""
    max_tool_calls_per_turn: Whole = Field(default=100, ge=1)
    """Further calls of one turn do not run; the model gets an error for each."""
    max_output_tokens: Whole = Field(default=8192, ge=1)
    """For one model call."""
    max_tokens: Annotated[int | None, LARGEST, NUMBER] = Field(default=None, ge=1)
    """For the session and all its descendants; input and output."""
    max_cost: Annotated[Decimal | None, PAYABLE] = Field(default=None, gt=0)
    """US dollars, for the session and all its descendants."""
    max_active_seconds: Seconds = Field(default=14_400.0, gt=0)
    """The sum of the durations of model and tool calls, also of concurrent ones."""
    max_wall_seconds: Annotated[float | None, LASTING, TIME] = Field(default=None, gt=0)
    """Since the start, including all waits."""
    max_depth: Whole = Field(default=2, ge=0)
    """The greatest depth of a child session."""
    max_descendants: Whole = Field(default=100, ge=0)
    """For a session without a parent: the most descendants that it ever has."""


Profile = Literal["off", "sensitive", "cost", "all_writes", "phase_gates"]
Answer = Literal["allow", "notify", "ask", "deny"]
"""The answers of a rule, weakest first; `notify` allows the call and notifies people."""


def _listed(value: object) -> object:
    """Accept one profile for a list of one: `approval = "off"`."""
    return (value,) if isinstance(value, str) else value


class Rule(Part):
    """One approval rule: its answer to calls that match all its conditions."""

    name: str
    answer: Answer
    tools: tuple[str, ...] = ()
    """Names of tools; `*` matches any text."""
    sensitive: bool | None = None
    declared: tuple[Declared, ...] = ()
    tags: tuple[str, ...] = ()
    """The tool has one of these tags."""
    phases: tuple[str, ...] = ()
    """The call ends one of these phases; `*` matches any text."""
    paths: tuple[str, ...] = ()
    """Globs: one of the call's paths matches. `**` crosses folders."""
    commands: tuple[str, ...] = ()
    """Globs: one of the call's texts, or a command in it, matches."""
    items_over: Annotated[int | None, LARGEST, NUMBER] = Field(default=None, ge=0)
    """One of the call's lists is longer."""
    bytes_over: Annotated[int | None, LARGEST, NUMBER] = Field(default=None, ge=0)
    """The arguments are larger than this, in bytes of JSON."""
    usd_from: Decimal | None = Field(default=None, ge=0)
    """The estimated cost is this or more."""
    may_grant: tuple[str, ...] = ()
    """Who may grant it; empty: anybody. `*` matches any text."""
    votes: Whole = Field(default=1, ge=1, le=9)
    """The number of people who have to grant it."""
    exclude_requester: bool = False
    """Whether the person who started the session may not grant it."""


class Hook(Part):
    """A command or URL that notifies people about a call."""

    on: Literal["asked", "reminder", "notify"]
    """`asked`: a question opens or is escalated; `notify`: the call runs without a question."""
    command: tuple[str, ...] = ()
    """The command; it gets the question as JSON on standard input."""
    url: str | None = None
    """The URL that gets the question as JSON; `$NAME` names a variable with the URL."""
    after_seconds: Seconds = Field(default=0.0, ge=0)
    """For a reminder: the time after the question."""


def url_variable(hook: Hook) -> str | None:
    """Return the variable that holds the hook's URL, if it is not written out."""
    return hook.url[1:] if hook.url is not None and hook.url.startswith("$") else None


class Policy(Part):
    """Which calls need a person's approval."""

    approval: Annotated[tuple[Profile, ...], BeforeValidator(_listed)] = ("sensitive",)
    """Ready-made rules; `off` is none."""
    rules: tuple[Rule, ...] = ()
    """Further rules; deny wins over ask, and ask over allow."""
    notify_from_usd: Decimal = Field(default=Decimal("0.10"), ge=0)
    """For the profile `cost`: a call of this cost runs, and people are notified."""
    ask_from_usd: Decimal = Field(default=Decimal("0.50"), ge=0)
    """For the profile `cost`: a call of this cost needs an approval."""
    deny_from_usd: Decimal | None = Field(default=None, ge=0)
    """For the profile `cost`: a call of this cost is denied."""
    in_doubt: Literal["ask", "tell"] = "ask"
    """For a call in doubt: ask a person, or report the unknown outcome to the model."""
    auto_approve: bool = False
    """Grant all requests at once; this is recorded."""
    auto_approve_after: Annotated[float | None, LASTING, TIME] = Field(default=None, gt=0)
    """Grant requests after so many seconds without a denial."""
    approval_seconds: Seconds = Field(default=86_400.0, gt=0)
    on_deny: Literal["inform", "pause", "cancel"] = "inform"
    """After a denial: the agent continues, the session pauses, or it is stopped."""
    on_expiry: Literal["pause", "deny_and_continue", "fail", "escalate"] = "pause"
    """After an expiry the call never runs: pause, continue, fail, or escalate to others."""
    escalate_to: tuple[str, ...] = ()
    """Who may answer after an escalation; empty: anybody."""
    hooks: tuple[Hook, ...] = ()


ContextWindow = Annotated[int | None, LARGEST, NUMBER]
COMPACT_AT: Final = 0.8
Rate = Annotated[Decimal, PAYABLE, Field(ge=0)]
"""US dollars for a million tokens."""


class Price(Part):
    """The price of a model, from your own price list."""

    input: Rate
    output: Rate
    cache_read: Rate | None = None
    """The price of cached tokens; None: as `input`."""
    cache_write: Rate | None = None


class Workspace(Part):
    """The folder with the agent's files."""

    machine: str
    path: str


class ModelChoice(Part):
    """A model, with its provider, address, key and parameters."""

    provider: str
    model: str
    parameters: Parameters = {}
    base_url: str | None = None
    key_variable: str | None = None
    headers: dict[str, str] = Field(default={}, exclude_if=not_)
    """Sent with each request."""
    context_window: ContextWindow = Field(default=None, gt=0, exclude_if=partial(is_, None))
    """Tokens of a prompt and its reply; None: unknown, so prompts are never compacted early."""


class Fallback(ModelChoice):
    """Another model, called if the previous one cannot answer."""

    retry: RetryPolicy | None = None
    """The retry policy; None: the agent's."""


class AgentSpec(Part):
    """A recorded agent: every value that its sessions depend on."""

    name: str
    provider: str
    model: str
    parameters: dict[str, JsonValue] = {}
    """Passed to the provider unchanged: output_config, thinking …"""
    instructions: str = ""
    """The rendered system prompt."""
    tools: tuple[ToolSpec, ...] = ()
    limits: Limits = Limits()
    limit_sources: dict[str, str] = {}
    """For each limit that is not a default: its source."""
    retry: RetryPolicy = RetryPolicy()
    """For model calls, and for tools without a policy of their own."""
    tool_retry: RetryPolicy | None = None
    fallback: tuple[Fallback, ...] = ()
    """The models to call, in this order, when the agent's own cannot answer."""
    breaker: BreakerPolicy = BreakerPolicy()
    """For its models."""
    policy: Policy = Policy()
    prices: dict[str, Price] = {}
    """Prices by `provider/model` or `provider/*`; `*` is the assumed price of unknown models."""
    on_unknown_price: Literal["error", "assume", "ignore"] | None = None
    """What happens without a price; None: `error` if cost is limited, else `ignore`."""
    workspace: Workspace | None = None
    secrets: tuple[str, ...] = ()
    """Environment variables whose values are never recorded (I11)."""
    environment: tuple[str, ...] = ()
    """Environment variables that tools see although they are secrets or look like credentials."""
    base_url: str | None = None
    """The provider's address, if it is not the vendor's own."""
    key_variable: str | None = None
    """The environment variable with the provider's key."""
    headers: dict[str, str] = Field(default={}, exclude_if=not_)
    """Sent with each request; `$NAME` in a value stands for an environment variable."""
    key_owner: str = Field(default="", exclude_if=not_)
    """The user whose stored keys its models use; empty: only those stored for all users."""
    context_window: ContextWindow = Field(default=None, gt=0, exclude_if=partial(is_, None))
    """As in `ModelChoice`."""
    compact_at: Number = Field(default=COMPACT_AT, ge=0, le=1, exclude_if=partial(eq, COMPACT_AT))
    """The used share of the context window from which old messages are summarised; 0: never."""
    demands: Demands = Field(default=NO_DEMANDS, exclude_if=not_)
    """The demands of its calls on their runner; a demand of the tool comes first."""
    output: dict[str, JsonValue] | None = Field(default=None, exclude_if=partial(is_, None))
    """The JSON schema of its last reply; None: the reply is text."""
    description: str = Field(default="", exclude_if=not_)
    """The purpose of the agent, for models that may delegate to it."""
    parameters_schema: dict[str, JsonValue] | None = Field(
        default=None, exclude_if=partial(is_, None)
    )
    """The JSON schema of the parameters of its sessions; None: they take none."""
    max_running: Whole | None = Field(default=None, ge=1, exclude_if=partial(is_, None))
    """For a blueprint: the most of its runs that work at a time; None: any number."""
    plan: Plan | None = Field(default=None, exclude_if=partial(is_, None))
    """The plan that its sessions follow instead of a model."""
    agents: "dict[str, AgentSpec]" = Field(default={}, exclude_if=not_)
    """The agents of all its descendants, by name; their own `agents` are empty."""


def answering(agent: AgentSpec, fallback: int) -> AgentSpec:
    """Return *agent* with the model of fallback n; 0 is its own model."""
    if fallback == 0:
        return agent
    other = agent.fallback[fallback - 1]
    return with_model(agent, other).model_copy(update={"retry": other.retry or agent.retry})


def with_model(agent: AgentSpec, chosen: ModelChoice) -> AgentSpec:
    """Return *agent* with another model of its own; its fallbacks stay."""
    return agent.model_copy(update={key: getattr(chosen, key) for key in ModelChoice.model_fields})


def own_model(agent: AgentSpec) -> ModelChoice:
    """Return the agent's own model."""
    return ModelChoice(**{key: getattr(agent, key) for key in ModelChoice.model_fields})


def each_model(agent: AgentSpec) -> list[AgentSpec]:
    """Return *agent* once for each of its models, its own first; none if it follows a plan."""
    if agent.plan is not None:
        return []
    return [answering(agent, fallback) for fallback in range(len(agent.fallback) + 1)]


def tool_retries(agent: AgentSpec, tool: str) -> RetryPolicy:
    """Return the retry policy of a tool: its own, else the agent's."""
    own = next((each.retry for each in agent.tools if each.name == tool), None)
    return own or agent.tool_retry or agent.retry
