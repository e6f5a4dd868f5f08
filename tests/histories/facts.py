"""One fact of each type at least, made by hand."""

from decimal import Decimal

from cueline.events.approval import (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalOpened,
    ApprovalSuperseded,
    VoteGiven,
)
from cueline.events.breaker import (
    BreakerClosed,
    BreakerHalfOpened,
    BreakerHeld,
    BreakerOpened,
    FailureCounted,
)
from cueline.events.budget import (
    BudgetOffered,
    BudgetOpened,
    BudgetRaised,
    BudgetRefused,
    BudgetWarned,
    CostReleased,
    CostReserved,
    CostSettled,
)
from cueline.events.checkpoint import (
    CheckpointDeleted,
    CheckpointListed,
    CheckpointStored,
    ThreadDeleted,
    WriteStored,
)
from cueline.events.fact import Fact
from cueline.events.fleet import (
    DispatcherStarted,
    DispatcherStopped,
    FleetTaken,
    HostJoined,
    HostLost,
    NodeDied,
    NodeDraining,
    RunnerBack,
    RunnerRegistered,
    RunnerRemoved,
    RunnerStale,
    ScaleAsked,
    WorkerGroup,
    WorkersPending,
)
from cueline.events.proposal import ProposalRejected
from cueline.events.retention import KeptUsage, SessionEmptied
from cueline.events.sandbox import (
    SandboxAsked,
    SandboxDone,
    SandboxFailed,
    SandboxSpec,
    SlotAsked,
    SlotFreed,
    SlotGranted,
)
from cueline.events.seal import LogSealed
from cueline.events.telemetry import SpansExported
from cueline.events.token import TokenIssued, TokenRevoked
from tests.histories.session_facts import (
    AGENT,
    AT,
    CHILD,
    DIGEST,
    FAMILY,
    INBOX,
    LIFE,
    SESSION,
    TURN,
)

