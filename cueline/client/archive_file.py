"""The archive of one session: a compressed file of JSON Lines, written whole or not at all."""

import gzip
import hashlib
import json
import os
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Self, cast

from cueline.client.export import event_document
from cueline.errors import ConfigError
from cueline.events.codec import blobs_named
from cueline.events.journal import Journal
from cueline.events.session import SessionEvent
from cueline.files import rename_for_good

SUFFIX = ".jsonl.gz"
_CHUNK = 1 << 20


class ArchiveFile:
    """A file that gets its name once it was read back."""

    def __init__(self, path: Path) -> None:
        self._path, self._part = path, path.with_suffix(".part")
        self._written = hashlib.sha256()

    def __enter__(self) -> Self:
        self._file = self._part.open("wb")
        self._packed = gzip.GzipFile(fileobj=self._file, mode="wb", filename="", mtime=0)
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self._part.unlink(missing_ok=True)

    def add(self, line: bytes) -> None:
        """Write one line."""
        self._written.update(line)
        self._packed.write(line)

    def finish(self) -> str:
        """Read the file back, give it its name, and return its sha256.

        Raises:
            ConfigError: it reads back otherwise; there is no file.
        """
        self._packed.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        read = hashlib.sha256()
        with gzip.open(self._part) as packed:
            while chunk := packed.read(_CHUNK):
                read.update(chunk)
        if read.digest() != self._written.digest():
            raise ConfigError(str(self._path), "reads back otherwise than it was written")
        with self._part.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        rename_for_good(self._part, self._path)  # before the log loses what the file has
        return digest


async def archive_lines(journal: Journal, streams: Mapping[str, int]) -> AsyncIterator[bytes]:
    """Yield the events of *streams*, a line of JSON each, after the blobs that each names."""
    blobs: set[str] = set()
    for stream, until in streams.items():
        async for recorded, fact in journal.read(stream, until=until):
            for blob in blobs_named(recorded):
                if blob not in blobs:
                    blobs.add(blob)
                    content = await journal.get_blob(recorded, blob)
                    yield _line({"blob": blob, "base64": b64encode(content).decode()})
            told = cast("SessionEvent", fact) if recorded.payload is not None else None
            yield _line(event_document(recorded, told))


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"
