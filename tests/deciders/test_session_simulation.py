"""Whatever comes in whatever order, and wherever the host dies: the promises hold."""

from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cueline.deciders.prompt import FORKED_AWAY
from cueline.deciders.session import Status, following
from cueline.events.inbox import (
    DecisionGiven,
    MessageSent,
    PauseAsked,
    ResumeAsked,
    StartAsked,
    StopAsked,
)
from cueline.events.session import OutcomeCameLate, SessionForked
from cueline.testing.session_example import NOW, TOOLS, agent, returned, saying, started
from cueline.testing.toy_shell import ToyShell, load_prefix

NAMES = [tool.name for tool in TOOLS]
KINDS = ["rate_limited", "overloaded", "unknown", "cancelled", "lost", "refused"]
FAILURES = ["tool_error", "lost", "not_started", "timeout", "killed", "cancelled"]
LUCK = ["good", "good", "lost", "not_started", "unreachable"]

AGENTS = st.builds(
    agent,
    max_turns=st.sampled_from([1, 3, 50]),
    max_retries=st.integers(0, 3),
    base_seconds=st.sampled_from([0.0, 1.0, 10.0]),
    approval=st.sampled_from(["sensitive", "sensitive", "off"]),
    in_doubt=st.sampled_from(["ask", "tell"]),
    auto_approve=st.booleans(),
)
STARTS = st.builds(started, AGENTS, st.sampled_from(["Tidy up.", None]), open=st.booleans())


def say(shell, lane, n):
    shell.send(MessageSent(lane=lane, text=f"message {n}"))


def decide_one(shell, verdict, n):
    asked = [c.approval for c in shell.state.open_calls if c.approval is not None]
    names = [(a.id, a.digest) for a in asked] or [("none", "")]
    approval, digest = names[n % len(names)]
    stale = "of something else" if n == 3 else digest
    shell.send(DecisionGiven(approval=approval, digest=stale, verdict=verdict, by="ada"))


def work(shell, luck):
    """Do everything that is due, once."""
    for effect in shell.owed():
        if effect in shell.owed():
            shell.do(effect, luck)


def come_late(shell, n):
    outcome = saying("shout", turn=1, attempt=9) if n % 2 else returned("1.0", attempt=9)
    before = shell.state
    step = shell.take(outcome)
    assert isinstance(step[0], OutcomeCameLate)
    assert before == shell.state


def misguided(shell, n):
    """A message that makes no sense is refused, and changes nothing."""
    asked = StartAsked(agent=shell.state.agent, asked_at=NOW)
    before = shell.state.turn
    shell.send(asked)
    assert before == shell.state.turn


def actions() -> st.SearchStrategy[Callable[[ToyShell], None]]:
    small = st.integers(0, 3)

    def one(function, *arguments):
        return st.tuples(st.just(function), *arguments)

    return st.one_of(
        one(work, st.sampled_from(LUCK)),
        one(work, st.sampled_from(LUCK)),
        one(lambda s, names: s.reply(*names), st.lists(st.sampled_from(NAMES), max_size=4)),
        one(lambda s, names: s.reply(*names), st.lists(st.sampled_from(NAMES), max_size=4)),
        one(lambda s, n: s.finish_tool(n), small),
        one(lambda s, n: s.finish_tool(n), small),
        one(lambda s, n, kind: s.finish_tool(n, kind), small, st.sampled_from(FAILURES)),
        one(lambda s, kind: s.fail_model(kind), st.sampled_from(KINDS)),
        one(say, st.sampled_from(["note", "steer", "followup"]), small),
        one(lambda s, why: s.send(PauseAsked(why=why)), st.sampled_from(["asked", "signal"])),
        one(lambda s: s.send(ResumeAsked())),
        one(lambda s: s.send(StopAsked())),
        one(decide_one, st.sampled_from(["grant", "deny"]), small),
        one(lambda s, seconds: s.pass_time(seconds), st.sampled_from([0.5, 5, 60, 300, 700])),
        one(lambda s: s.crash()),
        one(come_late, small),
        one(misguided, small),
    )


def simulate(start, script):
    shell = ToyShell()
    shell.take(start)
    for function, *arguments in script:
        function(shell, *arguments)
        shell.check_stall()
    return shell


STORIES = st.lists(actions(), max_size=40)
FAST = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=300)


# I5, I6, I7, I9, I10, I14; 000-068, 003-063, C6, D31: after every step.
@FAST
@given(STARTS, STORIES)
def test_a_session_keeps_its_promises_and_comes_to_an_end(start, script):
    shell = simulate(start, script)
    shell.crash()
    shell.finish()

    shell.check_end()


# I13
@settings(FAST, max_examples=60)
@given(STARTS, st.lists(actions(), max_size=20))
def test_every_inner_prefix_goes_on_to_an_end(start, script):
    facts = [fact for step in simulate(start, script).log for fact in step]

    for cut in range(1, len(facts) + 1):
        shell = load_prefix(facts[:cut])
        shell.load()
        shell.check_stall()
        shell.finish()


# I13: a cut need not be noticed before the next message.
@settings(FAST, max_examples=60)
@given(STARTS, st.lists(actions(), max_size=20), st.sampled_from(["note", "steer", "stop"]))
def test_every_inner_prefix_accepts_the_next_message(start, script, said):
    facts = [fact for step in simulate(start, script).log for fact in step]
    message = StopAsked() if said == "stop" else MessageSent(lane=said, text="Go on.")

    for cut in range(1, len(facts) + 1):
        shell = load_prefix(facts[:cut])
        shell.send(message)
        shell.load()
        shell.finish()


@settings(FAST, max_examples=60)
@given(STARTS, st.lists(actions(), max_size=20), st.sampled_from(["Try again.", None]))
def test_a_session_can_be_forked_at_every_version(start, script, goal):
    facts = [fact for step in simulate(start, script).log for fact in step]

    for cut in range(1, len(facts) + 1):
        shell = load_prefix(facts[:cut], "session-default/fork")
        open_before = len(shell.state.open_calls)
        shell.mail = 1
        shell.take(fork(start, cut, goal))
        assert not shell.state.open_calls
        shell.finish()
        shell.check_end()
        told = sum(FORKED_AWAY.encode() in message for message in shell.prompt.messages)
        assert not open_before or told >= min(open_before, 1)


def fork(start, version, goal):
    return SessionForked(
        parent="session-default/1",
        version=version,
        hash="00",
        agent=start.agent,
        goal=goal,
        open=start.open,
        attached=False,
        note="The files are a copy.",
        epoch=1,
    )


# A loop in `following` would hang here, and not only in `take`.
@settings(FAST, max_examples=60)
@given(STARTS, st.lists(actions(), max_size=20))
def test_what_follows_ends_from_any_prefix(start, script):
    facts = [fact for step in simulate(start, script).log for fact in step]

    for cut in range(len(facts) + 1):
        state = load_prefix(facts[:cut]).state
        assert len(following(state)) <= 3 * len(state.turn.calls) + 6
        assert not (state.status is Status.CREATED and following(state))
