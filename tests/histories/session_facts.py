"""The facts of a session and of its inbox, made by hand."""

from datetime import UTC, datetime
from decimal import Decimal

from cueline.events.agent import (
    AgentSpec,
    Hook,
    Limits,
    ModelChoice,
    Policy,
    Price,
    Rule,
    ToolSpec,
    Workspace,
)
from cueline.events.agent_parts import Plan, RetryPolicy, Step
from cueline.events.budget import (
    Allowance,
    DescendantAsked,
)
from cueline.events.codes import Cause, Refusal
from cueline.events.inbox import (
    BudgetFreed,
    ChildAsked,
    ChildEnded,
    ChildPaused,
    DecisionGiven,
    ForkPoint,
    MessageSent,
    ModelChangeAsked,
    PauseAsked,
    RaiseAsked,
    ResumeAsked,
    RunAdmitted,
    RunnerGone,
    SecretsWaived,
    SlotOffered,
    StartAsked,
    StopAsked,
)
from cueline.events.input_request import InputRequest
from cueline.events.message import (
    Cost,
    Estimate,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Usage,
)
from cueline.events.session import (
    AgentChanged,
    ApprovalRequested,
    ApprovalResolved,
    CallDelegated,
    CallsAdded,
    CapabilityDegraded,
    ContextCompacted,
    Cut,
    GateAnswer,
    Judgement,
    LimitRaised,
    LimitWarned,
    LostAttempt,
    MessageAwaited,
    MessageReceived,
    MessageRefused,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    ModelStarted,
    OutcomeCameLate,
    PeopleNotified,
    PromptPrefixChanged,
    ReservationClosed,
    RunClaimed,
    SandboxAttached,
    SessionCompleted,
    SessionContinued,
    SessionFailed,
    SessionForked,
    SessionIdle,
    SessionStarted,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    StepEnded,
    ToolAsked,
    ToolDeferred,
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
)
from cueline.events.start import Run

