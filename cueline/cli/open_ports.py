"""Which ports a process and those below it listen on, as Linux tells it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from pathlib import Path

_PROC = Path("/proc")
_LISTENS = "0A"


def open_ports(pid: int) -> Counter[str]:
    """Return how many ports are listened on by address; none where there is no /proc."""
    sockets = {each for process in _below(pid) for each in _open_in(process)}
    return Counter(str(address) for address, inode in _listeners() if inode in sockets)


def _below(pid: int) -> set[int]:
    parents = dict(_parents())
    found, size = {pid}, 0
    while size < len(found):
        size = len(found)
        found |= {child for child, parent in parents.items() if parent in found}
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for file in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            # The name of the program stands in parentheses, and may hold anything.
            yield int(file.parent.name), int(file.read_text().rpartition(")")[2].split()[1])


def _open_in(pid: int) -> Iterator[str]:
    with suppress(OSError):  # it has ended, or is another user's
        for file in (_PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                yield str(file.readlink()).removeprefix("socket:[").removesuffix("]")


def _listeners() -> Iterator[tuple[object, str]]:
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == _LISTENS:
                    yield _address(words[1].partition(":")[0]), words[9]


def _address(written: str) -> object:
    """Return an address that is *written* in words of four bytes, each the other way round."""
    told = bytes.fromhex(written)
    address = ip_address(b"".join(told[n : n + 4][::-1] for n in range(0, len(told), 4)))
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address
