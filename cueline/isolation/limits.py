"""The limits of an isolated command, set in its process before it begins."""

import ctypes
import os
import re
import resource
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:  # the guardian imports this file, and has to start fast
    from cueline.events.agent_parts import IsolationLimits

_MIB: Final = 1 << 20
_NEW_PIDS: Final = 0x20000000
_PID_MAX: Final = "/proc/sys/kernel/pid_max"
_OWN_PID_MAX: Final = (6, 14)
"""The first Linux in which a namespace has a maximum of its own; before, it is the machine's."""
_LEAST_PID_MAX: Final = 301


def counts_processes() -> bool:
    """Whether the number of processes is limited: for root, only by a recent Linux."""
    return os.geteuid() != 0 or _release() >= _OWN_PID_MAX


def _running() -> int:
    """Return the number of all processes and threads on this machine."""
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])


def _release() -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", os.uname().release)[:2])


class ProcessLimits:
    """The limits of one command, computed before the fork: its child does as little as possible."""

    def __init__(self, values: Sequence[tuple[int, int]], pid_max: str = "") -> None:
        """Create them from what `of` has computed, perhaps in another process."""
        self.values, self.pid_max = values, pid_max
        self._libc = ctypes.CDLL(None)

    @classmethod
    def of(cls, limits: "IsolationLimits", *, namespaces: bool = True) -> Self:
        """Return *limits* as this process can set them.

        Without *namespaces* all processes of the user are counted, and those of root never.
        """
        wanted = {
            resource.RLIMIT_CORE: 0,
            # What a process can write, also in private maps of files. The size of the address space
            # says little: some programs reserve terabytes.
            resource.RLIMIT_DATA: limits.memory_mb * _MIB,
            resource.RLIMIT_FSIZE: limits.file_mb * _MIB,
            resource.RLIMIT_NOFILE: limits.open_files,
            resource.RLIMIT_CPU: int(limits.cpu_seconds),
        }
        if not namespaces:
            # The user may have processes that this one cannot see, such as in other containers.
            wanted[resource.RLIMIT_NPROC] = limits.processes + _running()
        counts = namespaces and os.geteuid() == 0 and counts_processes()
        return cls(
            [(number, _lower(number, most)) for number, most in wanted.items()],
            str(max(limits.processes, _LEAST_PID_MAX)) if counts else "",
        )

    def before_fork(self) -> None:
        """Let the next child begin a namespace of processes, if this process is root.

        The limit that other users have (`RLIMIT_NPROC`) holds for root in no user namespace.
        """
        if self.pid_max:
            self._libc.unshare(_NEW_PIDS)

    def before_exec(self) -> None:
        """Set the limits of this process and of all that it starts."""
        if self.pid_max and os.getpid() == 1:
            # It may be read-only in a container.
            with suppress(OSError):
                target = os.open(_PID_MAX, os.O_WRONLY)
                os.write(target, self.pid_max.encode())
                os.close(target)
        for number, value in self.values:
            resource.setrlimit(number, (value, value))


def _lower(number: int, most: int) -> int:
    hard = resource.getrlimit(number)[1]
    return most if hard == resource.RLIM_INFINITY else min(most, hard)
