"""Compares the seals of a log, and their notes outside of it, with the events."""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from cueline.client.seal import notes_in
from cueline.errors import CorruptEventError
from cueline.events.merkle import Frontier, leaf_hash
from cueline.events.seal import SEAL_STREAM, LogSealed, leaf_of
from cueline.events.store import RecordedEvent
from cueline.runtime.open_log import OpenLog
from cueline.runtime.seal import check_seal


class _Claim(NamedTuple):
    """The root of a seal, with the event or the file that states it."""

    root: bytes
    where: tuple[str, int, int]
    """Stream, version and position of the event; for a file, only the last sealed position."""
    source: str


class SealCheck:
    """One pass over the events of a log; it compares the root at each sealed size."""

    def __init__(self, log: OpenLog, folder: Path | None, key: str | None) -> None:
        """Compare the seals with the notes in *folder*; *key* has to have signed each seal."""
        self.sealed = 0
        """The number of events whose newest seal is right."""
        self.sizes: set[int] = set()
        """The sizes of the seals in the log."""
        self.keys: set[str] = set()
        """The public keys of the seals in the log."""
        self.bad: list[CorruptEventError] = []
        self._log, self._folder, self._key = log, folder, key
        self._claims: dict[int, list[_Claim]] = {}
        self._tree: Frontier | None = None
        """The tree of the read events; None if no root is left to compare."""

    async def read_seals(self) -> None:
        """Read the notes outside of the log, then the seals in it: a note is written last."""
        for path, checkpoint in notes_in(self._folder, self._log.id):
            where = "?", 0, checkpoint.size
            self._claim(checkpoint.size, _Claim(checkpoint.root, where, f"the seal in {path}"))
        journal = self._log.journal()
        with suppress(CorruptEventError):  # the check of the chain reports it
            async for recorded in self._log.store.read(SEAL_STREAM):
                fact = await journal.fact_of(recorded)
                if isinstance(fact, LogSealed):
                    self._take(recorded, fact)
        self._tree = Frontier() if self._claims else None

    def add(self, event: RecordedEvent) -> None:
        """Add the next event, and compare the seals of all events up to it."""
        tree = self._tree
        if tree is None:
            return
        if event.position != tree.size + 1:
            self._tree = None  # something is missing, which is reported already
            return
        tree.add(leaf_hash(leaf_of(event)))
        if tree.size in self._claims:
            self._compare(self._claims[tree.size], tree.size, tree.root())

    def finish(self, last: int) -> None:
        """Report what the notes have and the log, which ends at the position *last*, has not."""
        if self._key is not None and not self.sizes:
            self._report(("?", 0, last), f"nothing up to here is sealed, so not by {self._key}")
        for size, claims in self._claims.items():
            source = claims[-1].source
            if size > last:
                why = f"the log ends at position {last}, and {source} has {size} events"
                self._report(claims[-1].where, f"{why}: the newest events were removed")
            elif size not in self.sizes:
                self._report(claims[-1].where, f"{source} was removed from the log")

    def _take(self, recorded: RecordedEvent, seal: LogSealed) -> None:
        where = recorded.stream, recorded.version, recorded.position
        self.sizes.add(seal.size)
        self.keys.add(seal.key)
        try:
            root = check_seal(seal, self._log.id).root
        except ValueError as error:
            self._report(where, str(error))
            return
        if self._key not in {None, seal.key}:
            self._report(where, f"the seal is signed by another key, {seal.key}")
        gone = seal.size + 1 - recorded.position
        if gone > 0:
            why = f"it sealed {seal.size} events, and has the position {recorded.position}"
            self._report(where, f"{why}: {gone} or more events before it were removed")
        else:
            self._claim(seal.size, _Claim(root, where, "the seal"))

    def _claim(self, size: int, claim: _Claim) -> None:
        self._claims.setdefault(size, []).append(claim)

    def _compare(self, claims: list[_Claim], size: int, root: bytes) -> None:
        wrong = [claim for claim in claims if claim.root != root]
        for claim in wrong:
            sealed = f"the events {self.sealed + 1} to {size} are not those of {claim.source}"
            self._report(claim.where, f"{sealed}: some were changed or removed")
        if wrong:
            self._tree = None  # each later root differs, too
        else:
            self.sealed = size

    def _report(self, where: tuple[str, int, int], reason: str) -> None:
        self.bad.append(CorruptEventError(*where, reason))
