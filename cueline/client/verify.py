"""Checks the whole log: positions, the chain and head of every stream, blobs, keys and seals."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cueline.client.seal import notes_in
from cueline.client.seal_check import SealCheck
from cueline.errors import ConfigError, CorruptEventError, CuelineError
from cueline.events.chain import Chain
from cueline.events.checkpoint import DELETIONS
from cueline.events.codec import blobs_named
from cueline.events.retention import CATEGORY as RETENTION
from cueline.events.retention import SessionEmptied
from cueline.events.session import MessageReceived, MessageRefused
from cueline.events.signed_note import read_verifier_key
from cueline.events.store import RecordedEvent
from cueline.events.stream import category_of, shown, sibling
from cueline.runtime.open_log import OpenLog
from cueline.runtime.seal import notes_folder


@dataclass(frozen=True, slots=True)
class BadRow:
    """The first damaged row of a stream."""

    stream: str
    version: int
    position: int
    reason: str
    session: str | None = None
    """The session to which the row belongs, if it belongs to one."""

    @property
    def place(self) -> str:
        """The place of the row; a missing row has only a position."""
        if not self.version:
            return f"position {self.position}"
        return f"{self.stream}@{self.version} (position {self.position})"


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a check of a log: the checked numbers, and the damage."""

    events: int
    streams: int
    bad: tuple[BadRow, ...]
    seals: int = 0
    """The number of seals in the log."""
    sealed: int = 0
    """The number of events that a seal covers, and are those that were sealed."""
    keys: tuple[str, ...] = ()
    """The public keys of the seals."""

    @property
    def first(self) -> BadRow | None:
        """The bad row at the first position."""
        return min(self.bad, key=lambda row: row.position, default=None)


async def verify_log(
    log: OpenLog, seals: Path | None = None, signed_by: str | None = None
) -> Verified:
    """Check the whole log.

    Args:
        log: the log.
        seals: the folder with the notes outside of the log; by default that of `notes_folder`.
        signed_by: the public key that has to have signed each seal.

    Raises:
        LogUnavailableError: the log cannot be read.
        ConfigError: a note outside of the log cannot be read, or is of another log; or *seals*
        has none; or *signed_by* is no public key of seals.
    """
    log.check_whole()
    if signed_by is not None:
        try:
            read_verifier_key(signed_by)
        except ValueError:
            why = "it is no public key of seals; `audit seal` prints it after `signed by`"
            raise ConfigError(signed_by, why) from None
    if seals is not None and not notes_in(seals, log.id):
        raise ConfigError(
            str(seals), "there is no seal in it; name the folder of `audit seal --out`"
        )
    checked = AuditVerification(log, SealCheck(log, seals or notes_folder(log.id), signed_by))
    await checked.run()
    found = checked.seals
    return Verified(
        checked.events,
        checked.streams,
        tuple(checked.bad),
        len(found.sizes),
        found.sealed,
        tuple(sorted(found.keys)),
    )


class AuditVerification:
    """One pass over the log; the rest of a damaged stream is skipped."""

    def __init__(self, log: OpenLog, seals: SealCheck | None = None) -> None:
        self.seals = seals or SealCheck(log, None, None)
        self.events = 0
        self.bad: list[BadRow] = []
        self._store = log.store
        self._journal = log.journal()
        self._chains: dict[str, Chain] = {}
        self._broken: set[str] = set()
        self._emptied: set[str] = set()
        self._removed: dict[str, int] = {}
        """The streams of sessions whose content was removed, with the last emptied version."""
        self._deletions: dict[str, int] = {}
        self._after = 0
        """The checked position."""

    @property
    def streams(self) -> int:
        """The number of streams."""
        return len(self._chains) + len(self._broken - self._chains.keys())

    async def run(self) -> None:
        """Check every event and seal, then the other tables, so that no stream ends early."""
        await self.seals.read_seals()
        async for _, fact in self._journal.read_all(categories=[RETENTION]):
            if isinstance(fact, SessionEmptied):
                self._removed |= fact.streams
        while (hole := await self._read()) is not None:
            # Go on behind it: one bad row must not hide the others.
            self._add(hole, hole.reason)
            self._after = hole.position
        for fault in await self._store.faults():
            if fault.stream not in self._broken:
                self._broken.add(fault.stream)
                self._add(fault, fault.reason)
        self.seals.finish(self._after)
        for fault in self.seals.bad:
            self._add(fault, fault.reason)

    async def _read(self) -> CorruptEventError | None:
        """Check the next events; return the error of an event that the store cannot read."""
        try:
            async for event in self._store.read_all(self._after):
                self._after = event.position
                self.events += 1
                self.seals.add(event)
                if event.stream not in self._broken:
                    await self._check(event)
        except CorruptEventError as error:
            if error.position <= self._after:
                raise
            return error
        return None

    async def _check(self, event: RecordedEvent) -> None:
        try:
            chain = self._chains.get(event.stream)
            if chain is None:
                chain = self._chains[event.stream] = await self._beginning(event)
            chain.check(event)
            if event.payload is None and not await self._was_read(event):
                self._note_emptied(event)
            for blob in blobs_named(event):
                await self._journal.get_blob(event, blob)
        except CorruptEventError as error:
            self._broken.add(event.stream)
            self._add(event, error.reason)

    async def _beginning(self, first: RecordedEvent) -> Chain:
        """Return the chain before *first*: for a fork, that of its parent."""
        async for before in self._store.read(
            first.stream, max(first.version - 2, 0), first.version - 1
        ):
            return Chain(before.version, before.hash)
        return Chain()

    async def _was_read(self, event: RecordedEvent) -> bool:
        """Whether *event* is a message that its session has recorded, which may be emptied.

        A host empties a message that held a secret (I11), but not a start request. Events before
        the deletion of their checkpoint or thread, and those of a session whose content a person
        removed, may also be emptied.
        """
        if event.version <= self._removed.get(event.stream, 0):
            return True
        if category_of(event.stream) == "checkpoint":
            return event.version < await self._deletion(event.stream)
        if category_of(event.stream) != "inbox" or event.version == 1:
            return False
        with suppress(CuelineError):  # the session's own check reports it
            async for _, fact in self._journal.read(sibling(event.stream, "session")):
                match fact:
                    case MessageReceived(inbox_version=read) | MessageRefused(inbox_version=read):
                        if read == event.version:
                            return True
        return False

    async def _deletion(self, thread: str) -> int:
        """Return the version of the last deletion of *thread*; 0 if it was never deleted."""
        if thread not in self._deletions:
            self._deletions[thread] = 0
            async for event in self._store.read_back(thread):
                if event.type in DELETIONS:
                    self._deletions[thread] = event.version
                    break
        return self._deletions[thread]

    def _note_emptied(self, event: RecordedEvent) -> None:
        """Note the first emptied event of a stream, whose chain continues."""
        if event.stream not in self._emptied:
            self._emptied.add(event.stream)
            self._add(event, "it was emptied, and not by cueline")

    def _add(self, at: RecordedEvent | CorruptEventError, reason: str) -> None:
        session = _session_of(at.stream)
        self.bad.append(BadRow(at.stream, at.version, at.position, reason, session))


def _session_of(stream: str) -> str | None:
    """Return the session to which *stream* belongs; None if it belongs to none, or to several."""
    match category_of(stream):
        case "session" | "inbox":
            return shown(stream)
        case "approval" | "sandbox" as category:
            return shown(stream.rsplit(".", 3 if category == "approval" else 1)[0])
    return None
