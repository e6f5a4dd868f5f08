"""Errors between processes: runners, hosts and the cluster."""

from cueline.errors.root import CuelineError


class RunnerBusyError(CuelineError):
    """The runner did not start the call; ask another, or try later."""

    retryable = True
    runner: str
    text = "runner {runner} is busy"


class RunnerGoneError(CuelineError):
    """The runner cannot be reached; the call may or may not have run."""

    retryable = True
    runner: str
    reason: str
    text = "runner {runner} cannot be reached: {reason}"


class HostsFullError(CuelineError):
    """Sessions have work and no host has a place; they are retried every second."""

    retryable = True
    sessions: int
    hosts: int
    text = (
        "{sessions} sessions have work, and no host has a place for them ({hosts} "
        "hosts are full or drain); they wait. More hosts: `cueline scale --hosts N`"
    )


class StaleOrderError(CuelineError):
    """The order names another incarnation, or an epoch below one already served."""

    runner: str
    stream: str
    epoch: int
    current: int
    text = "runner {runner} refused an order for {stream}: epoch {epoch}, it serves {current}"


class ClusterError(CuelineError):
    """The Ray cluster is missing, not ours, or not usable; the message says what to do."""

    address: str
    reason: str
    text = "{address}: {reason}"
