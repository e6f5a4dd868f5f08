"""Passes requests of session hosts to runners outside of the cluster, and the answers back.

Such a runner opens no port: it asks the server for requests, and sends answers to the server. The
relay is beside the server. It forgets everything when it ends: then whoever waits asks the runner
for the outcome, as after any lost answer.
"""

import asyncio
import pickle
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final, Protocol
from uuid import uuid4

from cueline.actors.runner_desk import ActorReply, Answers, RunnerReply, RunnerRequest
from cueline.errors import ClusterError, CuelineError, RunnerGoneError

POLL_SECONDS: Final = 30.0
"""How long a runner's question for requests may wait."""
_SILENCE_SECONDS: Final = POLL_SECONDS + 10
_FORGET_SECONDS: Final = 3600.0
"""The silence after which a runner is forgotten: it was removed long before."""
_AWAY: Final = "the server that it asks has started again, and does not know of the request"


class RelayPort(Protocol):
    """The side of a relay at which runners ask."""

    async def requests(
        self, runner: str, relay: str, received: Sequence[int], seconds: float
    ) -> tuple[str, Sequence[RunnerRequest]]:
        """Wait for requests to *runner*; return them, with the id of the relay.

        A request is returned until it is *received*, so a lost answer loses no request.

        Args:
            runner: the incarnation that asks.
            relay: the id of the relay that numbered the *received* requests.
            received: the requests that the runner has.
            seconds: the longest wait.
        """

    def drain(self) -> None:
        """End all waits for requests now."""

    async def answer(self, runner: str, relay: str, replies: Sequence[RunnerReply]) -> None:
        """Pass *replies* on to those who wait; what nobody waits for is dropped."""


@dataclass(slots=True)
class _Link:
    """The requests to one runner, and those who wait for its answers."""

    heard_at: float
    """When the runner last asked for requests; at first long ago."""
    requests: dict[int, RunnerRequest] = field(default_factory=dict)
    """The requests that the runner has not received, by the relay's own numbers."""
    askers: dict[int, tuple[str, int]] = field(default_factory=dict)
    """The caller of each unanswered request, and the caller's number."""
    bell: asyncio.Event = field(default_factory=asyncio.Event)
    answers: dict[str, Answers] = field(default_factory=dict)
    """The answers for each caller."""


