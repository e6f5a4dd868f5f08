"""Where a running `cueline up` of a log is, by the note beside the log."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from cueline.actors.presence import ended, presence_of
from cueline.events.store import Presence


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
    def read(cls, log: Path) -> Self | None:
        """Return the note beside *log*, if there is one that can be read."""
        try:
            told: Mapping[str, Any] = json.loads(record_path(log).read_text())
            return cls(**{**told, "keeper": Presence(**told["keeper"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self, log: Path) -> None:
        """Leave the note beside *log*, whole or not at all."""
        path = record_path(log)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        draft.touch(0o600)
        draft.write_text(json.dumps(asdict(self), indent=2) + "\n")
        draft.replace(path)

    def withdraw(self, log: Path) -> None:
        """Take the note from beside *log*, unless it is somebody else's by now."""
        there = self.read(log)
        if there is not None and there.keeper == self.keeper:
            record_path(log).unlink(missing_ok=True)

    @property
    def lives(self) -> bool:
        """Whether the process is there, by the word of this machine."""
        here = presence_of("cli")
        ours, theirs = ((each.boot_id, each.pid_namespace) for each in (here, self.keeper))
        return ours == theirs and ended(self.keeper) is None


def record_path(log: Path) -> Path:
    """Return where the note of *log* is, by whatever link the log is reached."""
    return Path(f"{os.path.realpath(log)}-up.json")


def find_up(log_path: Path) -> UpRecord | None:
    """Return the `cueline up` that drives the log's sessions, if its process lives here."""
    record = UpRecord.read(log_path)
    return record if record is not None and record.lives and record.ready else None


def recovers(log_path: Path) -> bool:
    """Whether a `cueline up` goes on with whatever of the log nobody drives."""
    record = find_up(log_path)
    return record is not None and record.recover
