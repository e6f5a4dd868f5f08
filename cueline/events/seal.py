"""The facts of the seals of one log: stream `seal-default/main`.

A seal signs the root of a Merkle tree over the first events of the log: one leaf for each
position, so a change of any of them changes the root. It is a signed note of C2SP, a
checkpoint of a transparency log (<https://c2sp.org/tlog-checkpoint>). The stream has no
owner: every append is a compare-and-set on its version. The event of a seal is covered by the
next one.
"""

from typing import Final, Literal

from cueline.events.fact import Fact
from cueline.events.store import RecordedEvent
from cueline.events.stream import stream_name

SEAL_STREAM: Final = stream_name("seal", "main")


class LogSealed(Fact):
    """The first events of the log were sealed."""

    type: Literal["LogSealed"] = "LogSealed"
    size: int
    """The number of sealed events, which is the position of the last of them."""
    frontier: tuple[str, ...]
    """The right edge of the tree in hex: the next seal continues from it."""
    note: str
    """The signed note: the log, the size, the root, and the signature."""
    key: str
    """The public key of the signature, as a verifier key of signed notes."""


def leaf_of(event: RecordedEvent) -> bytes:
    """Return the leaf of *event*: its place in the log and in its stream, and its hash.

    The hash covers the earlier events of the stream. It stays when the event is redacted.
    """
    place = f"{event.position}\n{event.stream}\n{event.version}"
    return f"cueline event 1\n{place}\n{event.hash.hex()}\n".encode()
