"""Whatever comes in whatever order, and wherever the host dies: the promises hold."""

from itertools import chain, cycle, repeat

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cueline.deciders.prompt import FORKED_AWAY
from cueline.deciders.session import SESSION, Status, derived_events, due, session_of, wake_at
from cueline.events.codes import SAID
from cueline.events.inbox import (
    MessageSent,
    StopAsked,
)
from cueline.testing.given import STREAM
from tests.deciders.session_promises import check_attempts
from tests.deciders.session_story import PLANNED, STARTS, simulate, stories
from tests.deciders.simulated_shell import SimulatedShell
from tests.deciders.simulation import check_end, check_stall, finish, load_prefix
from tests.drawn import drawn
from tests.session_example import forked

FAST = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=drawn(150))


# I5, I6, I7, I9, I10, I14; 000-068, 002-037, 003-063, C6, D31: after every step.
# 004-020, 004-075: attempts are bounded, whatever fails (`check_attempts`).
# 003-069: nothing is tried again before it was asked for (`Patience`).
@FAST
@given(STARTS, stories(60))
def test_a_session_keeps_its_promises_and_comes_to_an_end(start, script):
    shell = simulate(start, script)
    shell.crash()
    finish(shell)

    check_end(shell)


# I5, I6, I7, I9, I10, I14, 003-051
@FAST
@given(PLANNED, stories(60))
def test_a_plan_keeps_its_promises_and_comes_to_an_end(start, script):
    shell = simulate(start, script)
    shell.crash()
    finish(shell)

    assert shell.state.finished
    check_end(shell)


# I13
@settings(FAST, max_examples=drawn(25))
@given(PLANNED, stories(30))
def test_a_plan_reaches_an_end_from_every_prefix(start, script):
    whole = simulate(start, script)
    facts = [fact for step in whole.log for fact in step]

    for cut in range(1, len(facts) + 1):
        shell = load_prefix(facts[:cut], now=whole.now)
        shell.load()
        check_stall(shell)
        finish(shell)
        assert shell.state.finished


# I13
@settings(FAST, max_examples=drawn(25))
@given(STARTS, stories(30))
def test_a_session_reaches_an_end_from_every_prefix(start, script):
    whole = simulate(start, script)
    facts = [fact for step in whole.log for fact in step]

    for cut in range(1, len(facts) + 1):
        shell = load_prefix(facts[:cut], now=whole.now)
        shell.load()
        check_stall(shell)
        finish(shell)


# I13: `evolve` ignores what was emptied, and cannot fail on what is left.
@settings(FAST, max_examples=drawn(25))
@given(STARTS, stories(30))
def test_the_fold_skips_redacted_events(start, script):
    facts = [fact for step in simulate(start, script).log for fact in step]

    for emptied in range(len(facts)):
        SESSION.replay(facts[:emptied] + facts[emptied + 1 :], session_of(STREAM))
        SESSION.replay(facts[emptied:], session_of(STREAM))


# I13: a cut need not be noticed before the next message.
@settings(FAST, max_examples=drawn(25))
@given(STARTS, stories(30), st.sampled_from(["note", "steer", "stop"]))
def test_every_inner_prefix_accepts_the_next_message(start, script, said):
    facts = [fact for step in simulate(start, script).log for fact in step]
    message = StopAsked() if said == "stop" else MessageSent(lane=said, text="Go on.")

    for cut in range(1, len(facts) + 1):
        shell = load_prefix(facts[:cut])
        shell.send(message)
        shell.load()
        finish(shell)


@settings(FAST, max_examples=drawn(25))
@given(STARTS, stories(30), st.sampled_from(["Try again.", None]))
def test_a_session_can_be_forked_at_every_version(start, script, goal):
    facts = [fact for step in simulate(start, script).log for fact in step]

    for cut in range(1, len(facts) + 1):
        shell = load_prefix(facts[:cut], "session-default/fork")
        open_before = len(shell.state.open_calls)
        shell.mail = 1
        copy = "The files are a copy."
        shell.take(forked(start.agent, goal, version=cut, open=start.open, note=copy))
        assert not shell.state.open_calls
        finish(shell)
        check_end(shell)
        told = sum(FORKED_AWAY.encode() in message for message in shell.prompt.messages)
        assert not open_before or told >= min(open_before, 1)


# What is recorded happened, in whatever order a later version would not allow.
@settings(FAST, max_examples=drawn(25))
@given(STARTS, stories(30), st.randoms(use_true_random=False))
def test_any_facts_can_be_folded(start, script, chance):
    facts = [fact for step in simulate(start, script).log for fact in step]
    mixed = [*facts[1:], *facts[1:]]
    chance.shuffle(mixed)

    state = load_prefix([start, *mixed]).state

    assert due(state) is not None
    timed = state.limit_state.limits.max_wall_seconds is not None
    assert wake_at(state) is None or state.open_calls or state.turn.model or timed


# A loop in `following` would hang here, and not only in `take`.
@settings(FAST, max_examples=drawn(25))
@given(STARTS, stories(30))
def test_what_follows_ends_from_any_prefix(start, script):
    facts = [fact for step in simulate(start, script).log for fact in step]

    for cut in range(len(facts) + 1):
        state = load_prefix(facts[:cut]).state
        assert len(derived_events(state)) <= 3 * len(state.turn.calls) + 6
        assert not (state.status is Status.CREATED and derived_events(state))


SAID_KINDS = sorted(SAID)


# 004-020, 004-075: no pattern of failures makes an effect go on for ever.
@FAST
@given(STARTS, st.lists(st.sampled_from(SAID_KINDS), min_size=1), st.lists(st.booleans()))
def test_what_keeps_failing_comes_to_rest(start, kinds, answers):
    shell = SimulatedShell()
    shell.take(start)
    kind, answer = cycle(kinds), chain(answers, repeat(object=False))
    for _ in range(1_000):
        if at_rest(shell):
            break
        fail_something(shell, kind, answer)

    assert at_rest(shell)
    check_attempts([fact for step in shell.log for fact in step], start.agent)


def at_rest(shell):
    """Whether only a person makes it go on: it ended, is held, or out of budget."""
    resting = shell.state.status in (Status.IDLE, Status.WAITING)
    over = shell.state.finished or shell.state.hold is not None
    return over or (resting and wake_at(shell.state) is None and not shell.owed())


def fail_something(shell, kind, answer):
    if shell.model is not None and next(answer):
        shell.reply("look", "shout", "put")
    elif shell.model is not None:
        shell.fail_model(next(kind))
    elif shell.tools:
        shell.finish_tool(0, next(kind))
    elif owed := shell.owed():
        shell.do(owed[0])
    else:
        shell.pass_time((wake_at(shell.state) - shell.now).total_seconds())
