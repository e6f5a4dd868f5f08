"""The log of a `cueline serve`, for a client on another machine.

Reading is done on the events that the server sends. A wish goes to the API, where the server
checks it; nothing is ever appended from here.
"""
# ruff: noqa: ARG002, D102 - the ports `LogBackend`, `EventStore` and `PresenceBoard` have the
# parameters, and say what each method promises

import re
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

from cueline.clock import Clock
from cueline.errors import CorruptEventError, RejectedError
from cueline.events.log_url import LogUrl
from cueline.events.snapshot import NO_SNAPSHOTS, NoSnapshots
from cueline.events.store import (
    NO_STREAM,
    Appended,
    Head,
    Presence,
    RecordedEvent,
    to_us,
)
from cueline.gateway.remote_server import HttpServer

if TYPE_CHECKING:
    from cueline.projections.views import Views

UP_SECONDS = 2.0
"""How long the answer counts whether a `cueline up` runs."""
_up: dict[str, tuple[float, str]] = {}
"""By URL: when the server was asked for its `cueline up`, and its record."""


class RemoteBackend:
    """See `LogBackend`."""

    writer_place = None

    def __init__(self, url: LogUrl) -> None:
        self.url = url
        self.server = HttpServer(url)

    def exists(self) -> bool:
        """See `LogBackend.exists`; whether it can be reached shows when it is opened."""
        return True

    def found(self) -> None:
        """See `LogBackend.found`; no folder contains it."""

    def check(self, *, shared: bool = False) -> None:
        """See `LogBackend.check`; any number of processes reach a server."""

    def open(
        self,
        clock: Clock,
        *,
        must_exist: bool = False,
        read_only: bool = False,
    ) -> "RemoteStore":
        """See `LogBackend.open`; `LogServer.greet` shows whether it can be used."""
        self.server.use(clock)
        return RemoteStore(self.server)

    def migrate(self, writers: Sequence[str] = (), readers: Sequence[str] = ()) -> bool:
        raise self._refused("migrate")

    def open_rows(self, *, to_write: bool = False) -> NoReturn:
        raise self._refused("copy or check")

    def describe(self) -> None:
        """See `LogBackend.describe`."""

    def open_presence(self, clock: Clock) -> "RemotePresence":
        return RemotePresence(self.server, clock)

    def open_snapshots(self) -> NoSnapshots:
        return NO_SNAPSHOTS

    def open_views(self) -> "Views":
        raise self._refused("question")

    def read_up(self) -> str | None:
        """See `LogBackend.read_up`; the server is asked again after 2 s."""
        asked_at, text = _up.get(self.server.name, (-UP_SECONDS, ""))
        if monotonic() - asked_at >= UP_SECONDS:
            text = self.server.running_up() or text  # until the server is back, the last answer
            _up[self.server.name] = monotonic(), text
        return text

    def write_up(self, text: str) -> None:
        raise self._refused("up")

    def remove_up(self) -> None:
        raise self._refused("up")

    def up_output(self) -> Path:
        raise self._refused("up")

    def scrub(self) -> None:
        """See `LogBackend.scrub`; there is no file here."""

    def files(self) -> Sequence[Path]:
        return ()

    def owns(self, path: Path) -> bool:
        return False

    def _refused(self, what: str) -> RejectedError:
        return _refused(self.server, what)


class RemoteStore:
    """See `EventStore`; it reads."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._named_in: dict[str, tuple[str, int]] = {}
        """The events in which the last read blobs are named; a server may ask for one."""

    @property
    def log_id(self) -> str:
        return self._server.log_id

    async def head(self, stream: str) -> Head:
        return (await self.heads((stream,)))[stream]

    async def heads(self, streams: Collection[str]) -> dict[str, Head]:
        if not streams:
            return {}
        found = await self._server.get("/heads", stream=list(streams))
        return msgspec.json.decode(found.content, type=dict[str, Head])

    async def acquire(self, stream: str, owner: str, seen_epoch: int) -> int:
        raise _refused(self._server, "acquire")

    async def append(self, writes: object, key: str | None) -> Appended:
        raise _refused(self._server, "append")

    def read(
        self,
        stream: str,
        after: int = NO_STREAM,
        until: int | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[RecordedEvent]:
        query = {"stream": stream, "after": after, "until": until, "limit": limit}
        return self._events("/read", query)

    def read_back(
        self, stream: str, until: int | None = None, limit: int | None = None
    ) -> AsyncGenerator[RecordedEvent]:
        query = {"stream": stream, "until": until, "limit": limit, "back": True}
        return self._events("/read", query)

    def read_all(
        self,
        after: int = 0,
        categories: Collection[str] | None = None,
        limit: int | None = None,
    ) -> NoReturn:
        raise _refused(self._server, "read the whole log")

    def follow(
        self,
        after: int,
        categories: Collection[str] | None = None,
    ) -> AsyncGenerator[RecordedEvent]:
        return self._events("/follow", {"after": after})

    async def last_position(self) -> int:
        return int((await self._server.get("/position")).json())

    async def put_blob(self, content: bytes) -> str:
        raise _refused(self._server, "put_blob")

    async def get_blob(self, blob: str) -> bytes:
        named_in = self._named_in.get(blob)
        where = {} if named_in is None else {"stream": named_in[0], "version": named_in[1]}
        return (await self._server.get(f"/blobs/{blob}", **where)).content

    async def faults(self) -> Sequence[CorruptEventError]:
        raise _refused(self._server, "verify")

    async def close(self) -> None:
        await self._server.close()

    async def _events(self, path: str, query: dict[str, Any]) -> AsyncGenerator[RecordedEvent]:
        asked = {key: each for key, each in query.items() if each is not None}
        async with aclosing(self._server.events(path, asked)) as events:
            async for each in events:
                for blob in _HASH.findall(each.payload or b""):
                    self._named_in[blob.decode()] = each.stream, each.version
                while len(self._named_in) > _REMEMBERED:
                    del self._named_in[next(iter(self._named_in))]
                yield each


_HASH: Final = re.compile(rb'"(?:\$blob|whole)":"([0-9a-f]{64})"')
_REMEMBERED: Final = 10_000


class _Present(msgspec.Struct):
    now: int
    present: list[Presence]


class RemotePresence:
    """See `PresenceBoard`; the heartbeats are in the time of this machine's clock."""

    def __init__(self, server: HttpServer, clock: Clock) -> None:
        self._server = server
        self._clock = clock

    async def beat(self, presence: Presence) -> None:
        """Do nothing: a process here runs no session of the log."""

    async def leave(self, incarnation: str) -> None:
        """Do nothing; see `beat`."""

    async def all(self) -> Sequence[Presence]:
        answer = await self._server.get("/present")
        told = msgspec.json.decode(answer.content, type=_Present)
        ahead = to_us(self._clock.now()) - told.now
        return [replace(each, beat_us=each.beat_us + ahead) for each in told.present]

    async def close(self) -> None:
        """Do nothing; see `RemoteStore.close`."""


def _refused(server: HttpServer, what: str) -> RejectedError:
    return RejectedError(server.name, f"{what}: only a process that can open the log can do that")
