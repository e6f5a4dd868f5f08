"""The facts of a session.

The meaning of a fact never changes. A step begins with the fact that came from outside,
which has the whole command, so deciding again on the earlier state gives the same events
(I10).
"""

from cueline.events.session.call import (
    UNJUDGED,
    CallDelegated,
    CallsAdded,
    Demand,
    FileChange,
    Judgement,
    MessageAwaited,
    OutcomeCameLate,
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
from cueline.events.session.lifecycle import (
    LimitRaised,
    LimitWarned,
    LostAttempt,
    MessageReceived,
    MessageRefused,
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
    StopCode,
    WaitKind,
    WakeCode,
)
from cueline.events.session.model import (
    AgentChanged,
    CapabilityDegraded,
    ContextCompacted,
    Cut,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    ModelStarted,
    PrefixReason,
    PromptPrefixChanged,
    calls_of,
)
from cueline.events.session.question import (
    ApprovalRequested,
    ApprovalResolved,
    GateAnswer,
    PeopleNotified,
    TellCode,
    Verdict,
)

SessionEvent = (
    SessionStarted
    | SessionForked
    | RunClaimed
    | MessageReceived
    | MessageRefused
    | ModelRequested
    | ModelStarted
    | ModelReplied
    | ModelFailed
    | ToolStarted
    | CallDelegated
    | CallsAdded
    | MessageAwaited
    | ToolReturned
    | ToolAsked
    | ToolDeferred
    | ToolFailed
    | ToolSkipped
    | ToolInDoubt
    | ToolReconciled
    | ApprovalRequested
    | ApprovalResolved
    | PeopleNotified
    | SessionWaiting
    | SessionContinued
    | SandboxAttached
    | SessionIdle
    | SessionTakenOver
    | ReservationClosed
    | LimitRaised
    | LimitWarned
    | AgentChanged
    | ContextCompacted
    | PromptPrefixChanged
    | CapabilityDegraded
    | OutcomeCameLate
    | SessionCompleted
    | SessionFailed
    | SessionStopped
)
