"""What is wrong with a session that was killed and resumed, and what to do about it."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from cueline.actors.rule_failure import folded
from cueline.console.text import count
from cueline.deciders.budget import BUDGET
from cueline.deciders.session import decide, session_of
from cueline.events.agent import Declared
from cueline.events.budget import BudgetEvent
from cueline.events.codes import TERMINAL
from cueline.events.inbox import MessageSent
from cueline.events.session import (
    MessageReceived,
    SessionEvent,
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
)

_AGAIN: Final = {"did_not_happen", "run_again"}
_SHOWN: Final = 3
"""The kills that are named for each problem."""
_A_BUG: Final = "this is an error of cueline: report it, with this test"
_BY_KEY: Final = "pass `context.key` to the receiver, which must ignore a key that it has seen"
_ADVICE: Final[Mapping[Declared, str]] = {
    "read_only": "remove `read_only`: it has an effect",
    "idempotent": f"{_BY_KEY}; or remove `idempotent`, so that a person is asked",
    "reconcile": (
        "let its `reconcile` return happened only if the call had its effect, did_not_happen only"
        " if it had none, and otherwise unknown"
    ),
    "nothing": (
        f"{_BY_KEY}, and declare `idempotent=True`;"
        " or declare `reconcile=fn`, if the receiver can be asked"
    ),
}


class Problem(NamedTuple):
    """Something that a kill did to a session."""

    what: str
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What became of one session, by its log and by its tools."""

    stream: str
    facts: Sequence[SessionEvent]
    budget: Sequence[BudgetEvent]
    effects: object
    """What the tools have done outside, as the test sees it."""
    starts: Counter[str]
    """How often the function of each call began, by effect."""
    early: Sequence[str] = ()
    """The calls that began before the log had their start."""

    @property
    def end(self) -> str:
        """The last event, with its result or cause."""
        last = self.facts[-1]
        fields = last.model_dump(mode="json", include={"result", "kind", "message", "cause"})
        return f"{last.type} {fields}"

    @property
    def ended(self) -> bool:
        """Whether the session has ended."""
        state = session_of(self.stream)
        for fact in self.facts:
            state = folded(state, fact)
        return state.status in TERMINAL

    @property
    def tools(self) -> dict[str, str]:
        """The tool of each started call, by effect."""
        return {fact.effect: fact.tool for fact in self.facts if isinstance(fact, ToolStarted)}

    @property
    def outcomes(self) -> dict[str, ToolReturned | ToolFailed | ToolSkipped | ToolReconciled]:
        """The last outcome of each call, by effect."""
        kinds = ToolReturned | ToolFailed | ToolSkipped | ToolReconciled
        return {fact.effect: fact for fact in self.facts if isinstance(fact, kinds)}

    @property
    def doubts(self) -> set[str]:
        """The calls that were in doubt, and not resolved by their tool."""
        asked = {fact.effect for fact in self.facts if isinstance(fact, ToolInDoubt)}
        return asked - {fact.effect for fact in self._reconciled if fact.by == "tool"}

    @property
    def granted_again(self) -> Counter[str]:
        """How often each call was allowed to run again."""
        return Counter(fact.effect for fact in self._reconciled if fact.outcome in _AGAIN)

    @property
    def is_uncertain(self) -> bool:
        """Whether nobody knows if some call had its effect."""
        return any(fact.outcome == "unknown" for fact in self._reconciled)

    @property
    def _reconciled(self) -> list[ToolReconciled]:
        return [fact for fact in self.facts if isinstance(fact, ToolReconciled)]


def problems(
    now: Course, whole: Course, declared: Mapping[str, Declared], allowed: Collection[str]
) -> Iterator[Problem]:
    """Hold the killed session *now* against the *whole* one, which was not killed.

    The tools in *allowed* may be in doubt.
    """
    for effect in sorted(now.doubts):
        if (tool := now.tools[effect]) not in allowed:
            what = f"the outcome of {tool} (call {effect}) was lost: a person has to say it"
            ask = f"if a person can say it, pass may_be_in_doubt=[{tool!r}]"
            yield Problem(what, f"{_ADVICE[declared[tool]]}; {ask}")
    yield from _repeated(now, declared)
    yield from _lost(now, whole)
    if now.effects != whole.effects and not now.is_uncertain:
        yield _other_effects(now, whole, declared)
    yield from _broken_invariants(now)


