"""The errors of cueline, grouped by who acts next.

```
CuelineError
├── RejectedError                the caller changes the request
│   ├── ConfigError              corrects the file, flag or variable that it names
│   │   └── ParameterValidationError  corrects the parameters
│   ├── UnknownSessionError      names a session that exists
│   ├── SessionFinishedError     forks it, or starts another
│   ├── SessionOwnedError        waits for the living owner, or sends it a message
│   ├── SessionUndrivenError     resumes it, or starts `cueline up`
│   ├── BlueprintConflictError   gives the blueprint another name
│   ├── NotPendingError          reads the outcome of the approval
│   ├── InvalidNameError         chooses another name
│   ├── ToolImportError          makes the tool importable
│   │   └── ToolChangedError     accepts the tool as it is now, or restores the former one
│   └── PathEscapeError          stays inside the workspace
├── StoreError                   the log refused, or failed
│   ├── WrongExpectedVersionError  read again, decide again
│   ├── FencedError              stop: another process owns the stream
│   ├── KeyReusedError           a bug: one key, two contents
│   ├── EmptyAppendError         a bug: nothing to append
│   ├── MissingBlobError         store the blob first
│   ├── BlobTooLargeError        make it smaller
│   ├── UnknownOutcomeError      repeat with the same key
│   ├── LogUnavailableError      the operator mends disk, lock or permissions
│   ├── LogLostError             stop: the log's file is gone
│   │   └── LogIndexLostError    end all that have the log open, then continue
│   ├── LogFormatError           the operator upgrades cueline
│   └── CorruptEventError        the operator restores the log; earlier events still load
├── UnknownEventTypeError        the operator upgrades cueline
├── SecretLeakError              a bug: a secret was about to be recorded
├── ProviderUnavailableError     wait and try again
├── ProviderRefusedError         do not try again
├── ToolFailedError              tell the model
├── RunnerBusyError              ask another runner, or try later
├── RunnerGoneError              find out the outcome of the call
├── HostsFullError               wait, or start more hosts
├── StaleOrderError              stop: the runner serves a newer owner
└── ClusterError                 the operator mends the cluster
```

Import them from here. Each one survives pickling (Ray pickles them): it passes all of its
arguments on to `Exception`.
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
    InvalidNameError,
    NotPendingError,
    ParameterValidationError,
    PathEscapeError,
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
    StaleOrderError,
    ToolFailedError,
)
