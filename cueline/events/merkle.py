"""The Merkle tree of RFC 6962, over leaves that are read once and in order.

The root of a tree covers all of its leaves. The tree itself is never stored: its frontier
is enough to add leaves, and has at most one hash for each bit of its size.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from hashlib import sha256


def leaf_hash(content: bytes) -> bytes:
    """Return the hash of a leaf."""
    return sha256(b"\0" + content).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of two neighbouring parts of a tree."""
    return sha256(b"\1" + left + right).digest()


class Frontier:
    """The right edge of a tree: the roots of its whole parts, the largest first."""

    __slots__ = ("hashes", "size")

    def __init__(self, size: int = 0, hashes: Iterable[bytes] = ()) -> None:
        """Continue a tree of *size* leaves, or begin one.

        Raises:
            ValueError: a frontier of this size has another number of hashes.
        """
        self.size = size
        self.hashes = [*hashes]
        if size.bit_count() != len(self.hashes):
            raise ValueError(f"{len(self.hashes)} hashes are no frontier of {size} leaves")

    def add(self, leaf: bytes) -> None:
        """Add the hash of the next leaf."""
        rest, hashes = self.size, self.hashes
        while rest & 1:
            leaf = node_hash(hashes.pop(), leaf)
            rest >>= 1
        hashes.append(leaf)
        self.size += 1

    def root(self) -> bytes:
        """Return the root of the tree."""
        if not self.hashes:
            return sha256().digest()
        return reduce(lambda right, left: node_hash(left, right), reversed(self.hashes))


class AuditPath:
    """The hashes that lead from one leaf to the root, made while all leaves are read once."""

    def __init__(self, index: int, size: int) -> None:
        """Begin the path of the leaf *index*, from 0, in a tree of *size* leaves."""
        self._parts = [(part, Frontier()) for part in _parts_beside(index, size)]

    def add(self, index: int, leaf: bytes) -> None:
        """Add the hash of the leaf *index*; the leaves come in order."""
        for part, frontier in self._parts:
            if index in part:
                frontier.add(leaf)

    def hashes(self) -> list[bytes]:
        """Return the path, from the leaf to the root."""
        return [frontier.root() for _, frontier in self._parts]


def root_of_path(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Return the root to which *path* leads from a leaf; None if its length is wrong."""
    parts = _parts_beside(index, size)
    if not 0 <= index < size or len(parts) != len(path):
        return None
    for part, beside in zip(parts, path, strict=True):
        leaf = node_hash(beside, leaf) if part.stop <= index else node_hash(leaf, beside)
    return leaf


def _parts_beside(index: int, size: int) -> list[range]:
    """Return the parts of a tree beside the way from a leaf to the root, from the leaf on."""
    parts = []
    start, end = 0, size
    while end - start > 1:
        middle = start + (1 << (end - start - 1).bit_length() - 1)
        if index < middle:
            parts.append(range(middle, end))
            end = middle
        else:
            parts.append(range(start, middle))
            start = middle
    return parts[::-1]
