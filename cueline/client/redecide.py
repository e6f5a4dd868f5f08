"""Decides a session's steps again, and compares (I10)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from cueline.actors.rule_failure import folded
from cueline.actors.session_reader import Past
from cueline.client.history import History
from cueline.deciders.session import command_of, decide, session_of
from cueline.errors import CorruptEventError, CuelineError
from cueline.events.codec import EMPTIED
from cueline.events.session import SessionEvent
from cueline.events.store import RecordedEvent

Step = list[tuple[RecordedEvent, SessionEvent | None]]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first event for which today's rules decide something else than what is recorded."""

    version: int
    recorded: str
    decided: str
    """The new event, or the error of the rules."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of deciding a session's steps again."""

    version: int
    steps: int
    """The number of steps that were decided again with the recorded events."""
    difference: Difference | None
    damage: CuelineError | None = None
    """The reason why the session cannot be read further."""


def check_of(history: History, *, cut: bool = False) -> Check:
    """Decide the steps of a session again.

    The inherited steps of a fork are left out, because they belong to its parent. If the history
    is *cut*, the last step may be incomplete, and is left out, too.

    Raises:
        CorruptEventError: an event was emptied, so that later states are unknown.
    """
    steps, difference = first_difference(history.stream, history.events, whole=not cut)
    return Check(history.version, steps, difference, history.damage)


def first_difference(stream: str, past: Past, *, whole: bool) -> tuple[int, Difference | None]:
    """Return the number of steps that were decided again, and the first difference."""
    state = session_of(stream)
    checked = 0
    steps = list(steps_of(past))
    for number, step in enumerate(steps, start=1):
        facts = [_kept(recorded, fact) for recorded, fact in step]
        complete = whole or number < len(steps)
        if _is_undecided(facts[-1]):
            complete = False
        if complete and step[0][0].stream == stream:
            try:
                found = _compare(step, list(decide(command_of(facts[0]), state)))
            except Exception as error:  # noqa: BLE001 - whatever the rules raise
                told = f"{type(error).__name__}: {error}"
                found = Difference(step[0][0].version, _told(facts[0]), told)
            if found is not None:
                return checked, found
            checked += 1
        for fact in facts:
            state = folded(state, fact)
    return checked, None


def steps_of(past: Past) -> Iterator[Step]:
    """Split the past into steps: one outside fact with its derived events."""
    step: Step = []
    for recorded, fact in past:
        # The first of an append has place 0 in it; within one, steps are numbered.
        if step and (recorded.seq == 0 or recorded.step != step[-1][0].step):
            yield step
            step = []
        step.append((recorded, fact))
    if step:
        yield step


def _kept(recorded: RecordedEvent, fact: SessionEvent | None) -> SessionEvent:
    if fact is None:
        raise CorruptEventError(recorded.stream, recorded.version, recorded.position, EMPTIED)
    return fact


def _is_undecided(last: SessionEvent) -> bool:
    """Whether a step ends because a rule raised, so that no rule has decided it."""
    return last.type == "SessionWaiting" and last.cause.code == "rule_failed"


def _compare(step: Step, decided: list[SessionEvent]) -> Difference | None:
    last = step[-1][0].version
    for pair, fact in zip_longest(step, decided):
        if pair is None or pair[1] != fact:
            version = last if pair is None else pair[0].version
            return Difference(version, _told(pair[1] if pair else None), _told(fact))
    return None


def _told(fact: SessionEvent | None) -> str:
    return "nothing" if fact is None else f"{fact.type} {fact.model_dump_json(exclude={'type'})}"
