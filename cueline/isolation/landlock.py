"""Landlock and a filter of system calls: the isolation of a machine without namespaces.

A ruleset grants paths, and the kernel refuses all others. It is made before the fork; the child
restricts itself, proves it, and becomes the command.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Final

from cueline.errors import ConfigError
from cueline.events.agent_parts import Isolation
from cueline.isolation.bwrap import (
    ETC_OF_NETWORK,
    Machine,
    covered,
    grants,
    private_environment,
    this_machine,
)
from cueline.isolation.seccomp import program

OLDEST_ABI: Final = 4
"""The first that refuses TCP (Linux 6.7)."""
_DEVICES_ABI: Final = 5
SCOPES_ABI: Final = 6
"""The first that refuses signals to other processes (Linux 6.12)."""
BEGAN: Final = b"began"
"""The status of a command whose restriction has been proved."""
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_ABI, _PATH_BENEATH = 1, 1
_EVERY: Final = 0x7FFF
"""All rights to files of the oldest version that is taken."""
_DEVICE: Final = 0x8000
_OF_FILES: Final = 0x4007
"""To execute, write, read and truncate; all others are rights to folders."""
_READ: Final = 0x000D
_WRITE: Final = _EVERY & ~0x0840
"""All but to make devices."""
_READ_AND_WRITE_FILE: Final = 0x0006
_BIND_AND_CONNECT, _ABSTRACT_SOCKETS_AND_SIGNALS = 3, 3
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_CAPABILITIES: Final = struct.pack("Ii", 0x20080522, 0)
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_FORBIDDEN: Final = "/"
"""Every process can read this folder, and no grant contains it."""
# A program that is started without `restrict` runs no command.
_GUARD: Final = (
    'if { true </; } 2>/dev/null; then echo "nothing restricts it" >&2; exit 1; fi; exec "$@"'
)
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """Return the version of Landlock in this kernel; 0: it is missing or switched off."""
    return max(0, int(_LIBC.syscall(_CREATE_RULESET, None, None, _ASK_ABI)))


def check_grants(
    isolation: Isolation, machine: Machine, workspace: Path | None, hidden: Sequence[Path] = ()
) -> list[str]:
    """Return all paths that commands can change.

    Raises:
        ConfigError: a path cannot be granted, or only a mount could grant or hide it.
    """
    if not isinstance(isolation.network, bool):
        why = "only bubblewrap gives commands some hosts alone; install it, or change `network`"
        raise ConfigError("isolation", why)
    if inside := covered(isolation, machine, workspace, hidden):
        why = (
            f"{inside[0]} is in a granted folder, and Landlock cannot keep commands from it there: "
            "put it elsewhere (the log by `CUELINE_LOG`), or install bubblewrap"
        )
        raise ConfigError("isolation", why)
    return grants(isolation, machine, workspace)[1]


@dataclass(frozen=True, slots=True)
class Restriction:
    """A command as a program has to start it, and what restricts its process."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    """The folder in which the command begins."""
    ruleset: int
    filters: ctypes.Array[ctypes.c_char]

    def restrict(self, status: int | None = None) -> None:
        """Restrict this process, which is to become the command; on a failure, exit with 1.

        `BEGAN` is written to *status* when the restriction has been proved.
        """
        size, address = len(self.filters) // 8, ctypes.addressof(self.filters)
        try:
            os.chdir(self.folder)
            _call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
            # Root keeps no capability, and with the option above gets none back.
            _call("capset", _CAPABILITIES, bytes(24))
            _call("syscall", _RESTRICT_SELF, self.ruleset, 0)
            _call("prctl", _SECCOMP, _FILTER, struct.pack("HP", size, address), 0, 0)
            _prove()
            if status is not None:
                os.write(status, BEGAN)
        except OSError as error:
            os.write(2, f"{error}\n".encode())
            os._exit(1)


def _prove() -> None:
    if _LIBC.socket(1, 1, 0) >= 0:
        raise OSError("the filter of system calls does not hold")
    try:
        os.open(_FORBIDDEN, os.O_RDONLY)
    except PermissionError:
        return
    raise OSError(f"Landlock does not hold: {_FORBIDDEN} can be read")


@contextmanager
def restricted(
    command: Sequence[str],
    isolation: Isolation,
    environment: Mapping[str, str],
    workspace: Path | None,
    hidden: Sequence[Path] = (),
) -> Iterator[Restriction]:
    """Yield how to start *command* below Landlock; its private folder is there for the block.

    A right to a folder holds for all that is in it, and no rule takes it back.

    Raises:
        ConfigError: see `check_grants`.
        OSError: the kernel refuses the ruleset, or the restriction could not be proved.
    """
    machine = this_machine(environment)
    writable = check_grants(isolation, machine, workspace, hidden)
    open_to_all = isolation.network is True
    network = [ETC_OF_NETWORK] if open_to_all else []
    os.close(os.open(_FORBIDDEN, os.O_RDONLY))  # or its refusal would prove nothing
    for name in ("prctl", "capset", "socket"):
        getattr(_LIBC, name)  # the child of a fork must not wait for the lock of the loader
    filters = program(namespaces=False, network=open_to_all)
    private = mkdtemp(prefix="cueline-")
    try:
        with open(_ruleset(network=open_to_all), "rb", buffering=0) as ruleset:
            _grant(ruleset.fileno(), [*machine.folders, *isolation.read, "/proc", *network], _READ)
            _grant(ruleset.fileno(), _DEVICES, _READ_AND_WRITE_FILE)
            _grant(ruleset.fileno(), [*writable, private], _READ | _WRITE)
            yield Restriction(
                ["/bin/sh", "-c", _GUARD, "sh", *command],
                # Git warns of a file that it finds and cannot read.
                {"GIT_CONFIG_NOSYSTEM": "1"}
                | private_environment(environment, machine)
                | {"HOME": private, "TMPDIR": private},
                private if workspace is None else os.path.realpath(workspace),
                ruleset.fileno(),
                ctypes.create_string_buffer(filters, len(filters)),
            )
    finally:
        rmtree(private, ignore_errors=True)


def _ruleset(*, network: bool) -> int:
    version = abi()
    rights = _EVERY | (_DEVICE if version >= _DEVICES_ABI else 0)
    ports = 0 if network else _BIND_AND_CONNECT
    wanted = struct.pack("QQQ", rights, ports, _ABSTRACT_SOCKETS_AND_SIGNALS)
    return _call("syscall", _CREATE_RULESET, wanted, 24 if version >= SCOPES_ABI else 16, 0)


def _grant(ruleset: int, paths: Iterable[str], rights: int) -> None:
    for path in filter(os.path.exists, paths):
        found = os.open(path, os.O_PATH)
        folder = stat.S_ISDIR(os.fstat(found).st_mode)
        rule = struct.pack("=Qi", rights if folder else rights & _OF_FILES, found)
        try:
            _call("syscall", _ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
        finally:
            os.close(found)


def _call(name: str, *arguments: int | bytes) -> int:
    """Call a function of the C library with numbers that are as wide as pointers."""
    wide = [ctypes.c_void_p(each) if isinstance(each, int) else each for each in arguments]
    if (result := int(getattr(_LIBC, name)(*wide))) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)
    return result
