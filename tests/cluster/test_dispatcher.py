"""What a dispatcher in an actor of its own makes of its log, without a cluster."""

import asyncio
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
import ray

from cueline.actors.presence import presence_of
from cueline.clock import SystemClock
from cueline.cluster import dispatcher as dispatchers
from cueline.cluster.dispatcher import DispatcherActor, Wanted
from cueline.cluster.order import DISPATCHER
from cueline.errors import ClusterError
from cueline.events.codec import Codec
from cueline.events.dispatcher import HostLost, RunnerRemoved
from cueline.events.journal import Journal
from cueline.stores.memory import MemoryStore
from cueline.testing.wait import await_until

NOW = SystemClock().now()
FIRST = HostLost(incarnation="host-1", evidence="it is silent", at=NOW)
NEXT = RunnerRemoved(incarnation="runner-1", evidence="it has left", at=NOW)


class Deaf(MemoryStore):
    """A log whose first answer never comes."""

    appended = 0

    async def append(self, writes, key):
        done = await super().append(writes, key)
        self.appended += 1
        if self.appended == 1:
            await asyncio.Event().wait()
        return done


@pytest.fixture
def dispatcher(monkeypatch):
    """A dispatcher whose writer opens the log `theirs`."""
    opened = Future()
    opened.set_result("theirs")
    asked = SimpleNamespace(remote=lambda: SimpleNamespace(future=lambda: opened))
    writer = SimpleNamespace(start=asked)
    store = Deaf(SystemClock())
    journal = Journal(store, Codec(), SystemClock().now)
    parts = SimpleNamespace(log_id="ours", journal=lambda _: journal)
    site = SimpleNamespace(parts=parts, named=str, create=lambda *_, **__: writer)
    begun = SimpleNamespace(was_current_actor_reconstructed=False)
    monkeypatch.setattr(ray, "get_runtime_context", lambda: begun)
    monkeypatch.setattr(dispatchers, "BEAT_SECONDS", 0.0)
    return DispatcherActor(site, Wanted(), "up-1")


async def test_another_log_at_the_same_path_is_refused(dispatcher):
    # On another machine, or in another container.
    with pytest.raises(ClusterError, match="has another log at this path"):
        await dispatcher.start()


async def test_what_was_recorded_unheard_holds_up_nothing(dispatcher):
    # `cueline down` may come in the middle of an append.
    journal, me = dispatcher._journal, presence_of("dispatcher")
    dispatcher._epoch = await journal.store.acquire(DISPATCHER, me.incarnation, 0)
    unheard = asyncio.create_task(dispatcher._record([FIRST]))
    await await_until(lambda: journal.store.appended)
    unheard.cancel()

    await asyncio.wait_for(dispatcher._record([NEXT]), 5)

    assert [FIRST, NEXT] == [fact async for _, fact in journal.read(DISPATCHER)]
