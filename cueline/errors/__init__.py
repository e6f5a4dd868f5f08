"""The errors of cueline, with the next step for each.

```
CuelineError
├── RejectedError                change the request
│   ├── ConfigError              correct the file, flag or variable that the message names
│   │   └── ParameterValidationError  correct the parameters
│   ├── UnknownSessionError      name a session that exists
│   ├── SessionFinishedError     fork the session, or start another
│   ├── SessionOwnedError        wait for the living owner, or send the session a message
│   ├── SessionUndrivenError     resume the session, or start `cueline up`
│   ├── BlueprintConflictError   give the blueprint another name
│   ├── NotPendingError          read the outcome of the approval
│   ├── ProposalError            propose again
│   │   ├── ProposalExpiredError  propose again
│   │   └── ProposalStaleError   read the session, propose again
│   ├── NotUndoableError         nothing: the effect stays
│   ├── ForbiddenError           use a token with the named scope
│   ├── InvalidNameError         choose another name
│   ├── ToolImportError          make the tool importable
│   │   └── ToolChangedError     accept the changed tool, or restore the former one
│   └── PathEscapeError          stay inside the workspace
├── StoreError                   the log refused, or failed
│   ├── WrongExpectedVersionError  read again, decide again
│   ├── FencedError              stop: another process owns the stream
│   ├── KeyReusedError           a bug: one key, two contents
│   ├── EmptyAppendError         a bug: nothing to append
│   ├── MissingBlobError         store the blob first
│   ├── BlobTooLargeError        store a smaller value
│   ├── UnknownOutcomeError      repeat with the same key
│   ├── LogUnavailableError      the operator mends disk, lock or permissions
│   ├── LogLostError             stop: the log's file is gone
│   │   └── LogIndexLostError    end all processes that have the log open, then continue
│   ├── LogFormatError           the operator upgrades cueline
│   └── CorruptEventError        the operator restores the log; earlier events still load
├── UnknownEventTypeError        the operator upgrades cueline
├── SecretLeakError              a bug: a secret was about to be recorded
├── ProviderUnavailableError     wait and try again
├── ProviderRefusedError         do not try again
├── ToolFailedError              send the message to the model
├── SandboxError              try again, or mend the back-end
│   └── SandboxGoneError      use a fresh sandbox
├── RunnerBusyError              ask another runner, or try later
├── RunnerGoneError              find out the outcome of the call
├── HostsFullError               wait, or start more hosts
├── StaleOrderError              stop: the runner serves a newer owner
├── ClusterError                 the operator mends the cluster
└── TelemetryError               send it again later
```

Import the errors from here. Each error can be pickled (Ray pickles errors), because it passes
all of its arguments on to `Exception`.
"""

from cueline.errors.log import (
    BlobTooLargeError,
    CorruptEventError,
    EmptyAppendError,
    FencedError,
    KeyReusedError,
    LogFormatError,
    LogIndexLostError,
    LogLostError,
    LogUnavailableError,
    MissingBlobError,
    SecretLeakError,
    StoreError,
    UnknownEventTypeError,
    UnknownOutcomeError,
    WrongExpectedVersionError,
)
from cueline.errors.rejected import (
    BlueprintConflictError,
    ConfigError,
    ForbiddenError,
    InvalidNameError,
    NotPendingError,
    NotUndoableError,
    ParameterValidationError,
    PathEscapeError,
    ProposalError,
    ProposalExpiredError,
    ProposalStaleError,
    RejectedError,
    SessionFinishedError,
    SessionOwnedError,
    SessionUndrivenError,
    ToolChangedError,
    ToolImportError,
    UnknownSessionError,
)
from cueline.errors.root import (
    ClusterError,
    CuelineError,
    HostsFullError,
    ProviderRefusedError,
    ProviderUnavailableError,
    RunnerBusyError,
    RunnerGoneError,
    SandboxError,
    SandboxGoneError,
    StaleOrderError,
    TelemetryError,
    ToolFailedError,
)
