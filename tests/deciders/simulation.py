"""How a simulated shell begins with a past, how it goes on to its end, and what must hold then."""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from cueline.deciders.retry import REST_SECONDS
from cueline.deciders.session import DRIVEN, SESSION, SessionState, Status, wake_at
from cueline.deciders.session.children import awaited
from cueline.events.inbox import DecisionGiven, InboxMessage, RaiseAsked, ResumeAsked
from cueline.events.session import MessageReceived, MessageRefused, SessionEvent, SessionForked
from cueline.testing.given import STREAM
from tests.deciders.session_promises import check_attempts, check_pairs
from tests.deciders.simulated_shell import SimulatedShell
from tests.session_example import NOW

_PEOPLE = ("ada", "bob", "carl")
"""Who answers in turn, so that everybody does whom a rule asks for."""
_ENOUGH = 500
"""More steps than any example needs to come to an end."""


def load_prefix(
    facts: Sequence[SessionEvent], stream: str = STREAM, now: datetime = NOW
) -> SimulatedShell:
    """Return a shell that begins with *facts*, and has lost whatever was in hand."""
    shell = SimulatedShell(stream)
    shell.now = now
    shell.state = SESSION.replay(facts, shell.state)
    shell.mail = shell.state.inbox_seen
    for fact in facts:
        shell.prompt.add(fact)
    return shell


def finish(shell: SimulatedShell) -> None:
    """Let everything go well, until the session has ended or waits for a message."""
    if shell.state.limited:
        shell.ledger.neighbour(shell.state, takes=False)
        shell.hear_of_room()
    for _ in range(_ENOUGH):
        if shell.state.finished or shell.state.status is Status.IDLE:
            return
        _go_on(shell)
    raise AssertionError(f"no end in sight: {shell.state!r}")


def _go_on(shell: SimulatedShell) -> None:
    owed = shell.owed()
    asking = [c.approval for c in shell.state.open_calls if c.approval and c.asking]
    if shell.model is not None:
        shell.reply()
    elif shell.tools:
        shell.finish_tool(0, "killed" if shell.state.stop else None)
    elif owed:
        shell.do(owed[0])
    elif shell.children:
        shell.end_child(0)
    elif shell.state.hold or _is_exhausted(shell.state):
        shell.send(_more(shell))
    elif asking and shell.gate.knows(asking[0].id):
        approval, happened = asking[0], asking[0].question == "did_it_happen"
        shell.send(
            DecisionGiven(
                approval=approval.id,
                digest=approval.digest,
                verdict="grant",
                by=_PEOPLE[shell.mail % len(_PEOPLE)],
                resolution="happened" if happened else None,
                result="this" if asking[0].question == "what_to_answer" else "",
            )
        )
    else:
        moment = wake_at(shell.state)
        assert moment is not None, f"stalled: {shell.state!r}"
        shell.pass_time(max((moment - shell.now).total_seconds(), 0.0))


def _is_exhausted(state: SessionState) -> bool:
    wait = state.waiting
    return wait is not None and wait.kind == "budget" and wait.is_pause


def _more(shell: SimulatedShell) -> InboxMessage:
    """Return what ends the hold: more of what is used up, or a resume."""
    hold, limits = shell.state.hold, shell.state.limit_state.limits
    if hold is None and limits.max_cost is not None:
        more = RaiseAsked(max_cost=limits.max_cost + 1)
        shell.ledger.raise_limits(shell.state, limits.max_cost + 1, f"raise of {shell.mail}")
        return more
    if hold is not None and hold.cause.limit == "max_active_seconds":
        return RaiseAsked(max_active_seconds=limits.max_active_seconds + 3600)
    if hold is not None and hold.cause.limit == "max_wall_seconds":
        assert limits.max_wall_seconds is not None, "what is used up was limited"
        return RaiseAsked(max_wall_seconds=limits.max_wall_seconds + 86_400)
    return ResumeAsked()


def check_stall(shell: SimulatedShell) -> None:
    """Check that a session that does not rest has something to do, or a timer."""
    state = shell.state
    busy = state.status in DRIVEN and not state.poisoned
    if not busy or shell.model is not None or shell.tools or shell.owed():
        return
    moment = wake_at(state)
    assert moment is not None, f"stalled: {state!r}"
    if state.stop is not None and awaited(state):
        return  # it ends after its children, which are told to
    assert moment - shell.now < timedelta(seconds=REST_SECONDS), f"I12: no rest: {state!r}"


def check_end(shell: SimulatedShell) -> None:
    """Check what is promised of a whole log."""
    facts = [fact for step in shell.log for fact in step]
    read = Counter(
        fact.inbox_version for fact in facts if isinstance(fact, MessageReceived | MessageRefused)
    )
    assert read == dict.fromkeys(range(2, shell.mail + 1), 1), "I7: not one fact a message"
    if shell.state.setup is not None and not isinstance(facts[0], SessionForked):
        check_attempts(facts, shell.state.agent)
    check_pairs([json.loads(message) for message in shell.prompt.messages])
