"""What happens to one sandbox: each act is recorded before it, and its outcome after it (I2).

The stream of a sandbox has no owner: every append is a compare-and-set.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Any, Final, TypeVar
from uuid import uuid4

from cueline.actors.fold import fold
from cueline.clock import Clock
from cueline.deciders.sandbox import SANDBOX, SandboxLife
from cueline.errors import SandboxError, SandboxGoneError
from cueline.events.journal import FactWrite, Journal
from cueline.events.sandbox import SandboxAsked, SandboxDone, SandboxFailed
from cueline.events.sanitize import REDACTED
from cueline.events.stream import sibling

Answer = TypeVar("Answer")
Life = tuple[SandboxLife, int]
"""What is known of a sandbox, and the version of its stream."""
ACT_SECONDS: Final = 300.0
"""The time that a back-end has to create, start, stop or delete a sandbox."""


def sandbox_of(session: str, number: int) -> str:
    """Return the stream of the *number*-th sandbox of *session*, from 1."""
    return f"{sibling(session, 'sandbox')}.{number}"


class SandboxActs:
    """Asks the back-ends, and records what they are asked for."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._late: dict[str, asyncio.Future[Any]] = {}
        """What did not answer in time and still runs, by the name of its sandbox."""

    async def life(self, name: str) -> Life:
        """Return what is known of the sandbox *name*."""
        return await fold(self._journal, name, SANDBOX, SANDBOX.initial_state)

    async def act(
        self,
        name: str,
        life: Life,
        asked: SandboxAsked,
        work: Callable[[], str],
        hidden: Collection[str] = (),
    ) -> str:
        """Record the intent, do the *work*, and record its outcome, without the *hidden* values."""
        life = await self._record(name, asked, life)
        try:
            place = await self.ask(name, work)
        except SandboxError as error:
            gone = isinstance(error, SandboxGoneError)
            for value in hidden:
                error = type(error)(error.place, error.reason.replace(value, REDACTED))
            failed = SandboxFailed(
                act=asked.act, message=error.reason, gone=gone, at=self._clock.now()
            )
            await self._record(name, failed, life)
            raise error from None
        await self._record(
            name, SandboxDone(act=asked.act, place=place, at=self._clock.now()), life
        )
        return place

    async def ask(self, what: str, work: Callable[[], Answer]) -> Answer:
        """Return the answer of a back-end, which blocks.

        Raises:
            SandboxError: it failed, or did not answer in time.
        """
        try:
            async with asyncio.timeout(ACT_SECONDS):
                if (late := self._late.pop(what, None)) is not None:
                    await asyncio.wait({late})  # so that a late stop does not follow a start
                task = asyncio.ensure_future(asyncio.to_thread(work))
                return await asyncio.shield(task)
        except TimeoutError:
            self._late[what] = late if late is not None and not late.done() else task
            raise SandboxError(what, f"no answer within {ACT_SECONDS:g} s") from None
        except SandboxError:
            raise
        except Exception as error:
            raise SandboxError(what, f"{type(error).__name__}: {error}") from error

    async def _record(
        self,
        name: str,
        event: SandboxAsked | SandboxDone | SandboxFailed,
        life: Life,
    ) -> Life:
        state, version = life
        if not (events := SANDBOX.decide(event, state)):
            return life
        write = FactWrite(
            stream=name, steps=[events], expected_version=version, actor="system:pool"
        )
        await self._journal.append([write], key=uuid4().hex)
        return SANDBOX.replay(events, state), version + len(events)
