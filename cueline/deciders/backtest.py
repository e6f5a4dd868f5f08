"""What a policy would have said of the past.

A fold over the facts of any number of sessions, in the order of the log. It
judges each call as it was recorded, with the tools as they were recorded; what
people allowed for the rest of a session is left out, for under another policy
they might never have been asked.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

from cueline.deciders.policy import NOT_ESTIMATED, ToolGate, gate_of, judge
from cueline.events.agent import AgentSpec, Answer, Policy, ToolSpec, Workspace
from cueline.events.message import ToolCall
from cueline.events.session import (
    UNJUDGED,
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
NEEDED = frozenset({"SessionStarted", "SessionForked", "ModelReplied", "ToolStarted"})
"""The types of facts that are read; any other says nothing of a policy."""


@dataclass(slots=True)
class BacktestFinding:
    """One call of the past, and what the policy would have said of it."""

    session: str
    effect: str
    call: ToolCall
    judged: Judgement
    before: Before
    """What the rules of that time said, as it was recorded."""
    ran: bool = False

    @property
    def stopped_usd(self) -> Decimal:
        """What was spent on it, by the tool's estimate, that would not have been at once."""
        held = self.ran and self.judged.answer in ("ask", "deny") and self.before == "allowed"
        return self.judged.usd or Decimal(0) if held else Decimal(0)


@dataclass(frozen=True, slots=True)
class _Known:
    """A session's tools, and what the policy says of each."""

    tools: dict[str, ToolSpec]
    gates: dict[str, ToolGate]
    workspace: Workspace | None


class Backtest:
    """The fold: what is known of each session, and the calls that were found."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._known: dict[str, _Known] = {}
        self._calls: dict[tuple[str, str], BacktestFinding] = {}

    @property
    def findings(self) -> Iterable[BacktestFinding]:
        """The calls, in the order in which they were asked for."""
        return self._calls.values()

    def add(self, session: str, fact: SessionEvent, *, counts: bool = True) -> None:
        """Take in a fact; the calls of a reply that does not *count* are left out."""
        match fact:
            case SessionStarted() | SessionForked():
                self._known[session] = self._of(fact.agent)
            case ModelReplied() if counts:
                self._judge(session, fact)
            case ToolStarted(effect=effect):
                if (found := self._calls.get((session, effect))) is not None:
                    found.ran = True
            case _:
                pass

    def _of(self, agent: AgentSpec) -> _Known:
        tools = {tool.name: tool for tool in agent.tools}
        gates = {name: gate_of(self._policy, tool) for name, tool in tools.items()}
        return _Known(tools, gates, agent.workspace)

    def _judge(self, session: str, fact: ModelReplied) -> None:
        known = self._known.get(session)
        for effect, call in calls_of(fact).items():
            tool = known.tools.get(call.name) if known else None
            if known is None or tool is None or call.problem or call.malformed is not None:
                continue  # it was not run, whatever a policy says
            judged = judge(
                self._policy,
                tool,
                call.arguments,
                estimate=fact.estimates.get(effect, NOT_ESTIMATED),
                workspace=known.workspace,
                gate=known.gates[tool.name],
            )
            before = _BEFORE[fact.judged.get(effect, UNJUDGED).answer]
            self._calls[session, effect] = BacktestFinding(session, effect, call, judged, before)


@dataclass(frozen=True, slots=True)
class Sum:
    """Calls of one tool that were treated alike, and would be."""

    tool: str
    before: Before
    answer: Answer
    rule: str
    calls: int
    ran: int
    stopped_usd: Decimal


def sum_findings(findings: Iterable[BacktestFinding]) -> Iterator[Sum]:
    """Sum findings up, the strongest answer first."""
    calls: Counter[tuple[Answer, str, str, Before]] = Counter()
    ran: Counter[tuple[Answer, str, str, Before]] = Counter()
    stopped: dict[tuple[Answer, str, str, Before], Decimal] = {}
    for found in findings:
        key = (found.judged.answer, found.judged.rule, found.call.name, found.before)
        calls[key] += 1
        ran[key] += found.ran
        stopped[key] = stopped.get(key, Decimal(0)) + found.stopped_usd
    strongest: tuple[Answer, ...] = ("deny", "ask", "notify", "allow")
    for key in sorted(calls, key=lambda key: (strongest.index(key[0]), key)):
        answer, rule, tool, before = key
        yield Sum(tool, before, answer, rule, calls[key], ran[key], stopped[key])