class RunnerRelay:
    """See `RelayPort`; hosts use the other methods."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.id = uuid4().hex
        self._now = now
        self._numbers = count(1)
        self._links: dict[str, _Link] = {}

    def take(self, runner: str, caller: str, requests: Sequence[RunnerRequest]) -> str:
        """Pass *requests* of *caller* on to *runner*; return the id of the relay."""
        link = self._link(runner)
        link.answers.setdefault(caller, Answers(self._now))
        known = set(link.askers.values())
        for request in requests:
            if (caller, request.number) not in known:
                number = next(self._numbers)
                link.askers[number] = caller, request.number
                link.requests[number] = replace(request, number=number)
        link.bell.set()
        return self.id

    async def replies(
        self, runner: str, caller: str, received: Sequence[int], seconds: float
    ) -> Sequence[RunnerReply]:
        """Wait for answers of *runner* to *caller*; the *received* ones are dropped.

        Raises:
            RunnerGoneError: this relay has no request of *caller*; ask for the outcomes.
        """
        if (answers := self._link(runner).answers.get(caller)) is None:
            raise RunnerGoneError(runner, _AWAY)
        return await answers.next(received, seconds)

    def check(self, runner: str) -> None:
        """Refuse a runner that has not asked for requests lately.

        Raises:
            RunnerGoneError: it is silent.
        """
        link = self._links.get(runner)
        if link is None or self._now() - link.heard_at > _SILENCE_SECONDS:
            raise RunnerGoneError(runner, "it does not ask for calls")

    async def requests(
        self, runner: str, relay: str, received: Sequence[int], seconds: float
    ) -> tuple[str, Sequence[RunnerRequest]]:
        """See `RelayPort.requests`."""
        link = self._link(runner)
        link.heard_at = self._now()
        for number in received if relay == self.id else ():
            link.requests.pop(number, None)
        if not link.requests:
            link.bell.clear()
            try:
                async with asyncio.timeout(seconds):
                    await link.bell.wait()
            except TimeoutError:
                pass
        return self.id, list(link.requests.values())

    async def answer(self, runner: str, relay: str, replies: Sequence[RunnerReply]) -> None:
        """See `RelayPort.answer`."""
        link = self._link(runner)
        for reply in replies if relay == self.id else ():
            link.requests.pop(reply.number, None)
            asker = link.askers.pop(reply.number, None)
            if asker is not None:
                caller, number = asker
                link.answers[caller].put(RunnerReply(number, reply.answer))

    def drain(self) -> None:
        """See `RelayPort.drain`."""
        for link in self._links.values():
            link.bell.set()

    def _link(self, runner: str) -> _Link:
        if runner not in self._links:
            now = self._now()
            self._links = {
                name: each
                for name, each in self._links.items()
                if now - each.heard_at < _FORGET_SECONDS
            }
            self._links[runner] = _Link(now - _SILENCE_SECONDS - 1)
        return self._links[runner]


_SIZE: Final = 8
_METHODS: Final = frozenset({"requests", "answer"})


async def serve_relay(relay: RelayPort, end: socket.socket) -> None:
    """Answer the calls of a `RelayLink` at the other end, until that is closed."""
    reader, writer = await asyncio.open_connection(sock=end)
    running: set[asyncio.Task[None]] = set()

    async def carry_out(number: int, method: str, asked: tuple[Any, ...]) -> None:
        try:
            reply = ActorReply(await getattr(relay, method)(*asked))
        except CuelineError as error:
            reply = ActorReply(error=error)
        _send(writer, (number, reply))

    try:
        while (call := await _received(reader)) is not None:
            number, method, asked = call
            assert method in _METHODS, "the other end is our own process"
            task = asyncio.create_task(carry_out(number, method, asked))
            running.add(task)
            task.add_done_callback(running.discard)
    finally:
        for task in running:
            task.cancel()
        writer.close()


class RelayLink:
    """See `RelayPort`: the relay of the process that started this one."""

    def __init__(self, descriptor: int) -> None:
        self._end = socket.socket(fileno=descriptor)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._polls: dict[int, str] = {}
        """The numbers of the questions for requests, and the relays that they name."""
        self._numbers = count(1)
        self._opening: asyncio.Task[asyncio.StreamWriter] | None = None
        self._listening: asyncio.Task[None] | None = None

    async def requests(
        self, runner: str, relay: str, received: Sequence[int], seconds: float
    ) -> tuple[str, Sequence[RunnerRequest]]:
        """See `RelayPort.requests`."""
        told: tuple[str, Sequence[RunnerRequest]] = await self._ask(
            "requests", runner, relay, received, seconds
        )
        return told

    async def answer(self, runner: str, relay: str, replies: Sequence[RunnerReply]) -> None:
        """See `RelayPort.answer`."""
        await self._ask("answer", runner, relay, replies)

    def drain(self) -> None:
        """See `RelayPort.drain`."""
        for number, relay in self._polls.items():
            ActorReply((relay, [])).settle(self._waiting[number])

    async def _ask(self, method: str, *asked: object) -> Any:
        self._opening = self._opening or asyncio.create_task(self._open())
        writer = await asyncio.shield(self._opening)
        number = next(self._numbers)
        answered = self._waiting[number] = asyncio.get_running_loop().create_future()
        if method == "requests":
            self._polls[number] = str(asked[1])
        try:
            _send(writer, (number, method, asked))
            return await answered
        finally:
            self._polls.pop(number, None)
            del self._waiting[number]

    async def _open(self) -> asyncio.StreamWriter:
        reader, writer = await asyncio.open_connection(sock=self._end)
        self._listening = asyncio.create_task(self._listen(reader, writer))
        return writer

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (told := await _received(reader)) is not None:
            number, reply = told
            if number in self._waiting:
                reply.settle(self._waiting[number])
        writer.close()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ClusterError("the server", "it ends"))


def _send(writer: asyncio.StreamWriter, message: object) -> None:
    data = pickle.dumps(message)
    writer.write(len(data).to_bytes(_SIZE, "big") + data)


async def _received(reader: asyncio.StreamReader) -> Any:
    """Return the next message of the other end, which is our own process; None at its end."""
    try:
        size = int.from_bytes(await reader.readexactly(_SIZE), "big")
        return pickle.loads(await reader.readexactly(size))  # noqa: S301 - see above
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
