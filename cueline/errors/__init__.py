"""The errors of cueline, divided by who acts next.

```
CuelineError
├── RejectedError                the caller changes its mind
│   ├── ConfigError              mends the file, flag or variable it names
│   ├── UnknownSessionError      names a session that exists
│   ├── SessionFinishedError     forks, or starts another
│   ├── SessionOwnedError        waits for the living owner, or asks it through the inbox
│   ├── SessionUndrivenError     resumes it, or starts `cueline up`
│   ├── NotPendingError          looks at what became of the approval
│   ├── InvalidNameError         chooses another name
│   ├── ToolImportError          makes the tool importable
│   │   └── ToolChangedError     accepts the tool as it is now, or puts the former one back
│   └── PathEscapeError          stays inside the workspace
├── StoreError                   the log refused, or could not
│   ├── WrongExpectedVersionError  reload, decide again
│   ├── FencedError              stop: somebody else owns the stream
│   ├── KeyReusedError           a bug: one key, two contents
│   ├── EmptyAppendError         a bug: nothing to append
│   ├── MissingBlobError         put the blob first
│   ├── BlobTooLargeError        make it smaller
│   ├── UnknownOutcomeError      ask again with the same key
│   ├── LogUnavailableError      the operator mends disk, lock or permissions
│   ├── LogLostError             stop: the log's file is not there any more
│   │   └── LogIndexLostError    ends all that have the log open, and goes on
│   ├── LogFormatError           the operator upgrades cueline
│   └── CorruptEventError        the operator restores; what is before it still loads
├── UnknownEventTypeError        the operator upgrades cueline
├── SecretLeakError              a bug: a secret was about to be recorded
├── ProviderUnavailableError     wait, try again
├── ProviderRefusedError         do not try again
├── ToolFailedError              tell the model
├── RunnerBusyError              ask another runner, or later
├── RunnerGoneError              find out what became of the call
├── HostsFullError               wait, or give it more hosts
├── StaleOrderError              stop: the runner serves a newer owner
└── ClusterError                 the operator mends the cluster
```

Import them from here: the modules part them by whom they come from.
Every `__init__` passes its own positional arguments on, so that each error
survives the way through a process border (Ray pickles them).
"""

from cueline.errors.cluster import (
    ClusterError,
    HostsFullError,
    RunnerBusyError,
    RunnerGoneError,
    StaleOrderError,
)
from cueline.errors.effect import ProviderRefusedError, ProviderUnavailableError, ToolFailedError
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
    ConfigError,
    InvalidNameError,
    NotPendingError,
    PathEscapeError,
    RejectedError,
    SessionFinishedError,
    SessionOwnedError,
    SessionUndrivenError,
    ToolChangedError,
    ToolImportError,
    UnknownSessionError,
)
from cueline.errors.root import CuelineError

__all__ = [
    "BlobTooLargeError",
    "ClusterError",
    "ConfigError",
    "CorruptEventError",
    "CuelineError",
    "EmptyAppendError",
    "FencedError",
    "HostsFullError",
    "InvalidNameError",
    "KeyReusedError",
    "LogFormatError",
    "LogIndexLostError",
    "LogLostError",
    "LogUnavailableError",
    "MissingBlobError",
    "NotPendingError",
    "PathEscapeError",
    "ProviderRefusedError",
    "ProviderUnavailableError",
    "RejectedError",
    "RunnerBusyError",
    "RunnerGoneError",
    "SecretLeakError",
    "SessionFinishedError",
    "SessionOwnedError",
    "SessionUndrivenError",
    "StaleOrderError",
    "StoreError",
    "ToolChangedError",
    "ToolFailedError",
    "ToolImportError",
    "UnknownEventTypeError",
    "UnknownOutcomeError",
    "UnknownSessionError",
    "WrongExpectedVersionError",
]
