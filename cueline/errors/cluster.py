"""Errors between processes: runners, hosts and the cluster."""

from cueline.errors.root import CuelineError


class RunnerBusyError(CuelineError):
    """The runner did not start the call; ask another, or try later."""

    retryable = True

    def __init__(self, runner: str) -> None:
        super().__init__(runner)
        self.runner = runner

    def __str__(self) -> str:
        return f"runner {self.runner} is busy"


class RunnerGoneError(CuelineError):
    """The runner cannot be reached; the call may or may not have run."""

    retryable = True

    def __init__(self, runner: str, reason: str) -> None:
        super().__init__(runner, reason)
        self.runner = runner
        self.reason = reason

    def __str__(self) -> str:
        return f"runner {self.runner} cannot be reached: {self.reason}"


class HostsFullError(CuelineError):
    """Sessions have work and no host has a place; they are retried every second."""

    retryable = True

    def __init__(self, sessions: int, hosts: int) -> None:
        super().__init__(sessions, hosts)
        self.sessions = sessions
        self.hosts = hosts

    def __str__(self) -> str:
        return (
            f"{self.sessions} sessions have work, and no host has a place for them ({self.hosts} "
            "hosts are full or drain); they wait. More hosts: `cueline scale --hosts N`"
        )


class StaleOrderError(CuelineError):
    """The order names another incarnation, or an epoch below one already served."""

    def __init__(self, runner: str, stream: str, epoch: int, current: int) -> None:
        super().__init__(runner, stream, epoch, current)
        self.runner = runner
        self.stream = stream
        self.epoch = epoch
        self.current = current

    def __str__(self) -> str:
        return (
            f"runner {self.runner} refused an order for {self.stream}: "
            f"epoch {self.epoch}, it serves {self.current}"
        )


class ClusterError(CuelineError):
    """The Ray cluster is missing, not ours, or not usable; the message says what to do."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address = address
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.address}: {self.reason}"
