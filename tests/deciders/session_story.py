"""What may happen to a session, drawn by hypothesis: who it is, and what comes when."""

from decimal import Decimal

from hypothesis import strategies as st

from cueline.deciders.session import Status, wake_at
from cueline.events.agent import Hook, ModelChoice, Rule
from cueline.events.agent_parts import Plan, Step
from cueline.events.codes import TRANSIENT
from cueline.events.inbox import (
    DecisionGiven,
    MessageSent,
    ModelChangeAsked,
    PauseAsked,
    RaiseAsked,
    ResumeAsked,
    StartAsked,
    StopAsked,
)
from cueline.events.session import (
    MessageRefused,
    OutcomeCameLate,
    SessionContinued,
)
from tests.deciders.simulated_shell import SimulatedShell
from tests.deciders.simulation import check_stall
from tests.session_example import HOLDS, NOW, agent, returned, saying, started, tool

REPLIES = [
    (),
    ("look",),
    ("shout",),
    ("delete",),
    ("look", "put", "look"),
    ("shout", "look", "pay"),
    ("wire", "burn"),
    ("pay", "delete", "nonsense"),
    ("burn", "look", "shout"),
    ("tell", "peek", "look"),
    ("help",),
    ("keep", "look", "keep"),
    ("help", "look", "aid"),
    ("aid", "help", "shout"),
]
KINDS = ["rate_limited", "overloaded", "rate_limited", "unknown", "cancelled", "lost", "refused"]
KINDS += ["context_too_long", "auth"]
FAILURES = ["tool_error", "lost", "lost", "lost", "not_started", "timeout", "killed", "cancelled"]
FAILURES += ["rate_limited", "network", "unavailable"]
LUCK = ["good", "good", "good", "lost", "not_started", "unreachable", "kept_back"]
ASKED_FOR = [None, None, 0.0, 1.5, 30.0]
LANES = ["note", "steer", "followup"]

AGENTS = st.builds(
    agent,
    max_turns=st.sampled_from([1, 3, 50]),
    max_tool_calls_per_turn=st.sampled_from([1, 100, 100]),
    max_active_seconds=st.sampled_from([4.5, 14_400.0, 14_400.0]),
    max_wall_seconds=st.sampled_from([None, None, 30.0]),
    max_cost=st.sampled_from([None, None, Decimal("0.35"), Decimal("1.00")]),
    max_retries=st.integers(0, 3),
    base_seconds=st.sampled_from([0.0, 1.0, 10.0]),
    approval=st.sampled_from(["sensitive", "sensitive", "off"]),
    in_doubt=st.sampled_from(["ask", "tell"]),
    auto_approve=st.booleans(),
    on_open=st.sampled_from(["wait", "wait", "fallback", "pause"]),
    fallbacks=st.sampled_from([0, 0, 1, 2]),
    context_window=st.sampled_from([None, 100]),
)
RULES = [
    (),
    (),
    (Rule(name="two", answer="ask", tools=("burn", "put"), votes=2),),
    (Rule(name="never", answer="deny", tools=("pay", "look")),),
    (Rule(name="edited", answer="deny", tools=("delete",), commands=("3*",)),),
    (Rule(name="told", answer="notify", tools=("look", "shout")),),
    (Rule(name="bob", answer="ask", tools=("delete",), may_grant=("bob",)),),
]
HOOKS = (
    Hook(on="asked", command=("tell",)),
    Hook(on="reminder", command=("tell",), after_seconds=60),
    Hook(on="notify", command=("tell",)),
)
POLICIES = st.fixed_dictionaries(
    {
        "rules": st.sampled_from(RULES),
        "on_deny": st.sampled_from(["inform", "inform", "pause", "cancel"]),
        "on_expiry": st.sampled_from(["pause", "deny_and_continue", "fail", "escalate"]),
        "auto_approve_after": st.sampled_from([None, None, 0.5, 30.0]),
        "hooks": st.sampled_from([(), (), HOOKS]),
    }
)


HELPERS = (
    tool("help").model_copy(update={"target": "agent:helper"}),
    tool("aid", sensitive=True, critical=False).model_copy(update={"target": "agent:helper"}),
)


def under(spec, policy):
    under_policy = {"policy": spec.policy.model_copy(update=policy)}
    return spec.model_copy(update={"tools": (*spec.tools, *HELPERS, HOLDS), **under_policy})


