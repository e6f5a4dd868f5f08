"""Judges recorded calls by another policy than the recorded one.

`Backtest` folds the facts of any number of sessions, in log order. It judges each call
with the recorded tool, and ignores standing grants: under another policy, people might
not have given these grants.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

from cueline.deciders.policy import NOT_ESTIMATED, ToolGate, gate_of, judge
from cueline.deciders.startup_file import own_modules
from cueline.events.agent import AgentSpec, Answer, Policy, ToolSpec, Workspace
from cueline.events.message import ToolCall
from cueline.events.session import (
    UNJUDGED,
    CallsAdded,
    Judgement,
    ModelReplied,
    SessionEvent,
    SessionForked,
    SessionStarted,
    ToolStarted,
    calls_of,
)

Before = Literal["allowed", "asked", "denied"]
_BEFORE: Final[Mapping[Answer, Before]] = {
    "allow": "allowed",
    "notify": "allowed",
    "ask": "asked",
    "deny": "denied",
}
NEEDED = frozenset({"SessionStarted", "SessionForked", "CallsAdded", "ModelReplied", "ToolStarted"})
"""The fact types that a backtest reads."""


@dataclass(slots=True)
class BacktestFinding:
    """One recorded call, and its judgement by the tested policy."""

    session: str
    effect: str
    call: ToolCall
    judged: Judgement
    before: Before
    """The recorded judgement."""
    ran: bool = False

    @property
    def stopped_cost(self) -> Decimal:
        """The estimated cost, in US dollars, if the tested policy would have stopped the call."""
        held = self.ran and self.judged.answer in ("ask", "deny") and self.before == "allowed"
        return self.judged.usd or Decimal(0) if held else Decimal(0)


@dataclass(frozen=True, slots=True)
class _SessionPolicy:
    """The tools of a session, and the tested policy's gate for each tool."""

    tools: dict[str, ToolSpec]
    gates: dict[str, ToolGate]
    modules: tuple[str, ...]
    workspace: Workspace | None


class Backtest:
    """Folds the facts of sessions into findings about their calls."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._known: dict[str, _SessionPolicy] = {}
        self._calls: dict[tuple[str, str], BacktestFinding] = {}

    @property
    def findings(self) -> Iterable[BacktestFinding]:
        """The judged calls, in the order of the requests."""
        return self._calls.values()

    def add(self, session: str, fact: SessionEvent, *, counts: bool = True) -> None:
        """Add the fact of *session*; judge the calls that the fact requests only if *counts*."""
        match fact:
            case SessionStarted() | SessionForked():
                self._known[session] = self._of(fact.agent)
            case ModelReplied() | CallsAdded() if counts:
                self._judge(session, fact)
            case ToolStarted(effect=effect):
                if (found := self._calls.get((session, effect))) is not None:
                    found.ran = True
            case _:
                pass

    def _of(self, agent: AgentSpec) -> _SessionPolicy:
        tools = {tool.name: tool for tool in agent.tools}
        gates = {name: gate_of(self._policy, tool) for name, tool in tools.items()}
        return _SessionPolicy(tools, gates, own_modules(agent), agent.workspace)

    def _judge(self, session: str, fact: ModelReplied | CallsAdded) -> None:
        estimates = {} if isinstance(fact, CallsAdded) else fact.estimates
        known = self._known.get(session)
        for effect, call in calls_of(fact).items():
            tool = known.tools.get(call.name) if known else None
            if known is None or tool is None or call.problem or call.malformed is not None:
                continue  # the call did not run, under any policy
            judged = judge(
                self._policy,
                tool,
                call.arguments,
                estimate=estimates.get(effect, NOT_ESTIMATED),
                workspace=known.workspace,
                gate=known.gates[tool.name],
                modules=known.modules,
            )
            before = _BEFORE[fact.judged.get(effect, UNJUDGED).answer]
            self._calls[session, effect] = BacktestFinding(session, effect, call, judged, before)


@dataclass(frozen=True, slots=True)
class Sum:
    """The calls of one tool with the same recorded and the same tested judgement."""

    tool: str
    before: Before
    answer: Answer
    rule: str
    calls: int
    ran: int
    stopped_cost: Decimal


def sum_findings(findings: Iterable[BacktestFinding]) -> Iterator[Sum]:
    """Return the sums of *findings*, strictest tested judgement first."""
    calls: Counter[tuple[Answer, str, str, Before]] = Counter()
    ran: Counter[tuple[Answer, str, str, Before]] = Counter()
    stopped: dict[tuple[Answer, str, str, Before], Decimal] = {}
    for found in findings:
        key = (found.judged.answer, found.judged.rule, found.call.name, found.before)
        calls[key] += 1
        ran[key] += found.ran
        stopped[key] = stopped.get(key, Decimal(0)) + found.stopped_cost
    strongest: tuple[Answer, ...] = ("deny", "ask", "notify", "allow")
    for key in sorted(calls, key=lambda key: (strongest.index(key[0]), key)):
        answer, rule, tool, before = key
        yield Sum(tool, before, answer, rule, calls[key], ran[key], stopped[key])
