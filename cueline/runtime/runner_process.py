"""Runs tool calls in this process for the sessions of a far log: see `cueline runner start`.

The process opens no port and no log. It asks a server for requests and sends answers, both again
until the server has confirmed them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from cueline.actors.presence import deaf_seconds
from cueline.actors.runner import Runner
from cueline.actors.runner_desk import RunnerDesk
from cueline.actors.runner_wire import json_of_reply, request_of
from cueline.clock import SystemClock, boot_seconds
from cueline.errors import LogUnavailableError, RunnerGoneError, UnknownOutcomeError
from cueline.runtime.actor_factory import tool_executor

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Sends a request of the API by the name of its function; returns the answer."""

_AGAIN_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.2
_SLACK_SECONDS: Final = 15.0
"""The time in which an answer has to come, beside the time that the server waits."""
_AWAY = (LogUnavailableError, UnknownOutcomeError, TimeoutError)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerOffer:
    """What a runner offers, in the form of the API."""

    name: str
    process: Mapping[str, Any]
    labels: Mapping[str, str]
    resources: Mapping[str, float]
    blueprints: Sequence[Mapping[str, Any]] = ()


class RunnerProcess:
    """The runner of this process, under one incarnation after another."""

    def __init__(self, ask: Ask, offer: RunnerOffer, say: Callable[[str], None]) -> None:
        """Prepare the runner; nothing is sent.

        Args:
            ask: sends requests to the server.
            offer: what it offers.
            say: gets a sentence about each change.
        """
        self._ask = ask
        self._offer = offer
        self._say = say
        self._leaving = asyncio.Event()

    @property
    def leaving(self) -> bool:
        """Whether it takes no more calls."""
        return self._leaving.is_set()

    def leave(self) -> None:
        """Take no more calls, and end after the running ones."""
        self._leaving.set()

    async def run(self) -> None:
        """Serve until `leave`.

        After a silence of the server that is too long, the running calls are ended: the server
        counts them as lost then. The runner registers again when the server is back.

        Raises:
            CuelineError: the server refuses the registration.
        """
        while not self._leaving.is_set():
            incarnation = f"runner-{uuid4().hex[:12]}"
            registered = await self._register(incarnation)
            if registered is None:
                return
            self._say(f"runner {self._offer.name!r} is registered as {incarnation}")
            serving = _Incarnation(self._ask, self._offer, incarnation, registered)
            why = await serving.run(self._leaving)
            self._say(why)

    async def _register(self, incarnation: str) -> Mapping[str, Any] | None:
        """Return the answer to the registration; None if this process leaves before."""
        asked = {
            "name": self._offer.name,
            "runner": incarnation,
            "process": self._offer.process,
            "labels": self._offer.labels,
            "resources": self._offer.resources,
            "blueprints": self._offer.blueprints,
        }
        clock, told = SystemClock(), False
        while not self._leaving.is_set():
            try:
                async with asyncio.timeout(_SLACK_SECONDS):
                    registered: Mapping[str, Any] = await self._ask("register_runner", asked)
            except _AWAY as error:
                if not told:
                    self._say(f"{error or 'the server does not answer'}; trying again")
                told = True
                await clock.sleep(_AGAIN_SECONDS)
            else:
                return registered
        return None


class _Incarnation:
    """One registration, from its beginning to its end."""

    def __init__(
        self, ask: Ask, offer: RunnerOffer, incarnation: str, registered: Mapping[str, Any]
    ) -> None:
        self._ask_server = ask
        self._offer = offer
        self._incarnation = incarnation
        self._registered = registered
        self._clock = SystemClock()
        self._deaf_seconds = deaf_seconds(registered["removal_seconds"])
        executor = tool_executor(registered["workers"])
        self._runner = Runner(incarnation, executor, boot_seconds)
        self._desk = RunnerDesk(self._runner, boot_seconds, registered["removal_seconds"])
        self._relay = ""
        self._received: Sequence[int] = ()
        """The numbers of the last requests, which the next question confirms."""
        self._relays: asyncio.Queue[str] = asyncio.Queue()
        """The relays whose answers nobody fetches yet."""
        self._heard_at = boot_seconds()

    async def run(self, leaving: asyncio.Event) -> str:
        """Serve until *leaving* is set, and return why it ended."""
        loops = (self._take, self._answer_all, self._beat, self._watch)
        tasks = [asyncio.create_task(self._until_gone(each)) for each in loops]
        left = asyncio.create_task(leaving.wait())
        try:
            await asyncio.wait({left, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            if not left.done():
                return next(task.result() for task in tasks if task.done())
            await self._leave()
            return f"{self._incarnation} has left"
        finally:
            for task in (left, *tasks):
                task.cancel()
            await self._runner.close()

    async def _until_gone(self, step: Callable[[], Awaitable[None]]) -> str:
        """Repeat *step*, also while the server is away; return why that ends."""
        while True:
            try:
                await step()
            except _AWAY:
                await self._clock.sleep(_AGAIN_SECONDS)
            except RunnerGoneError as error:
                return f"{error}; its calls were ended"
            if self._is_deaf():
                # Also after this process was frozen: its calls count as lost, or will soon.
                silence = boot_seconds() - self._heard_at
                return f"the server was away for {silence:.0f} s; the running calls were ended"

    async def _leave(self) -> None:
        """Get no more calls, finish the running ones, and have the runner removed."""
        with suppress(*_AWAY, RunnerGoneError):
            await self._ask("leave_runner", done=False)
            while self._desk.unsettled and not self._is_deaf():
                await self._clock.sleep(_LOOK_SECONDS)
            await self._ask("leave_runner", done=True)

    async def _take(self) -> None:
        """Take the next requests."""
        seconds = self._registered["poll_seconds"]
        told = await self._ask(
            "runner_requests",
            within=seconds,
            relay=self._relay,
            received=self._received,
            seconds=seconds,
        )
        requests = [request_of(each) for each in told["requests"]]
        if told["relay"] != self._relay:
            self._relay = told["relay"]
            self._relays.put_nowait(self._relay)
        self._desk.take(self._relay, requests)
        self._received = [each.number for each in requests]

    async def _answer_all(self) -> None:
        """Send the answers for a relay until another one takes its place."""
        relay = await self._relays.get()
        sent: list[int] = []
        while self._relays.empty():
            replies = await self._desk.replies(relay, sent, _AGAIN_SECONDS)
            sent = []
            if replies:
                try:
                    await self._ask(
                        "runner_replies", relay=relay, replies=[*map(json_of_reply, replies)]
                    )
                except _AWAY:
                    await self._clock.sleep(_AGAIN_SECONDS)
                else:
                    sent = [each.number for each in replies]

    async def _beat(self) -> None:
        await self._ask("runner_heartbeat", process=self._offer.process)
        await self._clock.sleep(self._registered["heartbeat_seconds"])

    async def _watch(self) -> None:
        await self._clock.sleep(_LOOK_SECONDS)

    async def _ask(self, name: str, *, within: float = 0.0, **asked: Any) -> Any:
        """Return the server's answer.

        Raises:
            RunnerGoneError: the server does not know this incarnation, or not any more.
        """
        async with asyncio.timeout(within + _SLACK_SECONDS):
            told = await self._ask_server(name, {"runner": self._incarnation, **asked})
        if self._is_deaf():
            raise RunnerGoneError(self._incarnation, "the server was away for too long")
        self._heard_at = boot_seconds()
        return told

    def _is_deaf(self) -> bool:
        return boot_seconds() - self._heard_at > self._deaf_seconds
