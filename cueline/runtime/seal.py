"""Seals a log (see `events.seal`).

A seal reads only the events after the last one: the event of a seal has the frontier of the
tree. Each note is also written outside of the log, where a change of the log does not reach it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast
from uuid import uuid4

from cueline.config.environment import HERE
from cueline.errors import ConfigError, CorruptEventError, RejectedError, WrongExpectedVersionError
from cueline.events.codec import not_redacted
from cueline.events.journal import FactWrite
from cueline.events.merkle import Frontier, leaf_hash
from cueline.events.seal import SEAL_STREAM, LogSealed, leaf_of
from cueline.events.signed_note import Checkpoint, read_note
from cueline.events.store import NO_STREAM
from cueline.files import write_whole
from cueline.runtime.open_log import OpenLog

if TYPE_CHECKING:
    from cueline.providers.seal_key import SealKey

SUFFIX: Final = ".txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class SealReceipt:
    """The newest seal of a log."""

    size: int
    """The number of sealed events."""
    new: int
    """The number of events that were sealed now; 0: there were none since the last seal."""
    note: str
    key: str
    """The public key."""
    file: str
    """The copy of the note outside of the log."""


def origin_of(log_id: str) -> str:
    """Return the name of a log in its seals."""
    return f"cueline/{log_id}"


def notes_folder(log_id: str, environ: Mapping[str, str] = HERE) -> Path | None:
    """Return the folder with the notes of a log; None if the environment names none."""
    home = environ.get("HOME")
    base = environ.get("XDG_STATE_HOME") or (home and f"{home}/.local/state")
    return Path(base) / "cueline" / "seals" / log_id if base else None


async def seal_log(
    log: OpenLog, key: "SealKey", folder: Path | None = None, *, by: str | None = None
) -> SealReceipt:
    """Seal the events since the last seal, and write the note into *folder* too.

    Without *folder*, it is the one of `notes_folder`. *by* is the recorded actor, else the user.

    Raises:
        CorruptEventError: an event or the last seal is damaged; nothing was sealed.
        RejectedError: the log is empty.
        ConfigError: *folder* cannot be written, or has another note over as many events.
        ForbiddenError: it needs the whole log, and the scope `admin`.
    """
    log.check_whole()
    log.check_may("admin")
    folder = folder or notes_folder(log.id)
    if folder is None:
        raise ConfigError("HOME", "is not set; name a folder for the seals with `--out`")
    while True:
        last = await last_seal(log)
        before = last.seal.size if last else 0
        tree = await _grown(log, last)
        if last and tree.size <= last.covered:
            return _written(folder, last.seal, 0)
        if not tree.size:
            raise RejectedError(str(log.url), "it has no events to seal")
        seal = _sealed(log, tree, key)
        version = last.version if last else NO_STREAM
        write = FactWrite(SEAL_STREAM, [[seal]], version, actor=by or f"user:{log.user}")
        try:
            await log.journal().append([write], key=uuid4().hex)
        except WrongExpectedVersionError:
            continue  # another process has sealed the log
        return _written(folder, seal, tree.size - before)


def check_seal(seal: LogSealed, log_id: str) -> Checkpoint:
    """Return the checkpoint of *seal*, if its parts fit together and its key has signed it.

    Raises:
        ValueError: they do not.
    """
    from cueline.providers.seal_key import is_signed_by  # noqa: PLC0415 - 50 ms

    signed = read_note(seal.note)
    root = Frontier(seal.size, map(bytes.fromhex, seal.frontier)).root()
    if signed.checkpoint != (origin_of(log_id), seal.size, root):
        raise ValueError("the seal is over another log, size or root than its note")
    if not is_signed_by(signed, seal.key):
        raise ValueError("the signature of the seal is not by its key")
    return signed.checkpoint


class LastSeal(NamedTuple):
    """A seal, and the place of its event."""

    version: int
    position: int
    seal: LogSealed

    @property
    def covered(self) -> int:
        """The position after which events are new: the seal's own, unless others came before it."""
        return self.seal.size + 1


async def last_seal(log: OpenLog) -> LastSeal | None:
    """Return the newest seal of *log*, if it has one.

    Raises:
        CorruptEventError: the seal is damaged.
    """
    head = await log.store.head(SEAL_STREAM)
    last = None
    if head.version:
        async for recorded, fact in log.journal().read(SEAL_STREAM, head.version - 1):
            seal = cast("LogSealed", not_redacted(recorded, fact))
            try:
                check_seal(seal, log.id)
            except ValueError as error:
                where = recorded.stream, recorded.version, recorded.position
                raise CorruptEventError(*where, str(error)) from None
            last = LastSeal(recorded.version, recorded.position, seal)
    return last


async def _grown(log: OpenLog, last: LastSeal | None) -> Frontier:
    """Return the tree of the last seal with the events since then."""
    tree = Frontier(last.seal.size, map(bytes.fromhex, last.seal.frontier)) if last else Frontier()
    async for event in log.store.read_all(tree.size):
        tree.add(leaf_hash(leaf_of(event)))
    return tree


def _sealed(log: OpenLog, tree: Frontier, key: "SealKey") -> LogSealed:
    origin = origin_of(log.id)
    signed = key.sign(Checkpoint(origin, tree.size, tree.root()))
    return LogSealed(
        size=tree.size,
        frontier=tuple(each.hex() for each in tree.hashes),
        note=signed.note,
        key=key.verifier_key(origin),
    )


def _written(folder: Path, seal: LogSealed, new: int) -> SealReceipt:
    """Write the note of *seal* outside of the log, unless it is there."""
    file = folder / f"{seal.size}{SUFFIX}"
    if not file.exists():
        write_whole(file, seal.note)
    try:
        there = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(str(file), f"the seal cannot be read there: {error}") from error
    if there != seal.note:
        why = "is another seal over as many events, so the log was changed"
        raise ConfigError(str(file), f"{why}; run `cueline audit verify`")
    return SealReceipt(size=seal.size, new=new, note=seal.note, key=seal.key, file=str(file))
