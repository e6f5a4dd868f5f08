"""The record beside a log about its running `cueline up`."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, Self

import msgspec

from cueline.actors.presence import evidence_of_end, machine_name, presence_of
from cueline.events.log_url import LogName
from cueline.events.store import Presence
from cueline.stores.backend import backend_of


@dataclass(frozen=True, slots=True, kw_only=True)
class UpRecord:
    """A running `cueline up`, as recorded beside the log.

    The record is a hint: readers check whether the process is alive.
    """

    address: str
    namespace: str
    version: str
    keeper: Presence
    """The process of `cueline up`; the cluster may end with it."""
    kept_by: Literal["process", "ray"] = "process"
    """The keeper of the actors; `ray`: the process started them on a cluster, and has ended."""
    recover: bool = True
    """Whether the `cueline up` resumes sessions without a driver."""
    ready: bool = True
    """Whether the `cueline up` accepts sessions; false while it starts or stops."""

    @classmethod
    def read(cls, log: LogName) -> Self | None:
        """Return the record beside *log*; None if it is missing or unreadable."""
        try:
            return msgspec.json.decode(backend_of(log).read_up() or "", type=cls)
        except msgspec.DecodeError:
            return None

    def write(self, log: LogName) -> None:
        """Write the record beside *log*, atomically."""
        backend_of(log).write_up(json.dumps(asdict(self), indent=2) + "\n")

    def withdraw(self, log: LogName) -> None:
        """Remove the record beside *log*, unless another process has replaced it."""
        there = self.read(log)
        if there is not None and there.keeper == self.keeper:
            backend_of(log).remove_up()

    @property
    def lives(self) -> bool:
        """Whether the process lives on this machine, or Ray keeps the actors.

        Whether Ray and the actors are alive is not in the record: the presence of their dispatcher
        shows it.
        """
        if self.kept_by == "ray":
            return True
        here = presence_of("cli")
        ours, theirs = ((each.boot_id, each.pid_namespace) for each in (here, self.keeper))
        return ours == theirs and evidence_of_end(self.keeper) is None

    @property
    def keeper_text(self) -> str:
        """The keeper of the actors, in words."""
        return "Ray" if self.kept_by == "ray" else f"process {self.keeper.pid}"


def find_up(log: LogName) -> UpRecord | None:
    """Return the record of the log's `cueline up`; None if it is not ready, or has ended.

    If Ray keeps its actors, or its process is on another machine, it counts as running.
    """
    record = UpRecord.read(log)
    if record is None or not record.ready:
        return None
    shared = backend_of(log).writer_place is None and record.keeper.machine != machine_name()
    return record if record.lives or shared else None


def up_output(log: LogName) -> Path:
    """Return the output file of a detached `cueline up`; its folder is created."""
    return backend_of(log).up_output()


def recovers(log: LogName) -> bool:
    """Whether a `cueline up` resumes sessions of the log without a driver."""
    record = find_up(log)
    return record is not None and record.recover
