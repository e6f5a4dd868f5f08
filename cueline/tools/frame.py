"""The protocol of a runner and its worker: a JSON head and raw bytes, over pipes."""

import json
import os
import struct
from collections.abc import Mapping
from typing import Any

SIZES = struct.Struct(">IQ")
"""The sizes of head and body, at the start."""
CHUNK = 1 << 20

Head = dict[str, Any]


def pack(head: Mapping[str, object], body: bytes = b"") -> list[bytes]:
    """Return a frame in pieces, to be sent in order."""
    encoded = json.dumps(head).encode()
    start = SIZES.pack(len(encoded), len(body)) + encoded
    return [start, body] if body else [start]


def send(target: int, head: Mapping[str, object], body: bytes = b"") -> None:
    """Write a whole frame."""
    for part in pack(head, body):
        view = memoryview(part)
        while view:
            view = view[os.write(target, view) :]


def receive(source: int) -> Head | None:
    """Read a frame without a body and return its head; None at the end of the stream."""
    sizes = read(source, SIZES.size)
    if sizes is None:
        return None
    head_size, _ = SIZES.unpack(sizes)
    encoded = read(source, head_size)
    if encoded is None:
        return None
    head: Head = json.loads(encoded)
    return head


def read(source: int, size: int) -> bytes | None:
    """Read *size* bytes; None if the stream ends before."""
    buffer = bytearray()
    while len(buffer) < size:
        chunk = os.read(source, min(size - len(buffer), CHUNK))
        if not chunk:
            return None
        buffer += chunk
    return bytes(buffer)
