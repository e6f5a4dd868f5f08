"""A log as a list: the rules once more, in the plainest way."""

from dataclasses import dataclass, field

from cueline.errors import (
    FencedError,
    InvalidNameError,
    KeyReusedError,
    WrongExpectedVersionError,
)
from cueline.events.store import ANY


@dataclass
class Stream:
    epoch: int = 0
    owner: str | None = None
    parent: str | None = None
    base: int = 0


@dataclass
class ListModel:
    log: list = field(default_factory=list)
    """(stream, version, epoch, payload) of each event, in order."""
    streams: dict = field(default_factory=dict)
    keys: dict = field(default_factory=dict)
    """By first stream, and key or place: the content, each event's version, the last position."""

    def own(self, stream):
        return [event for event in self.log if event[0] == stream]

    def read(self, stream):
        known = self.streams.get(stream, Stream())
        prefix = self.read(known.parent)[: known.base] if known.parent else []
        return [*prefix, *self.own(stream)]

    def version(self, stream):
        return len(self.read(stream))

    def head(self, stream):
        known = self.streams.get(stream, Stream())
        return (self.version(stream), known.epoch, known.owner)

    def acquire(self, stream, owner, seen):
        known = self.streams.get(stream, Stream())
        if known.epoch != seen:
            return FencedError
        self.streams[stream] = known
        known.epoch, known.owner = seen + 1, owner
        return known.epoch

    def append(self, writes, key):
        """Return the versions and the position, or the error."""
        content = [(w.stream, draft.payload) for w in writes for draft in w.events]
        if key is None and not writes[0].epoch:
            return InvalidNameError
        named = (writes[0].stream, place(writes) if key is None else key)
        if named in self.keys:
            known, versions, position = self.keys[named]
            return (ends(writes, versions), position) if known == content else KeyReusedError
        if any(self._is_fenced(write) for write in writes):
            return FencedError
        if self._is_wrong(writes):
            return WrongExpectedVersionError
        return self._take(writes, named, content)

    def _is_fenced(self, write):
        epoch = self.streams.get(write.stream, Stream()).epoch
        if epoch == 0:
            return write.epoch is not None
        return write.epoch != epoch or write.expected_version == ANY

    def _is_wrong(self, writes):
        reached = {}
        for write in writes:
            version = reached.get(write.stream, self.version(write.stream))
            if write.after and write.stream not in reached:
                parent, at = write.after
                if version or not 1 <= at <= self.version(parent):
                    return True
                version = at
            if write.expected_version not in (ANY, version):
                return True
            reached[write.stream] = version + len(write.events)
        return False

    def _take(self, writes, named, content):
        versions = []
        for write in writes:
            known = self.streams.setdefault(write.stream, Stream())
            if write.after and not self.version(write.stream):
                known.parent, known.base = write.after
            for draft in write.events:
                version = self.version(write.stream) + 1
                self.log.append((write.stream, version, known.epoch, draft.payload))
                versions.append(version)
        self.keys[named] = self.keys[writes[0].stream, place(writes)] = (
            content,
            versions,
            len(self.log),
        )
        return ends(writes, versions), len(self.log)


def place(writes):
    """Return what stands for the key of an owner's append."""
    return (writes[0].epoch, writes[0].expected_version)


def ends(writes, versions):
    """Return the version of the last event of each write."""
    left = iter(versions)
    return tuple([next(left) for _ in write.events][-1] for write in writes)
