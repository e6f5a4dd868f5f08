"""Where a running `cueline up` of a log is, by the note beside the log."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from cueline.actors.presence import ended, presence_of
from cueline.events.log_url import LogName
from cueline.events.store import Presence
from cueline.stores.backend import backend_of


@dataclass(frozen=True, slots=True, kw_only=True)
class UpRecord:
    """The note beside a log that says where a running `cueline up` of it is.

    It is a hint: whoever reads it asks the machine whether the process lives.
    """

    address: str
    namespace: str
    version: str
    keeper: Presence
    """The process that was started by `cueline up`; the cluster may end with it."""
    recover: bool = True
    """Whether it goes on with what nobody drives, without being told to."""
    ready: bool = True
    """Whether it takes sessions up: not while it starts, nor while it is taken down."""

    @classmethod
    def read(cls, log: LogName) -> Self | None:
        """Return the note beside *log*, if there is one that can be read."""
        try:
            told: Mapping[str, Any] = json.loads(backend_of(log).read_up() or "")
            return cls(**{**told, "keeper": Presence(**told["keeper"])})
        except (ValueError, TypeError, KeyError):
            return None

    def write(self, log: LogName) -> None:
        """Leave the note beside *log*, whole or not at all."""
        backend_of(log).write_up(json.dumps(asdict(self), indent=2) + "\n")

    def withdraw(self, log: LogName) -> None:
        """Take the note from beside *log*, unless it is somebody else's by now."""
        there = self.read(log)
        if there is not None and there.keeper == self.keeper:
            backend_of(log).remove_up()

    @property
    def lives(self) -> bool:
        """Whether the process is there, by the word of this machine."""
        here = presence_of("cli")
        ours, theirs = ((each.boot_id, each.pid_namespace) for each in (here, self.keeper))
        return ours == theirs and ended(self.keeper) is None


def find_up(log: LogName) -> UpRecord | None:
    """Return the `cueline up` that drives the log's sessions, if its process lives here."""
    record = UpRecord.read(log)
    return record if record is not None and record.lives and record.ready else None


def up_output(log: LogName) -> Path:
    """Return the file to which a detached `cueline up` prints; its folder is made."""
    return backend_of(log).up_output()


def recovers(log: LogName) -> bool:
    """Whether a `cueline up` goes on with whatever of the log nobody drives."""
    record = find_up(log)
    return record is not None and record.recover
