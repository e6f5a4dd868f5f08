"""Takes requests for a runner, and keeps the answers until their caller has confirmed them.

A caller holds no connection for each tool call: it sends requests, and fetches all answers with
one long poll. A request that arrives twice is carried out once.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Literal

from cueline.actors.runner import CallName, Runner
from cueline.actors.tool_port import ToolOrder
from cueline.errors import ClusterError, CuelineError

PAGE_BYTES = 1024 * 1024
"""The approximate size of the pages of answers."""

Verb = Literal["execute", "outcome", "cancel", "forget", "reconcile"]
"""The methods of a `Runner`."""


@dataclass(frozen=True, slots=True)
class RunnerRequest:
    """A request to a runner, with a number chosen by its caller."""

    number: int
    verb: Verb
    about: ToolOrder | CallName


@dataclass(frozen=True, slots=True)
class ActorReply:
    """The result of one request of a batch."""

    value: object = None
    error: CuelineError | None = None

    def settle(self, done: "asyncio.Future[object]") -> None:
        """Set the result for its waiter."""
        if done.done():
            return
        if self.error is None:
            done.set_result(self.value)
        else:
            done.set_exception(self.error)


@dataclass(frozen=True, slots=True)
class RunnerReply:
    """The answer to a request."""

    number: int
    answer: ActorReply


@dataclass(slots=True)
class Answers:
    """The answers for one caller, kept until it confirms them."""

    now: Callable[[], float]
    replies: dict[int, RunnerReply] = field(default_factory=dict)
    bell: asyncio.Event = field(default_factory=asyncio.Event)
    polled_at: float = 0.0
    """When the caller last asked, by *now*."""

    def put(self, reply: RunnerReply) -> None:
        """Keep *reply*, and wake the caller."""
        self.replies[reply.number] = reply
        self.bell.set()

    async def next(self, received: Sequence[int], seconds: float) -> Sequence[RunnerReply]:
        """Wait for answers, and return about `PAGE_BYTES`; the *received* ones are dropped."""
        self.polled_at = self.now()
        for number in received:
            self.replies.pop(number, None)
        if not self.replies:
            self.bell.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.bell.wait()
        return first_of(list(self.replies.values()))


@dataclass(slots=True)
class _Mailbox:
    """The requests of one caller that are carried out, and its answers."""

    answers: Answers
    errands: dict[int, asyncio.Task[None]] = field(default_factory=dict)


class RunnerDesk:
    """Carries out the requests of many callers with one runner."""

    def __init__(self, runner: Runner, now: Callable[[], float], forget_seconds: float) -> None:
        """Begin without callers.

        Args:
            runner: carries out the requests.
            now: a clock, in seconds.
            forget_seconds: a caller that is silent for longer, and waits for nothing, is forgotten.
        """
        self._runner = runner
        self._now = now
        self._forget_seconds = forget_seconds
        self._mailboxes: dict[str, _Mailbox] = {}

    @property
    def unsettled(self) -> int:
        """The number of calls that run, or whose outcome may not be recorded yet."""
        return self._runner.unsettled + sum(len(m.errands) for m in self._mailboxes.values())

    def take(self, caller: str, requests: Sequence[RunnerRequest]) -> None:
        """Start *requests*; `replies` returns their answers."""
        mailbox = self._mailbox(caller)
        for request in requests:
            if request.number in mailbox.errands or request.number in mailbox.answers.replies:
                continue
            mailbox.errands[request.number] = asyncio.create_task(self._run(mailbox, request))

    async def replies(
        self, caller: str, received: Sequence[int], seconds: float
    ) -> Sequence[RunnerReply]:
        """See `Answers.next`."""
        return await self._mailbox(caller).answers.next(received, seconds)

    async def _run(self, mailbox: _Mailbox, request: RunnerRequest) -> None:
        try:
            answer = getattr(self._runner, request.verb)(request.about)
            reply = ActorReply(await answer if isawaitable(answer) else answer)
        except CuelineError as error:
            reply = ActorReply(error=error)
        except Exception as error:  # noqa: BLE001 - after a tool's bug the caller still needs an answer
            reason = f"{type(error).__name__}: {error}"
            reply = ActorReply(error=ClusterError(self._runner.incarnation, reason))
        mailbox.errands.pop(request.number, None)
        mailbox.answers.put(RunnerReply(request.number, reply))

    def _mailbox(self, caller: str) -> _Mailbox:
        now = self._now()
        for name, mailbox in list(self._mailboxes.items()):
            silence = now - mailbox.answers.polled_at
            if not mailbox.errands and silence > self._forget_seconds:
                del self._mailboxes[name]
        mailbox = self._mailboxes.setdefault(caller, _Mailbox(Answers(self._now)))
        mailbox.answers.polled_at = now
        return mailbox


def first_of(replies: Sequence[RunnerReply]) -> Sequence[RunnerReply]:
    """Return the first of *replies*, at least one, of about `PAGE_BYTES`."""
    size = 0
    for count, reply in enumerate(replies):
        size += len(getattr(reply.answer.value, "content", b""))
        if size > PAGE_BYTES:
            return replies[: count + 1]
    return replies
