"""The filter of system calls for isolated processes, as a program of classic BPF.

It refuses what a command never needs and what reaches around the namespaces. All other
system calls are allowed: the namespaces are the wall, and the filter closes the ways under it.
"""

import errno
import platform
import struct
from typing import Final, NamedTuple

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
"""The offsets in `struct seccomp_data`; both machines are little-endian."""
_X32: Final = 0x40000000
"""The first number of the second set of system calls on x86_64."""
_EVERY: Final = -1

_NEW_NAMESPACES: Final = 0x7E020080
"""`CLONE_NEWUSER`, and the flags of all other namespaces."""
_SET_UID: Final = 0o4000
_VSOCK: Final = 40
"""The sockets between a virtual machine and its host, which no namespace separates."""
_UNIX: Final = 1


class _Refusal(NamedTuple):
    """A refused system call, with its number on each machine; None: the machine lacks it."""

    x86_64: int | None
    aarch64: int | None
    code: int = errno.EPERM
    argument: int = _EVERY
    """The position of the argument that decides."""
    bits: int = 0
    """Any of these bits in the argument refuses the call."""
    value: int | None = None
    """The value of the argument that refuses the call, in place of bits."""


_REFUSED: Final = {
    "ptrace": _Refusal(101, 117),
    "process_vm_readv": _Refusal(310, 270),
    "process_vm_writev": _Refusal(311, 271),
    "kcmp": _Refusal(312, 272),
    "pidfd_getfd": _Refusal(438, 438),
    "add_key": _Refusal(248, 217),
    "request_key": _Refusal(249, 218),
    "keyctl": _Refusal(250, 219),
    "bpf": _Refusal(321, 280),
    "perf_event_open": _Refusal(298, 241),
    "userfaultfd": _Refusal(323, 282),
    "io_uring_setup": _Refusal(425, 425),
    "io_uring_enter": _Refusal(426, 426),
    "io_uring_register": _Refusal(427, 427),
    "mount": _Refusal(165, 40),
    "umount2": _Refusal(166, 39),
    "pivot_root": _Refusal(155, 41),
    "open_tree": _Refusal(428, 428),
    "move_mount": _Refusal(429, 429),
    "fsopen": _Refusal(430, 430),
    "fsconfig": _Refusal(431, 431),
    "fsmount": _Refusal(432, 432),
    "fspick": _Refusal(433, 433),
    "mount_setattr": _Refusal(442, 442),
    "setns": _Refusal(308, 268),
    "unshare": _Refusal(272, 97, argument=0, bits=_NEW_NAMESPACES),
    "clone": _Refusal(56, 220, argument=0, bits=_NEW_NAMESPACES),
    # The arguments of these two are in memory, where no filter sees them. Programs that get this
    # error use the older calls.
    "clone3": _Refusal(435, 435, errno.ENOSYS),
    "openat2": _Refusal(437, 437, errno.ENOSYS),
    "open_by_handle_at": _Refusal(304, 265),
    "kexec_load": _Refusal(246, 104),
    "kexec_file_load": _Refusal(320, 294),
    "init_module": _Refusal(175, 105),
    "finit_module": _Refusal(313, 273),
    # A program of root with this bit in the workspace would be a way to root for other users.
    "chmod": _Refusal(90, None, argument=1, bits=_SET_UID),
    "fchmod": _Refusal(91, 52, argument=1, bits=_SET_UID),
    "fchmodat": _Refusal(268, 53, argument=2, bits=_SET_UID),
    "fchmodat2": _Refusal(452, 452, argument=2, bits=_SET_UID),
    "open": _Refusal(2, None, argument=2, bits=_SET_UID),
    "openat": _Refusal(257, 56, argument=3, bits=_SET_UID),
    "creat": _Refusal(85, None, argument=1, bits=_SET_UID),
    "mknod": _Refusal(133, None, argument=1, bits=_SET_UID),
    "mknodat": _Refusal(259, 33, argument=2, bits=_SET_UID),
    "socket": _Refusal(41, 198, errno.EAFNOSUPPORT, argument=0, value=_VSOCK),
}
_SYSTEM_V: Final = (
    *((29, 194), (30, 196), (31, 195), (64, 190), (65, 193), (66, 191), (220, 192)),
    *((68, 186), (69, 189), (70, 188), (71, 187), (240, 180), (241, 181)),
)
"""The calls for shared memory, semaphores and queues of messages, also those of POSIX."""
_SHARED: Final = (
    *(_Refusal(*numbers) for numbers in _SYSTEM_V),
    # `socketpair`: a datagram socket of a pair can send to any path. The bit is one of SOCK_DGRAM
    # and SOCK_RAW only.
    _Refusal(53, 199, argument=1, bits=2),
    # `prlimit64` of other processes; 0 is the calling one.
    _Refusal(302, 261, argument=0, bits=0xFFFFFFFF),
)
"""What reaches around Landlock where there are no namespaces."""
_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def program(
    machine: str = platform.machine(), *, namespaces: bool = True, network: bool = False
) -> bytes:
    """Return the filter for *machine*, which is `x86_64` or `aarch64`; empty for any other.

    Without *namespaces* it also refuses UNIX sockets, and all other sockets without *network*.
    """
    if machine not in _ARCHITECTURES:
        return b""
    code = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_EQUAL, _ARCHITECTURES[machine], 1, 0),
        # For example a program for 32 bits, whose system calls have other numbers.
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        code += [_step(_AT_LEAST, _X32, 0, 1), _step(_RETURN, _ERROR | errno.ENOSYS)]
    refused = [*_REFUSED.values()]
    if not namespaces:
        every = _REFUSED["socket"]._replace(code=errno.EPERM, argument=_EVERY)
        refused += [*_SHARED, every._replace(argument=0, value=_UNIX) if network else every]
    for each in refused:
        number = each.x86_64 if machine == "x86_64" else each.aarch64
        if number is not None:
            code += _refuse(number, each)
    return b"".join([*code, _step(_RETURN, _ALLOW)])


def _refuse(number: int, call: _Refusal) -> list[bytes]:
    error = _step(_RETURN, _ERROR | call.code)
    if call.argument == _EVERY:
        return [_step(_EQUAL, number, 0, 1), error]
    test = (_ANY_BIT, call.bits) if call.value is None else (_EQUAL, call.value)
    # The low half of the argument: the kernel ignores the high half of flags, modes and domains.
    where = _ARGUMENTS + 8 * call.argument
    return [
        _step(_EQUAL, number, 0, 4),
        _step(_LOAD, where),
        _step(*test, 0, 1),
        error,
        _step(_LOAD, _NUMBER),
    ]


def _step(operation: int, operand: int, if_so: int = 0, if_not: int = 0) -> bytes:
    """Return one instruction; the last two values are the instructions to skip."""
    return struct.pack("<HBBI", operation, if_so, if_not, operand)