def _repeated(now: Course, declared: Mapping[str, Declared]) -> Iterator[Problem]:
    """I5."""
    for effect, tool in now.tools.items():
        times, allowed = now.starts[effect], 1 + now.granted_again[effect]
        if declared[tool] not in {"read_only", "idempotent"} and times > allowed:
            yield Problem(f"{tool} (call {effect}) ran {times} times, {allowed} allowed", _A_BUG)


def _lost(now: Course, whole: Course) -> Iterator[Problem]:
    for effect, before in whole.outcomes.items():
        found = now.outcomes.get(effect)
        tool = whole.tools.get(effect, "a tool")
        if found is None:
            yield Problem(f"the call {effect} of {tool} was lost", _A_BUG)
        elif isinstance(before, ToolReturned) and isinstance(found, ToolFailed):
            what = (
                f"the outcome of {tool} (call {effect}) was lost: it returned,"
                f" and run again it failed: {found.message}"
            )
            yield Problem(what, "for a key that it has seen, return what the first call returned")
    if now.end != whole.end:
        what = f"the session was lost: it ended with\n  {now.end}\n  and not with\n  {whole.end}"
        yield Problem(what, "look at what the calls returned, and whether the session waits")


def _other_effects(now: Course, whole: Course, declared: Mapping[str, Declared]) -> Problem:
    again = sorted({now.tools[effect] for effect, times in now.starts.items() if times > 1})
    asked = [f.effect for f in now.facts if isinstance(f, ToolReconciled) and f.by == "tool"]
    blamed = again or sorted({now.tools[effect] for effect in asked})
    who = " and ".join(blamed)
    how = f"{who} ran twice" if again else f"an effect was lost ({who or 'of a tool'})"
    what = f"{how}:\n  without a kill  {whole.effects!r}\n  now             {now.effects!r}"
    advice = [_ADVICE[declared[tool]] for tool in blamed]
    return Problem(what, "; ".join(advice) or "let `reset` remove the effects of earlier runs")


def _broken_invariants(now: Course) -> Iterator[Problem]:
    for call in now.early:
        yield Problem(f"I2: {call} began before the log had its start", _A_BUG)
    for session, node in BUDGET.replay(now.budget).nodes.items():
        over = [f"{limit}" for limit, most in node.limits.items() if node.settled.of(limit) > most]
        if over or node.reserved.tokens or node.reserved.usd:
            what = f"I8: {session} has settled {node.settled}, reserved {node.reserved}"
            yield Problem(what, _A_BUG)
    state = session_of(now.stream)
    for version, fact in enumerate(now.facts, start=1):
        state = folded(state, fact)
        said = MessageReceived(
            inbox_version=state.inbox_read + 1,
            recorded_at=datetime.now().astimezone(),
            message=MessageSent(text="Go on."),
        )
        try:
            decide(said, state)
        except Exception as error:  # noqa: BLE001 - whatever the rules raise
            yield Problem(f"I13: version {version} accepts no message: {error!r}", _A_BUG)


class Findings:
    """The problems of all kills, each with the kills that had it."""

    def __init__(self) -> None:
        self.kills: list[str] = []
        self._found: dict[Problem, list[str]] = defaultdict(list)

    def add(self, kill: str, found: Iterator[Problem]) -> None:
        """Add what was *found* after the *kill*."""
        self.kills.append(kill)
        for problem in found:
            self._found[problem].append(kill)

    def check(self) -> None:
        """Raise if there are problems.

        Raises:
            AssertionError: the message has each problem, its kills, and what to do.
        """
        parts = []
        for problem, kills in self._found.items():
            more = f"\n  and at {len(kills) - _SHOWN} more" if len(kills) > _SHOWN else ""
            shown = "".join(f"\n  killed {kill}" for kill in kills[:_SHOWN])
            advice = problem.advice.replace("; ", "\n  -> ")
            parts.append(f"{problem.what}{shown}{more}\n  -> {advice}")
        told = "\n\n".join(parts)
        head = f"{count(len(parts), 'problem')} in {count(len(self.kills), 'kill')}"
        assert not parts, f"{head}\n\n{told}"