APPROVALS = [
    ApprovalOpened(
        session=SESSION,
        effect="2.0",
        digest=DIGEST,
        question="may_it_run",
        tool="write_file",
        arguments={"path": "é.txt"},
        summary="writes é.txt",
        rule="sensitive",
        epoch=2,
        opened_at=AT,
        deadline_at=AT,
    ),
    VoteGiven(verdict="grant", by="ann", message="inbox-default/7f3a@6", recorded_at=AT),
    ApprovalGranted(by="ann", edit={"path": "ü.txt"}, digest=DIGEST, always=("ü.txt",)),
    ApprovalDenied(by="bob"),
    ApprovalExpired(at=AT),
    ApprovalSuperseded(reason="stop"),
]
BUDGET = [
    BudgetOpened(session=SESSION, max_tokens=100_000, max_cost=Decimal("2.50")),
    BudgetOpened(session=CHILD, parent=SESSION),
    CostReserved(session=CHILD, effect="1.m", attempt=1, epoch=1, tokens=9000, usd=Decimal("0.15")),
    BudgetRefused(
        session=SESSION,
        effect="2.m",
        attempt=2,
        epoch=3,
        answer="busy",
        limit="max_cost",
        whose=SESSION,
        tokens=9100,
        usd=Decimal("2.40"),
    ),
    CostSettled(
        session=CHILD,
        effect="1.m",
        attempt=1,
        epoch=1,
        tokens=9001,
        usd=Decimal("0.16"),
        estimated=True,
        tokens_over=1,
        usd_over=Decimal("0.01"),
    ),
    CostReleased(session=SESSION, effect="2.m", attempt=2, epoch=3),
    BudgetOffered(sessions=(SESSION,)),
    BudgetWarned(session=SESSION, limit="max_cost", spent=Decimal("2.10"), of=Decimal("2.50")),
    BudgetRaised(session=SESSION, max_cost=Decimal("5.00"), message="inbox-default/7f3a@7"),
]
BREAKER = [
    FailureCounted(at=AT, kind="overloaded", successes=3),
    BreakerOpened(at=AT, until=AT, kind="overloaded", openings=2),
    BreakerHeld(at=AT, until=AT, kind="rate_limited"),
    BreakerHalfOpened(at=AT, probe=f"{SESSION}/2.m", until=AT),
    BreakerClosed(at=AT),
]
PEOPLE = [
    ProposalRejected(action="pause", session=SESSION),
    TokenIssued(
        token="abcd2345",
        digest="0f" * 32,
        person="ada",
        tenant="acme",
        scopes=("send", "approve:write_*"),
        at=AT,
        expires_at=AT,
        by="lin",
        note="nightly report",
    ),
    TokenRevoked(token="abcd2345", at=AT, by="lin", reason="replaced"),
    LogSealed(
        size=2,
        frontier=("0f" * 32,),
        note=f"cueline/1f0\n2\n{'Dw8P' * 10}Dw8=\n\n— cueline/1f0 {'A' * 91}=\n",
        key=f"cueline/1f0+00000000+{'A' * 44}",
    ),
    SpansExported(position=2, spans=1),
    SessionEmptied(
        session="session-default/one",
        cause="archived",
        reason="older than 90 days",
        streams={"session-default/one": 12, "inbox-default/one": 1},
        status="completed",
        agent="clerk",
        parent="session-default/top",
        root="session-default/top",
        started_at=AT,
        turns=2,
        tool_calls=1,
        usage=(KeptUsage(provider="p", model="m", day="2026-01-31", calls=2, cost=Decimal("0.5")),),
        archive="/mnt/archive/one.jsonl.gz",
        archive_hash="0f" * 32,
    ),
]
BOX = SandboxSpec(
    backend="container",
    image="python:3.12",
    workspace="/work",
    volume="caches",
    environment={"TOKEN": "$GIT_TOKEN"},
    network=True,
)
SANDBOXES = [
    SlotAsked(session=SESSION, spec=BOX, number=1, slots=10, at=AT),
    SlotGranted(session=SESSION),
    SandboxAsked(act="create", session=SESSION, spec=BOX, at=AT),
    SandboxDone(act="create", place="c0ffee", at=AT),
    SandboxFailed(act="start", message="it is archived", gone=True, at=AT),
    SlotFreed(session=SESSION, slots=10, at=AT),
]
DISPATCHER = [
    DispatcherStarted(incarnation="d1", machine="m1", pid=42, epoch=1, recover=True, at=AT),
    DispatcherStopped(incarnation="d1", at=AT),
]
PLAIN = WorkerGroup(kind="runner")
GPUS = WorkerGroup(kind="runner", labels={"zone": "b"}, resources={"gpus": 1.0}, per_node=2)
HERE = {"machine": "m1", "node": "n1", "at": AT}
FLEET = [
    ScaleAsked(group=PLAIN, least=8, most=8, by="ada", at=AT),
    ScaleAsked(group=GPUS, least=0, most=4, by="ada", at=AT),
    FleetTaken(epoch=1, up="up-1", at=AT),
    HostJoined(incarnation="h1", group=WorkerGroup(kind="host"), pid=42, epoch=1, **HERE),
    HostLost(incarnation="h1", reason="exit 137", epoch=1, at=AT),
    RunnerRegistered(incarnation="r1", group=GPUS, pid=43, epoch=1, **HERE),
    RunnerRegistered(
        incarnation="r2",
        runner="up",
        blueprints=(AGENT,),
        group=PLAIN,
        pid=44,
        epoch=1,
        **HERE,
    ),
    RunnerStale(incarnation="r1", reason="it is silent", removed_at=AT, epoch=1, at=AT),
    RunnerBack(incarnation="r1", epoch=1, at=AT),
    RunnerRemoved(incarnation="r1", reason="exit 137", epoch=1, at=AT),
    RunnerRemoved(incarnation="r2", reason="it was retired", graceful=True, epoch=1, at=AT),
    NodeDraining(node="n1", epoch=1, at=AT),
    NodeDied(node="n1", reason="unexpected_termination", message="no heartbeats", at=AT),
    WorkersPending(group=GPUS, count=2, epoch=1, at=AT),
]

THREAD = [
    CheckpointStored(
        thread="Ada's",
        checkpoint="1f0",
        parent="1ef",
        content="msgpack:gKA=",
        metadata="msgpack:gKA=",
        values={"said": "msgpack:oWE="},
    ),
    WriteStored(
        thread="Ada's",
        namespace="sub:1",
        checkpoint="1f0",
        task="t",
        path="~",
        index=-3,
        channel="__interrupt__",
        content="msgpack:oWE=",
    ),
    CheckpointListed(thread="Ada's", checkpoint="1f0", newest="1f0"),
    CheckpointDeleted(thread="Ada's", checkpoint="1f0", newest="1ef"),
    ThreadDeleted(thread="Ada's"),
]


FACTS: list[Fact] = [
    *INBOX,
    *FAMILY,
    *LIFE,
    *TURN,
    *APPROVALS,
    *BUDGET,
    *BREAKER,
    *PEOPLE,
    *SANDBOXES,
    *DISPATCHER,
    *FLEET,
    *THREAD,
]
