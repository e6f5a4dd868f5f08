"""A recorded agent: a resumed session uses it, never the file of the agent."""

from decimal import Decimal
from functools import partial
from operator import eq, is_, not_
from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, JsonValue

from cueline.events.agent_parts import (
    DEFAULT_ISOLATION,
    NO_DEMANDS,
    BreakerPolicy,
    Demands,
    Isolation,
    McpServer,
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
from cueline.events.sandbox import SandboxSpec

Declared = Literal["read_only", "idempotent", "reconcile", "nothing"]
"""Whether a call may be repeated; `nothing` is the default for tools that write."""
OnTimeout = Literal["stop", "leave"]
"""Whether a child session is stopped at its deadline, or continues without its parent."""
AGENT_SCHEME: Final = "agent:"
"""The start of the target of a tool that starts a child session; the agent's name follows."""
MCP_SCHEME: Final = "mcp:"
SEARCH_SCHEME: Final = "search:"
FIND_TOOLS: Final = "find_tools"
"""The name of the tool that finds tools which the model is not shown."""
CALL_TOOL: Final = "call_tool"
"""The name of the tool by which the model calls a tool that it has found."""
"""The start of the target of a tool of an MCP server; `SERVER/TOOL` follows."""
COMMAND_SCHEME: Final = "command:"
"""The start of the target of a custom tool that runs a command; its command line follows."""
HTTP_SCHEME: Final = "http:"
"""The start of the target of a custom tool that sends a request; `METHOD URL` follows."""
CUSTOM_SCHEMES: Final = (COMMAND_SCHEME, HTTP_SCHEME)
SCHEMES: Final = (AGENT_SCHEME, MCP_SCHEME, *CUSTOM_SCHEMES)
"""The schemes of targets; a target without one is code that a runner imports."""


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
    """`module:name`, `path.py:name` for a script, or begins with one of `SCHEMES`."""
    version: str = "1"
    timeout_seconds: float = 300.0
    in_loop: bool = False
    """Whether the tool is async and runs in the runner's event loop, not in a worker process."""
    needs_workspace: bool = False
    critical: bool = True
    """Whether the work needs the tool; a failure of any other tool makes the result partial."""
    retry: RetryPolicy | None = None
    """The tool's retry policy; None: the agent's `tool_retry`, else the agent's `retry`."""
    tags: tuple[str, ...] = ()
    """Tags for approval rules; `phase:NAME` ends the phase NAME."""
    cost_usd: Decimal | None = None
    """The estimated cost of a call in US dollars, without the cost of model calls."""
    estimates: bool = False
    """Whether the tool estimates each call; then `cost_usd` is not used."""
    paths: tuple[str, ...] = ()
    """The arguments that name files."""
    writes: tuple[str, str] | None = None
    """For each file argument that is overwritten: the argument with the new content."""
    breaker: BreakerPolicy | None = None
    """The tool's circuit breaker; None: the tool's failures block no other calls."""
    demands: Demands = Field(default=NO_DEMANDS, exclude_if=not_)
    """The demands of the tool's calls on their runner, in addition to the agent's demands."""
    digest: str
    """sha256 of name, schema, declaration, target and version."""
    own_name: str = Field(default="", exclude_if=not_)
    """The tool's original name, if a step of a plan gave it another name; else empty."""
    returns_text: bool = Field(default=False, exclude_if=not_)
    """Whether the tool declares that it returns text, which is then never read as JSON."""
    on_timeout: OnTimeout = Field(default="stop", exclude_if=partial(eq, "stop"))
    """For a tool that starts a child session: what happens at the child's deadline."""
    searched: bool = Field(default=False, exclude_if=not_)
    """Whether the model finds the tool by `find_tools` instead of being shown it."""
    options: dict[str, JsonValue] = Field(default={}, exclude_if=not_)
    """What the agent's file says to the tool, which reads it from its context."""
    changes: Literal["", "held"] = Field(default="", exclude_if=not_)
    """`held`: what a call changes waits for a yes; the call has no other effect."""
    recording: ToolRecording | None = Field(default=None, exclude_if=partial(is_, None))
    """The recorded results that a rerun returns for the tool's calls; None: the tool runs."""

    @property
    def repeatability(self) -> Declared:
        """What a second run of a call means; held changes are written once."""
        return "idempotent" if self.changes == "held" else self.declared

    @property
    def runs(self) -> bool:
        """Whether some calls of the tool run on a runner, which then needs the tool."""
        if self.target.startswith((AGENT_SCHEME, SEARCH_SCHEME)):
            return False
        return self.recording is None or self.recording.run_others

    @property
    def imported(self) -> bool:
        """Whether the target is code that a runner imports."""
        return not self.target.startswith(SCHEMES)

    @property
    def server(self) -> str:
        """The name of the MCP server that has the tool; empty for any other tool."""
        if not self.target.startswith(MCP_SCHEME):
            return ""
        return self.target.removeprefix(MCP_SCHEME).partition("/")[0]

    def for_call(self, effect: str, arguments: dict[str, JsonValue]) -> Self:
        """Return the tool with only the recorded result of the call *effect*."""
        if self.recording is None:
            return self
        found = self.recording.result_of(effect, arguments)
        results = () if found is None else (found,)
        recording = self.recording.model_copy(update={"results": results})
        return self.model_copy(update={"recording": recording})


class Limits(Part):
    """The limits of a session."""

    max_turns: Whole = Field(default=50, ge=1)
    """The most model calls after a user message."""
    max_tool_calls_per_turn: Whole = Field(default=100, ge=1)
    """The most tool calls of one turn; the model gets an error for each further call."""
    max_output_tokens: Whole = Field(default=8192, ge=1)
    """The most output tokens of one model call."""
    max_tokens: Annotated[int | None, LARGEST, NUMBER] = Field(default=None, ge=1)
    """The most input and output tokens of the session and all its descendants."""
    max_cost: Annotated[Decimal | None, PAYABLE] = Field(default=None, gt=0)
    """The highest cost of the session and all its descendants, in US dollars."""
    max_active_seconds: Seconds = Field(default=14_400.0, gt=0)
    """The longest sum of the durations of all model and tool calls, also of concurrent calls."""
    max_wall_seconds: Annotated[float | None, LASTING, TIME] = Field(default=None, gt=0)
    """The longest time since the session's start, including all waits."""
    max_depth: Whole = Field(default=2, ge=0)
    """The greatest depth of a child session."""
    max_descendants: Whole = Field(default=100, ge=0)
    """The most descendants of a session without a parent, including descendants that have ended."""


Profile = Literal["off", "sensitive", "cost", "all_writes", "phase_gates"]
Answer = Literal["allow", "notify", "ask", "deny"]
"""The decisions of a rule, weakest first; `notify` allows the call and notifies people."""


def _listed(value: object) -> object:
    """Return *value* as a tuple, so that `approval = "off"` is a list of one profile."""
    return (value,) if isinstance(value, str) else value


class Rule(Part):
    """An approval rule: its decision on calls that match all its conditions."""

    name: str
    answer: Answer
    tools: tuple[str, ...] = ()
    """Names of tools, one of which the call names; `*` matches any text."""
    sensitive: bool | None = None
    declared: tuple[Declared, ...] = ()
    tags: tuple[str, ...] = ()
    """Tags, one of which the tool has."""
    phases: tuple[str, ...] = ()
    """Phases, one of which the call ends; `*` matches any text."""
    paths: tuple[str, ...] = ()
    """Globs, one of which matches a path of the call. `**` crosses folders."""
    commands: tuple[str, ...] = ()
    """Globs, one of which matches a text of the call, or a command in a text."""
    items_over: Annotated[int | None, LARGEST, NUMBER] = Field(default=None, ge=0)
    """The number of items that a list in the call's arguments exceeds."""
    bytes_over: Annotated[int | None, LARGEST, NUMBER] = Field(default=None, ge=0)
    """The size that the call's arguments exceed, in bytes of JSON."""
    usd_from: Decimal | None = Field(default=None, ge=0)
    """The lowest estimated cost of the call, in US dollars."""
    may_grant: tuple[str, ...] = ()
    """The people who may grant the call; empty: anybody. `*` matches any text."""
    votes: Whole = Field(default=1, ge=1, le=9)
    """The number of people who have to grant the call."""
    exclude_requester: bool = False
    """Whether the person who started the session may not grant the call."""


class Hook(Part):
    """A command or URL that notifies people about a call."""

    on: Literal["asked", "reminder", "notify"]
    """`asked`: a question opens or is escalated; `notify`: the call runs without a question."""
    command: tuple[str, ...] = ()
    """The command; it gets the question as JSON on standard input."""
    url: str | None = None
    """The URL that gets the question as JSON; `$NAME` names a variable with the URL."""
    after_seconds: Seconds = Field(default=0.0, ge=0)
    """The time between the question and the hook's run, for a reminder."""


def url_variable(hook: Hook) -> str | None:
    """Return the name of the environment variable with the hook's URL; None without a variable."""
    return hook.url[1:] if hook.url is not None and hook.url.startswith("$") else None


class Policy(Part):
    """Which calls need a person's approval."""

    approval: Annotated[tuple[Profile, ...], BeforeValidator(_listed)] = ("sensitive",)
    """The names of ready-made sets of rules; `off` has no rules."""
    rules: tuple[Rule, ...] = ()
    """Further rules; deny wins over ask, and ask over allow."""
    notify_from_usd: Decimal = Field(default=Decimal("0.10"), ge=0)
    """For the profile `cost`: a call of this cost runs, and people are notified."""
    ask_from_usd: Decimal = Field(default=Decimal("0.50"), ge=0)
    """For the profile `cost`: a call of this cost needs an approval."""
    deny_from_usd: Decimal | None = Field(default=None, ge=0)
    """For the profile `cost`: a call of this cost is denied."""
    in_doubt: Literal["ask", "tell"] = "ask"
    """Whether a person decides on a call in doubt, or the model gets a result "outcome unknown"."""
    auto_approve: bool = False
    """Grant all requests at once; this is recorded."""
    auto_approve_after: Annotated[float | None, LASTING, TIME] = Field(default=None, gt=0)
    """Grant requests after so many seconds without a denial."""
    approval_seconds: Seconds = Field(default=86_400.0, gt=0)
    on_deny: Literal["inform", "pause", "cancel"] = "inform"
    """The reaction to a denial: the agent continues, or the session is paused or stopped."""
    on_expiry: Literal["pause", "deny_and_continue", "fail", "escalate"] = "pause"
    """The reaction to an expiry: pause, continue, fail, or escalate. The call never runs."""
    escalate_to: tuple[str, ...] = ()
    """The people who may answer after an escalation; empty: anybody."""
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
    """The HTTP headers of each request."""
    context_window: ContextWindow = Field(default=None, gt=0, exclude_if=partial(is_, None))
    """The most tokens of a prompt and its reply; None: unknown, so no prompt is compacted early."""


class Fallback(ModelChoice):
    """Another model, called if the previous one cannot answer."""

    retry: RetryPolicy | None = None
    """The retry policy of the model; None: the agent's `retry`."""


class AgentSpec(Part):
    """A recorded agent: every value that its sessions depend on."""

    name: str
    provider: str
    model: str
    parameters: dict[str, JsonValue] = {}
    """The parameters passed to the provider unchanged: `output_config`, `thinking` …"""
    instructions: str = ""
    """The rendered system prompt."""
    tools: tuple[ToolSpec, ...] = ()
    limits: Limits = Limits()
    limit_sources: dict[str, str] = {}
    """The source of each limit that is not a default."""
    retry: RetryPolicy = RetryPolicy()
    """The retry policy of model calls, and of tools without a retry policy."""
    tool_retry: RetryPolicy | None = None
    fallback: tuple[Fallback, ...] = ()
    """The models to call, in this order, if the agent's own model cannot answer."""
    breaker: BreakerPolicy = BreakerPolicy()
    """The circuit breaker of the agent's models."""
    policy: Policy = Policy()
    prices: dict[str, Price] = {}
    """The prices by `provider/model` or `provider/*`; `*` is the assumed price of other models."""
    on_unknown_price: Literal["error", "assume", "ignore"] | None = None
    """The reaction to a model without a price; None: `error` with a cost limit, else `ignore`."""
    workspace: Workspace | None = None
    secrets: tuple[str, ...] = ()
    """Environment variables whose values are never recorded (I11)."""
    environment: tuple[str, ...] = ()
    """Environment variables that tools get although they are secrets or look like credentials."""
    base_url: str | None = None
    """The provider's address; None: the vendor's address."""
    key_variable: str | None = None
    """The environment variable with the provider's key."""
    headers: dict[str, str] = Field(default={}, exclude_if=not_)
    """The HTTP headers of each request; `$NAME` in a value stands for an environment variable."""
    key_owner: str = Field(default="", exclude_if=not_)
    """The user whose stored keys the models use; empty: only keys that are stored for all users."""
    context_window: ContextWindow = Field(default=None, gt=0, exclude_if=partial(is_, None))
    """The most tokens of a prompt and its reply; see `ModelChoice`."""
    compact_at: Number = Field(default=COMPACT_AT, ge=0, le=1, exclude_if=partial(eq, COMPACT_AT))
    """The used share of the context window from which old messages are summarised; 0: never."""
    demands: Demands = Field(default=NO_DEMANDS, exclude_if=not_)
    """The demands of the agent's calls on their runner; a tool's demand replaces the agent's."""
    isolation: Isolation = Field(
        default=DEFAULT_ISOLATION, exclude_if=partial(eq, DEFAULT_ISOLATION)
    )
    """What the commands of the agent can reach."""
    sandbox: SandboxSpec | None = Field(default=None, exclude_if=partial(is_, None))
    """The sandbox of each session, in which its commands and file tools run; None: no sandbox."""
    output: dict[str, JsonValue] | None = Field(default=None, exclude_if=partial(is_, None))
    """The JSON schema of the agent's last reply; None: the reply is text."""
    description: str = Field(default="", exclude_if=not_)
    """The purpose of the agent, for models that may delegate to it."""
    parameters_schema: dict[str, JsonValue] | None = Field(
        default=None, exclude_if=partial(is_, None)
    )
    """The JSON schema of the parameters of the agent's sessions; None: no parameters."""
    max_running: Whole | None = Field(default=None, ge=1, exclude_if=partial(is_, None))
    """The most runs of the blueprint that work at a time; None: no limit."""
    plan: Plan | None = Field(default=None, exclude_if=partial(is_, None))
    """The plan that the agent's sessions follow instead of a model; None: a model."""
    mcp: dict[str, McpServer] = Field(default={}, exclude_if=not_)
    """The MCP servers of the agent's tools, by name."""
    agents: "dict[str, AgentSpec]" = Field(default={}, exclude_if=not_)
    """The agents of all descendant sessions, by name; the `agents` of each are empty."""


def answering(agent: AgentSpec, fallback: int) -> AgentSpec:
    """Return *agent* with the model of its n-th *fallback*; 0 is the agent's own model."""
    if fallback == 0:
        return agent
    other = agent.fallback[fallback - 1]
    return with_model(agent, other).model_copy(update={"retry": other.retry or agent.retry})


def with_model(agent: AgentSpec, chosen: ModelChoice) -> AgentSpec:
    """Return *agent* with the model *chosen* as its own model; the fallbacks stay."""
    return agent.model_copy(update={key: getattr(chosen, key) for key in ModelChoice.model_fields})


def own_model(agent: AgentSpec) -> ModelChoice:
    """Return the agent's own model."""
    return ModelChoice(**{key: getattr(agent, key) for key in ModelChoice.model_fields})


def each_model(agent: AgentSpec) -> list[AgentSpec]:
    """Return *agent* once for each of its models, its own model first; empty for a plan's agent."""
    if agent.plan is not None:
        return []
    return [answering(agent, fallback) for fallback in range(len(agent.fallback) + 1)]


def tool_retries(agent: AgentSpec, tool: str) -> RetryPolicy:
    """Return the retry policy of *tool*: the tool's `retry`, else the policy of *agent*."""
    own = next((each.retry for each in agent.tools if each.name == tool), None)
    return own or agent.tool_retry or agent.retry