AGENTS = st.builds(under, AGENTS, POLICIES)
STARTS = st.builds(started, AGENTS, st.sampled_from(["Tidy up.", None]), open=st.booleans())


STEPS = (*("look", "put", "pay", "shout", "delete", "burn", "wire", "peek", "tell"), "help", "wait")
"""The tools of steps, and a step that waits for a message."""


@st.composite
def plans(draw):
    names = draw(st.lists(st.sampled_from(STEPS), min_size=3, max_size=8, unique=True))
    steps = [
        Step(
            name=name,
            needs=draw(st.sets(st.sampled_from(names[:place]), max_size=2)) if place else (),
            condition=draw(st.sampled_from(["on_success", "on_success", "always"])),
            for_each=draw(st.sampled_from(["", "", "`[1, 2, 3]`"])) * (name != "wait"),
            wait="go" * (name == "wait"),
        )
        for place, name in enumerate(names)
    ]
    return Plan(steps=steps, max_parallel=draw(st.sampled_from([1, 1, 2, 10])))


def following(spec, plan, critical):
    names = {step.name for step in plan.steps}
    tools = [each for each in spec.tools if each.name in names]
    if not critical:  # else most plans end with their first failure
        tools = [each.model_copy(update={"critical": False}) for each in tools]
    fields = {"provider": "workflow", "model": "", "fallback": (), "context_window": None}
    return spec.model_copy(update={"tools": tuple(tools), "plan": plan, **fields})


PLANNED = st.builds(started, st.builds(following, AGENTS, plans(), st.booleans()), st.none())


