"""What is wrong with a session that was killed and resumed, and what to do about it."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeAlias

from cueline.actors.rule_failure import folded
from cueline.console.text import count
from cueline.deciders.budget import BUDGET
from cueline.deciders.session import decide, session_of
from cueline.events.agent import Declared
from cueline.events.budget import BudgetEvent
from cueline.events.inbox import MessageSent
from cueline.events.session import (
    MessageReceived,
    SessionEvent,
    ToolFailed,
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


Outcome: TypeAlias = ToolReturned | ToolFailed | ToolSkipped | ToolReconciled


class Problem(NamedTuple):
    """Something that a kill did to a session."""

    what: str
    advice: str


@dataclass(frozen=True, slots=True)
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
    def tools(self) -> dict[str, str]:
        """The tool of each started call, by effect."""
        return {fact.effect: fact.tool for fact in self.facts if isinstance(fact, ToolStarted)}

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """The last outcome of each call, by effect."""
        return {fact.effect: fact for fact in self.facts if isinstance(fact, Outcome)}

    @property
    def reconciled(self) -> list[ToolReconciled]:
        """The resolutions of calls in doubt."""
        return [fact for fact in self.facts if isinstance(fact, ToolReconciled)]


def problems(
    now: Course, whole: Course, declared: Mapping[str, Declared], allowed: Collection[str]
) -> Iterator[Problem]:
    """Hold the killed session *now* against the *whole* one, which was not killed.

    The tools in *allowed* may be in doubt.
    """
    for fact in now.reconciled:
        if fact.by != "tool" and (tool := now.tools[fact.effect]) not in allowed:
            lost = f"the outcome of {tool} (call {fact.effect}) was lost"
            what = f"{lost}: it may have happened, and is not repeated"
            ask = f"if a person can say it, pass may_be_in_doubt=[{tool!r}]"
            yield Problem(what, f"{_ADVICE[declared[tool]]}; {ask}")
    yield from _repeated(now, declared)
    yield from _lost(now, whole)
    is_known = all(fact.outcome != "unknown" for fact in now.reconciled)
    if now.effects != whole.effects and is_known:
        yield _other_effects(now, whole, declared)
    yield from _broken_invariants(now)


def _repeated(now: Course, declared: Mapping[str, Declared]) -> Iterator[Problem]:
    """I5."""
    allowed = Counter(fact.effect for fact in now.reconciled if fact.outcome in _AGAIN)
    for effect, tool in now.tools.items():
        harmless = declared[tool] in {"read_only", "idempotent"}
        if not harmless and now.starts[effect] > 1 + allowed[effect]:
            yield Problem(f"I5: {tool} (call {effect}) ran twice without a person's word", _A_BUG)


def _lost(now: Course, whole: Course) -> Iterator[Problem]:
    for effect, before in whole.outcomes.items():
        found, tool = now.outcomes.get(effect), whole.tools.get(effect, "a tool")
        if found is None:
            yield Problem(f"the call {effect} of {tool} was lost", _A_BUG)
        elif isinstance(before, ToolReturned) and isinstance(found, ToolFailed):
            lost = f"the outcome of {tool} (call {effect}) was lost"
            what = f"{lost}: it returned, and run again it failed: {found.message}"
            yield Problem(what, "for a key that it has seen, return what the first call returned")
    if now.end != whole.end:
        what = f"the session was lost: it ended with\n  {now.end}\n  and not with\n  {whole.end}"
        yield Problem(what, "look at what the calls returned, and whether the session waits")


def _other_effects(now: Course, whole: Course, declared: Mapping[str, Declared]) -> Problem:
    again = {now.tools[effect] for effect, times in now.starts.items() if times > 1}
    blamed = sorted(again or {now.tools[fact.effect] for fact in now.reconciled})
    who = " and ".join(blamed) or "a tool"
    how = f"{who} ran twice" if again else f"an effect of {who} was lost"
    what = f"{how}:\n  without a kill  {whole.effects!r}\n  now             {now.effects!r}"
    advice = [_ADVICE[declared[tool]] for tool in blamed]
    return Problem(what, "; ".join(advice) or "let `reset` remove the effects of earlier runs")


def _broken_invariants(now: Course) -> Iterator[Problem]:
    for call in now.early:
        yield Problem(f"I2: {call} began before the log had its start", _A_BUG)
    for session, node in BUDGET.replay(now.budget).nodes.items():
        over = any(node.settled.of(limit) > most for limit, most in node.limits.items())
        if over or node.reserved.tokens or node.reserved.usd:
            yield Problem(f"I8: {session} {node.settled}, reserved {node.reserved}", _A_BUG)
    state, said = session_of(now.stream), MessageSent(text="Go on.")
    for fact in now.facts:
        state = folded(state, fact)
        # I13: an error here is one of the rules.
        version, moment = state.inbox_read + 1, datetime.now(UTC)
        decide(MessageReceived(inbox_version=version, recorded_at=moment, message=said), state)


def report(found: Mapping[Problem, Sequence[str]], kills: int) -> str:
    """Return the text of all problems, each with its kills, and what to do."""
    parts = [f"{count(len(found), 'problem')} in {count(kills, 'kill')}"]
    for problem, at in found.items():
        more = f"\n  and at {len(at) - _SHOWN} more" if len(at) > _SHOWN else ""
        shown = "".join(f"\n  killed {kill}" for kill in at[:_SHOWN])
        advice = problem.advice.replace("; ", "\n  -> ")
        parts.append(f"{problem.what}{shown}{more}\n  -> {advice}")
    return "\n\n".join(parts)