AT = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
SESSION = "session-default/7f3a"
APPROVAL = "approval-default/7f3a.2.0.1"
DIGEST = "d1" * 32
TOOL = ToolSpec(
    name="write_file",
    description="Write a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}},
    declared="idempotent",
    sensitive=True,
    target="cueline.tools.files:write_file",
    digest=DIGEST,
    needs_workspace=True,
)
AGENT = AgentSpec(
    name="editor",
    provider="scripted",
    model="scripted-1",
    parameters={"temperature": 0.5, "stop": ["\n\n", None]},
    instructions="You edit files.",
    tools=(TOOL,),
    limits=Limits(max_turns=20, max_tokens=100_000, max_cost=Decimal("2.50")),
    limit_sources={"max_turns": "agent file"},
    retry=RetryPolicy(max_retries=2),
    policy=Policy(
        approval=("sensitive", "cost"),
        rules=(Rule(name="books", answer="ask", paths=("books/**",), may_grant=("ann",), votes=2),),
        in_doubt="tell",
        hooks=(Hook(on="reminder", command=("notify-send",), after_seconds=60),),
    ),
    prices={"scripted/*": Price(input=Decimal("3.00"), output=Decimal(15))},
    on_unknown_price="ignore",
    workspace=Workspace(machine="m1", path="/srv/work"),
    secrets=("API_TOKEN",),
)
PLANNED = AgentSpec(
    name="post",
    provider="workflow",
    model="",
    parameters_schema={"type": "object"},
    plan=Plan(
        steps=(
            Step(name="fix", for_each="input.paths", arguments={"path": "{{ item }}"}),
            Step(name="go", needs=("fix",), wait="go", timeout_seconds=60, condition="always"),
            Step(name="post", needs=("go",), when="steps.go.value.yes", auto_approve=False),
        ),
        max_parallel=2,
        output="steps.fix.value",
    ),
)
CHILD = "session-default/c41d"
ABOVE = (Allowance(session=SESSION, max_cost=Decimal("2.50")),)
ASKED = Judgement(
    answer="ask",
    rule="books, cost",
    digest=DIGEST,
    usd=Decimal("0.75"),
    votes=2,
    may_grant=(("ann",),),
    exclude_requester=True,
)
CALL = ToolCall(id="call_1", name="write_file", arguments={"path": "é.txt", "$blob": "not ours"})
INBOX = [
    StartAsked(
        agent=AGENT,
        goal="Tidy up",
        fork_of=ForkPoint(stream=SESSION, version=4, hash="ab" * 32),
        note="The files are a copy.",
        labels={"team": "docs"},
        parent=SESSION,
        root=SESSION,
        depth=1,
        allowances=ABOVE,
        asked_at=AT,
    ),
    MessageSent(lane="steer", text="Only the docs — “all” of them"),
    MessageSent(lane="note", text='{"yes": true}', name="go", value={"yes": True}),
    PauseAsked(why="signal"),
    ResumeAsked(),
    StopAsked(),
    DecisionGiven(approval=APPROVAL, digest=DIGEST, verdict="grant", by="ann"),
]
FAMILY = [
    DescendantAsked(session=CHILD, parent=SESSION),
    RaiseAsked(max_cost=Decimal("5.00"), max_turns=40),
    ModelChangeAsked(model=ModelChoice(provider="scripted", model="b")),
    SecretsWaived(names=("API_TOKEN",), by="ann"),
    BudgetFreed(budget="budget-default/7f3a"),
    ChildAsked(child=CHILD),
    ChildEnded(
        child=CHILD,
        status="completed",
        tokens=900,
        usd=Decimal("0.001"),
        effect="2.0",
        text="It is mended.",
        value={"mended": True},
        side_effects_possible=True,
        original_parameters={"goal": "mend it"},
    ),
    ChildPaused(child=CHILD, reason="error: auth: no key"),
    RunAdmitted(),
    SlotOffered(pool="main"),
    RunnerGone(runner="r2", reason="exit 137"),
]
TURN = [
    ModelRequested(effect="2.m", attempt=1, messages=(2,), digest="aa" * 32, prefix_digest=""),
    ModelStarted(effect="2.m", attempt=1),
    ModelFailed(
        effect="2.m",
        attempt=1,
        kind="overloaded",
        message="try later",
        failed_at=AT,
        retry_after=1.5,
        retry_at=AT,
        usage=Usage(input=3),
        cost=Cost(usd=Decimal("0.00001"), prices="list 2026-01-01"),
        seconds=1.25,
    ),
    ModelReplied(
        effect="2.m",
        attempt=2,
        content=(
            ThinkingBlock(text="hm", signature="sig"),
            OpaqueBlock(provider="anthropic", data={"kind": "redacted", "n": [1, 2.5, None]}),
            TextBlock(text="I write."),
        ),
        calls=(CALL, ToolCall(id="call_2", name="odd", malformed="{")),
        stop_reason="tool_use",
        usage=Usage(input=1200, output=35, cache_read=900, cache_write=10),
        cost=Cost(usd=Decimal("0.001234"), prices="list 2026-01-01"),
        model="scripted-1-0101",
        seconds=1.25,
        estimates={"2.0": Estimate(usd=Decimal("0.75")), "2.1": Estimate(problem="no list")},
        judged={
            "2.0": ASKED,
            "2.1": Judgement(answer="allow", rule="", digest=DIGEST, problem="no JSON object"),
        },
    ),
    ToolStarted(
        effect="2.0", attempt=1, tool="write_file", runner="r1", epoch=2, rule=f"grant {APPROVAL}"
    ),
    CallDelegated(
        effect="2.0",
        tool="fixer",
        agent="fixer",
        child=CHILD,
        deadline_at=AT,
        rule="not sensitive",
    ),
    CallsAdded(
        calls={"1.0": ToolCall(id="fix[0]", name="fix", arguments={"path": "a.py"})},
        judged={"1.0": ASKED},
        items={"fix": 2},
        ended=(StepEnded(step="post", status="skipped", error_code="not_wanted"),),
    ),
    MessageAwaited(effect="1.1", name="go", deadline_at=AT),
    ToolReturned(effect="1.0", attempt=1, output="[1]", value=[1]),
    ToolReturned(
        effect="2.0", attempt=1, output="ok", whole="be" * 32, size=50_000, cleaned=True, seconds=2
    ),
    ToolFailed(effect="2.1", attempt=1, kind="timeout", message="300 s", failed_at=AT, retry_at=AT),
    ToolSkipped(effect="2.1", reason="Skipped due to queued user message."),
    ToolAsked(
        effect="2.0",
        attempt=1,
        requests=(
            InputRequest(key="which", message="Which one?", parameters={"type": "object"}),
            InputRequest(key="page", message="Sign in.", url="https://example.com/in"),
        ),
        digest="ab" * 32,
        state="sealed",
    ),
    ToolDeferred(
        effect="2.0", attempt=1, state="sealed", at=AT, poll_at=AT, deadline_at=AT, seconds=0.5
    ),
    ToolInDoubt(
        effect="2.0",
        attempt=1,
        cause=Cause(code="tool_failed", failure="lost", message="its machine says that it exited"),
    ),
    ToolReconciled(effect="2.0", outcome="happened", by="ann", output="It did."),
]
LIFE = [
    SessionStarted(
        agent=PLANNED, goal=None, parameters={"path": "a"}, open=False, attached=False, epoch=1
    ),
    SessionStarted(
        agent=AGENT,
        goal="Tidy up",
        open=True,
        attached=False,
        labels={"team": "docs"},
        epoch=1,
        parent=SESSION,
        root=SESSION,
        depth=1,
        allowances=ABOVE,
    ),
    SessionStarted(
        agent=AGENT,
        goal="Crawl",
        open=False,
        attached=False,
        run=Run(blueprint="editor", retry_of=CHILD, queue_seconds=60),
        epoch=1,
    ),
    RunClaimed(runner="r2"),
    SandboxAttached(number=2, place="c0ffee", lost="it is archived"),
    SessionForked(
        parent=SESSION,
        version=4,
        hash="ab" * 32,
        agent=AGENT,
        goal=None,
        open=False,
        attached=True,
        note="The files are a copy.",
        epoch=1,
    ),
    MessageReceived(
        inbox_version=6,
        recorded_at=AT,
        message=INBOX[-1],
        gate_answer=GateAnswer(approval=APPROVAL, verdict="granted", by="ann"),
    ),
    MessageRefused(
        inbox_version=7,
        recorded_at=AT,
        message=INBOX[1],
        refusal=Refusal(code="session_ended", status="stopped"),
    ),
    ApprovalRequested(effect="2.0", approval=APPROVAL, digest=DIGEST, deadline_at=AT, rule="r"),
    ApprovalResolved(approval=APPROVAL, verdict="granted", by="ann", note="fine"),
    ApprovalResolved(
        approval=APPROVAL,
        verdict="granted",
        by="ann",
        edit={"path": "a.txt"},
        digest=DIGEST,
        judged=Judgement(answer="ask", rule="sensitive", digest=DIGEST),
    ),
    PeopleNotified(
        effect="2.0",
        approval=APPROVAL,
        hook=0,
        code="hook_failed",
        problem="it ended with 1",
        at=AT,
    ),
    SessionWaiting(
        kind="approval",
        cause=Cause(code="approval_pending", approvals=("2.0",)),
        deadline_at=AT,
        effects=("2.0",),
    ),
    SessionContinued(by="message", at=AT),
    SessionIdle(result="Done so far."),
    SessionTakenOver(epoch=3, lost_attempts=(LostAttempt(effect="2.m", attempt=1),), at=AT),
    ReservationClosed(
        effect="2.m",
        attempt=2,
        outcome="settled",
        tokens=2145,
        usd=Decimal("0.001234"),
        shares={"max_cost": 0.85},
    ),
    LimitRaised(max_cost=Decimal("5.00"), max_turns=40),
    LimitWarned(limit="max_active_seconds", share=0.9, used=90.5, of=100, note="Wrap up."),
    AgentChanged(
        model=ModelChoice(
            provider="scripted", model="b", parameters={"script": "x"}, headers={"x-team": "$TEAM"}
        )
    ),
    ContextCompacted(
        effect="7.c", cut=Cut(messages=12, of=17), reason="window", tokens=160_500, digest="ab"
    ),
    PromptPrefixChanged(reason="fallback", before="scripted a", after="scripted b"),
    CapabilityDegraded(capability="tools", provider="ollama", model="gemma"),
    OutcomeCameLate(effect="2.0", attempt=1, outcome="ToolReturned"),
    SessionCompleted(result="Tidy."),
    SessionCompleted(result="[1]", value=[1]),
    SessionFailed(kind="auth", message="no key", recoverable=True),
    SessionStopped(by="ann", reason="It is done."),
]
