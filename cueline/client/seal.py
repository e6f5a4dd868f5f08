"""Proves that an event is in a sealed log, and reads the seals outside of it."""

from dataclasses import dataclass
from pathlib import Path

from cueline.errors import ConfigError, CorruptEventError, RejectedError
from cueline.events.merkle import AuditPath, leaf_hash, root_of_path
from cueline.events.seal import SEAL_STREAM, leaf_of
from cueline.events.signed_note import Checkpoint, read_note
from cueline.runtime.open_log import OpenLog
from cueline.runtime.seal import SUFFIX, last_seal, origin_of


@dataclass(frozen=True, slots=True, kw_only=True)
class InclusionProof:
    """The proof that an event is in a sealed log; see RFC 6962, section 2.1.1."""

    leaf: str
    """The leaf: the event's position, stream, version and hash, in lines."""
    index: int
    """The index of the leaf, from 0."""
    path: tuple[str, ...]
    """The hashes from the leaf to the root, in hex."""
    note: str
    """The signed checkpoint."""
    key: str
    """The public key of the signature."""


def notes_in(folder: Path | None, log_id: str) -> list[tuple[Path, Checkpoint]]:
    """Return the checkpoints of the notes in *folder*, with their files.

    Raises:
        ConfigError: a file cannot be read, or is no seal of this log.
    """
    found = []
    for path in sorted(folder.glob(f"*{SUFFIX}")) if folder else ():
        try:
            checkpoint = read_note(path.read_text(encoding="utf-8")).checkpoint
        except FileNotFoundError:
            continue  # the sealer of `up` has replaced it
        except (OSError, ValueError) as error:
            raise ConfigError(str(path), f"cannot be read as a seal: {error}") from None
        if checkpoint.origin != origin_of(log_id):
            raise ConfigError(str(path), f"is a seal of another log, {checkpoint.origin}")
        found.append((path, checkpoint))
    return found


async def prove(log: OpenLog, position: int) -> InclusionProof:
    """Return the proof that the event at *position* is in the log, by the newest seal.

    Raises:
        RejectedError: no seal covers the position.
        CorruptEventError: the log is not the one that was sealed.
        ForbiddenError: it needs the whole log.
    """
    log.check_whole()
    last = await last_seal(log)
    size = last.seal.size if last else 0
    if last is None or not 1 <= position <= size:
        sealed = f"the events up to position {size} are sealed" if size else "nothing is sealed"
        raise RejectedError(str(position), f"{sealed}; `cueline audit seal` seals what is new")
    path, leaf = AuditPath(position - 1, size), b""
    async for event in log.store.read_all(limit=size):
        content = leaf_of(event)
        path.add(event.position - 1, leaf_hash(content))
        if event.position == position:
            leaf = content
    hashes = path.hashes()
    root = root_of_path(leaf_hash(leaf), position - 1, size, hashes)
    if root != read_note(last.seal.note).checkpoint.root:
        where = SEAL_STREAM, last.version, last.position
        raise CorruptEventError(*where, "the log is not the one it sealed; see `audit verify`")
    return InclusionProof(
        leaf=leaf.decode(),
        index=position - 1,
        path=tuple(each.hex() for each in hashes),
        note=last.seal.note,
        key=last.seal.key,
    )
