"""Live text: passes the pieces of a model's replies to the watchers of a session.

Live text is not recorded, and not kept for a session without watchers. A watcher gets
the replies that begin after it subscribed. A watcher that is too slow loses the rest of
a reply, but always gets the beginning.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Literal

from msgspec import Struct

from cueline.actors.model_port import Delta
from cueline.events.sanitize import Redactor
from cueline.events.stream_redactor import StreamRedactor

BACKLOG = 256 * 1024
"""The approximate limit of the memory for the pieces of one slow watcher, in bytes."""
_OVERHEAD = 128


class TextDelta(Struct, frozen=True):
    """A piece of a model's reply; it is never recorded."""

    text: str
    kind: Literal["text", "thinking"]
    effect: str
    """The model call: `<turn>.m`."""
    attempt: int
    """A higher attempt of the same effect starts the reply again."""

    @property
    def call(self) -> tuple[str, int]:
        """The attempt of the model call."""
        return self.effect, self.attempt


class LiveTextSubscription:
    """The pieces that one watcher has not taken yet."""

    def __init__(self) -> None:
        self.lost = 0
        """Number of pieces that were dropped because the watcher was too slow."""
        self._pieces: list[TextDelta] = []
        self._size = 0
        self._broken: tuple[str, int] | None = None
        """The call with a dropped piece, whose later pieces are dropped, too."""
        self._news = asyncio.Event()

    def put(self, piece: TextDelta) -> None:
        """Add *piece*, or drop it if there are too many."""
        size = len(piece.text) + _OVERHEAD
        if piece.call == self._broken or self._size + size > BACKLOG:
            self._broken = piece.call
            self.lost += 1
            return
        self._pieces.append(piece)
        self._size += size
        self._news.set()

    async def take(self) -> Sequence[TextDelta]:
        """Wait for new pieces, and return them."""
        await self._news.wait()
        return self.ready()

    def ready(self) -> Sequence[TextDelta]:
        """Return the new pieces at once; consecutive pieces are joined."""
        pieces, self._pieces, self._size = self._pieces, [], 0
        self._news.clear()
        if len(pieces) < 2:  # noqa: PLR2004 - nothing to join
            return pieces
        return [
            TextDelta("".join(each.text for each in same), kind, *call)
            for (kind, call), same in groupby(pieces, key=lambda each: (each.kind, each.call))
        ]


class LiveTextHub:
    """Passes the pieces of the replies of one host to the watchers of its sessions."""

    def __init__(self) -> None:
        self._watchers: dict[str, list[LiveTextSubscription]] = {}

    @contextmanager
    def subscribe(self, stream: str) -> Iterator[LiveTextSubscription]:
        """Get the pieces of the replies of session *stream* that begin in this block."""
        subscription = LiveTextSubscription()
        self._watchers.setdefault(stream, []).append(subscription)
        try:
            yield subscription
        finally:
            self._watchers[stream].remove(subscription)
            if not self._watchers[stream]:
                del self._watchers[stream]

    def watchers(self, stream: str) -> Sequence[LiveTextSubscription]:
        """Return the current watchers of session *stream*."""
        return tuple(self._watchers.get(stream, ()))

    def sink(self, stream: str, effect: str, attempt: int, redactor: Redactor) -> "ReplySink":
        """Return the sink of one model call, which removes the secrets of *redactor* (I11)."""
        return ReplySink(self, stream, effect, attempt, redactor)


class ReplySink:
    """Passes on the pieces of one reply; see `DeltaSink`."""

    __slots__ = (
        "_attempt",
        "_effect",
        "_hub",
        "_kind",
        "_part",
        "_redactor",
        "_stream",
        "_watchers",
    )

    def __init__(
        self, hub: LiveTextHub, stream: str, effect: str, attempt: int, redactor: Redactor
    ) -> None:
        self._hub = hub
        self._stream = stream
        self._effect = effect
        self._attempt = attempt
        self._redactor = redactor
        self._watchers: Sequence[LiveTextSubscription] | None = None
        """The watchers at the time of the first piece."""
        self._kind: Literal["text", "thinking"] = "text"
        self._part: StreamRedactor | None = None

    def __call__(self, delta: Delta) -> None:
        """Pass *delta* on, without secrets and perhaps later."""
        if self._watchers is None:
            self._watchers = self._hub.watchers(self._stream)
        if not self._watchers:
            return
        if self._part is None or delta.kind != self._kind:
            self.end()
            self._kind, self._part = delta.kind, StreamRedactor(self._redactor)
        self._pass(self._part.feed(delta.text))

    def end(self) -> None:
        """Pass on the held-back text: the reply, or a part of it, is complete."""
        if self._part is not None:
            self._pass(self._part.end())
            self._part = None

    def _pass(self, text: str) -> None:
        if text:
            piece = TextDelta(text, self._kind, self._effect, self._attempt)
            for watcher in self._watchers or ():
                watcher.put(piece)