def work(shell, n):
    """Do one thing that is due."""
    owed = shell.owed()
    shell.do(owed[n % len(owed)], LUCK[n // 8 % len(LUCK)])


def think(shell, n):
    shell.reply(*REPLIES[n % len(REPLIES)])


def fail_to_think(shell, n):
    kind = KINDS[n % len(KINDS)]
    shell.fail_model(kind, asked_for(kind, n))


def finish(shell, n):
    shell.finish_tool(n)


def fail(shell, n):
    kind = FAILURES[n % len(FAILURES)]
    shell.finish_tool(n // 8, kind, asked_for(kind, n))


def ask_by_tool(shell, n):
    shell.ask_by_tool(n)


def defer(shell, n):
    shell.defer_tool(n)


def end_child(shell, n):
    shell.end_child(n, ["completed", "failed", "stopped"][n // 8 % 3])


def asked_for(kind, n):
    """Return when whoever failed wants to be asked again, if it can say so at all."""
    return ASKED_FOR[n // 16 % len(ASKED_FOR)] if kind in TRANSIENT else None


def say(shell, n):
    name = "go" if shell.state.progress and n % 2 else ""
    shell.send(MessageSent(lane=LANES[n % 3], text=f"message {n}", name=name))


def answer(shell, n):
    """Decide on a question, at times on one that is not asked (any more)."""
    asked = [c.approval for c in shell.state.open_calls if c.approval is not None]
    names = [(a.id, a.digest, a.question) for a in asked] or [("none", "", "may_it_run")]
    approval, digest, question = names[n // 8 % len(names)]
    stale = "of something else" if n % 8 == 7 else digest
    given = DecisionGiven(
        approval=approval,
        digest=stale,
        verdict="grant" if n % 2 else "deny",
        by=["ada", "bob", "carl"][n % 3],
        note="careful" if n % 5 == 0 else "",
        edit={"text": str(n)} if n % 6 == 5 else None,
        always=("**",) if n % 10 == 9 else None,
        resolution=resolution(question, n),
        result="this" if question == "what_to_answer" and n % 2 else "",
    )
    shell.send(given)


def resolution(question, n):
    """Return what is said of a call in doubt, at times of one that is not."""
    if question != "did_it_happen" and n % 9 != 8:
        return None
    return ["happened", "run_again"][n // 3 % 2] if n % 2 else "do_not_run"


def answer_late(shell, n):
    """Decide in time, and be read when the deadline has passed."""
    asked = [call.approval for call in shell.state.open_calls if call.asking]
    approval, at = asked[n // 4 % len(asked)], shell.now
    given = DecisionGiven(
        approval=approval.id,
        digest=approval.digest,
        verdict="grant" if n % 4 else "deny",
        by=["ada", "bob", "carl"][n % 3],
        resolution=late_resolution(approval.question, n),
        result="this" if approval.question == "what_to_answer" and n % 4 else "",
    )
    shell.pass_time(max((approval.deadline_at - at).total_seconds(), 0.0) + 1.0)
    shell.send(given, at)


def late_resolution(question, n):
    if question != "did_it_happen":
        return None
    return "run_again" if n % 4 else "do_not_run"


def pause(shell, n):
    shell.send(PauseAsked(why=["asked", "signal"][n % 2]))


def resume(shell, n):
    shell.send(ResumeAsked())


def raise_limits(shell, n):
    """Give it more, at times of what it has no limit of, or no more than it has."""
    wishes = [{"max_turns": 5}, {"max_active_seconds": 20.0}, {"max_wall_seconds": 90.0}]
    shell.send(RaiseAsked(**wishes[n % 3]))


def switch_model(shell, n):
    choice = ModelChoice(provider="scripted", model=["m", "other", "third"][n % 3])
    shell.send(ModelChangeAsked(model=choice))


def stop(shell, n):
    shell.send(StopAsked())


def wait(shell, n):
    """Wait a little, or for what the session waits for."""
    moment = wake_at(shell.state)
    due_in = (moment - shell.now).total_seconds() if moment else 0.0
    shell.pass_time([0.5, 5.0, max(due_in, 0.0), max(due_in, 0.0)][n % 4])


def close_a_breaker(shell, n):
    """Learn that a breaker closed, before anybody waited for it to the end."""
    shell.take(SessionContinued(by="breaker", at=shell.now))


def share_the_budget(shell, n):
    """Have another session of the tree take from the budget, or give back."""
    shell.ledger.neighbour(shell.state, takes=n % 3 > 0)
    shell.hear_of_room()


def crash(shell, n):
    shell.crash()


def come_late(shell, n):
    outcome = saying("shout", turn=1, attempt=9) if n % 2 else returned("1.0", attempt=9)
    before = shell.state
    step = shell.take(outcome)
    assert isinstance(step[0], OutcomeCameLate)
    assert before == shell.state


def ask_for_a_start(shell, n):
    before = shell.state.turn
    step = shell.send(StartAsked(agent=shell.state.agent, asked_at=NOW))
    assert isinstance(step[0], MessageRefused)
    assert before == shell.state.turn


def possible(shell):
    """List what may happen now, the likely more than once."""
    state = shell.state
    asked = any(call.asking for call in state.open_calls)
    return [
        *[work] * (12 * bool(shell.owed())),
        *[think] * (12 * bool(shell.model)),
        *[fail_to_think] * (4 * bool(shell.model)),
        *[finish] * (8 * bool(shell.tools)),
        *[fail] * (8 * bool(shell.tools)),
        *[ask_by_tool] * (3 * bool(shell.tools)),
        *[defer] * (3 * bool(shell.tools)),
        *[end_child] * (6 * bool(shell.children)),
        *[answer] * (1 + 8 * asked),
        *[answer_late] * (4 * asked),
        *[wait] * (1 + 4 * bool(wake_at(state))),
        *[resume] * (1 + 6 * bool(state.hold)),
        *[say] * (2 + 6 * (state.status is Status.IDLE)),
        *[crash] * 2,
        *[close_a_breaker] * (2 * bool(state.blocked_by_breaker)),
        *[share_the_budget] * (4 * shell.state.limited),
        pause,
        switch_model,
        come_late,
        ask_for_a_start,
        raise_limits,
    ]


def simulate(start, script):
    shell = SimulatedShell()
    shell.take(start)
    for number in script:
        # Small numbers are drawn most often; scrambled, they are as good as any.
        chance = (number + 1) * 2_654_435_761 % 2**32 >> 4
        # What ends a session is rare, and little of interest happens after it.
        actions = [stop] if chance % 97 == 0 else possible(shell)
        if shell.state.finished and chance % 5 == 0:
            break
        actions[chance % len(actions)](shell, chance // 64)
        check_stall(shell)
        waits = shell.state.status is Status.WAITING
        assert not (waits and shell.ledger.holds(shell.state.stream)), "I8: who waits holds room"
    return shell


def stories(longest):
    return st.lists(st.integers(0, 2**14), min_size=longest // 2, max_size=longest)
