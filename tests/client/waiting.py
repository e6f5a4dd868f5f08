"""Somebody who waits for a session: what the tests of waiters share."""

import asyncio

import pytest

from cueline.actors.session_reader import SessionReader
from cueline.actors.stream_notifier import StreamNotifier
from cueline.client.session_watcher import SessionWatcher
from cueline.events.codec import Codec
from tests.actors.session_harness import SESSION


class Home:
    """What a runtime knows, as a test says."""

    def __init__(self, name=None, *, drives=False, trouble=None, host=None):
        self._host = host
        self._name = name
        self._drives = drives
        self._trouble = trouble

    def trouble(self, _):
        return self._trouble

    def takes_up(self, _):
        return self._drives

    live_text = None

    def settled(self, stream):
        return self._host.settled(stream) if self._host and self._host.drives(stream) else None

    def has(self, incarnation):
        return self._name is not None and incarnation == self._name


class Waiting:
    """Somebody who waits for the session of a scene."""

    def __init__(
        self,
        scene,
        home=None,
        stream=SESSION,
        journal=None,
        *,
        notifier=None,
        way="until_it_rests",
        **wishes,
    ):
        self.told = []
        self._way, self._wishes = way, wishes
        outside = scene.outside
        journal = journal or outside.journal
        session_reader, notifier = (
            SessionReader(stream, journal),
            notifier or StreamNotifier(journal.store),
        )
        waiter = SessionWatcher(
            session_reader, notifier, outside.board, scene.clock, home or Home()
        )
        self.task = asyncio.create_task(self._wait(waiter))

    async def _wait(self, waiter):
        async for recorded, fact in getattr(waiter, self._way)(**self._wishes):
            assert recorded.version == len(self.told) + 1
            self.told.append(fact.type)
            self.state = waiter.reader.state

    async def end(self):
        return await asyncio.wait_for(self.task, 0)


class WaitingForAnswer(Waiting):
    """Somebody who waits for what it says last, as `Session.result` does."""

    async def _wait(self, waiter):
        self.word = await waiter.wait_for_answer()


both = pytest.mark.parametrize("kind", [Waiting, WaitingForAnswer])


class CountingCodec(Codec):
    """Counts what it decodes."""

    decoded = 0

    def decode(self, *args):
        before = self.decoded
        fact = super().decode(*args)
        self.decoded = before + 1  # it calls itself for a payload with blobs
        return fact
