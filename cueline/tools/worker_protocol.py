"""The frames between a runner and its worker, and the worker's environment variables."""

import json
import os
import re
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from cueline.actors.tool_port import FileImage

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
    """Read *size* bytes; None if the stream ends earlier."""
    buffer = bytearray()
    while len(buffer) < size:
        chunk = os.read(source, min(size - len(buffer), CHUNK))
        if not chunk:
            return None
        buffer += chunk
    return bytes(buffer)


def packed_images(images: Sequence[FileImage]) -> tuple[list[list[object]], bytes]:
    """Return *images* for the head of a frame, and their bytes for the end of its body."""
    rows: list[list[object]] = [
        [each.path, each.before_digest, each.after_digest, each.mode, _size(each.before)]
        for each in images
    ]
    return rows, b"".join(each.before or b"" for each in images)


def _size(before: bytes | None) -> int | None:
    return None if before is None else len(before)


def unpacked_images(rows: Iterable[Sequence[Any]], befores: bytes) -> tuple[FileImage, ...]:
    """Return the images of `packed_images`."""
    images = []
    for path, before, after, mode, size in rows:
        kept = None if size is None else befores[:size]
        images.append(FileImage(path, before, after, mode, kept))
        befores = befores[size or 0 :]
    return tuple(images)


OURS = re.compile(r"RAY_.*|CUELINE_.*|PYTHONBREAKPOINT|OMP_NUM_THREADS", re.IGNORECASE)
"""Variables that give access to the cluster, and variables that Ray sets for its workers."""
CREDENTIAL = re.compile(
    r"(?!(OLD)?PWD$).*(PASS|PWD|TOKEN|SECRET|KEY|CREDENTIAL).*"
    r"|(.*_)?(PAT|DSN)|(.*_)?(DATABASE|DB|POSTGRES|MYSQL|MONGO|MONGODB|REDIS|AMQP)_UR[IL]",
    re.IGNORECASE,
)
"""Matches names of variables that hold keys, or passwords in addresses."""


def scrub_environment(
    environment: Mapping[str, str], secrets: Collection[str] = (), passed: Collection[str] = ()
) -> dict[str, str]:
    """Return *environment* without *secrets* and credentials, except those *passed* on."""
    return {
        name: value
        for name, value in environment.items()
        if name in passed or not (name in secrets or _is_hidden(name))
    }


def _is_hidden(name: str) -> bool:
    return OURS.fullmatch(name) is not None or CREDENTIAL.fullmatch(name) is not None
