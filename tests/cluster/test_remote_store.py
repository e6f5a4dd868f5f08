import asyncio
import pickle

import pytest
from ray.exceptions import ActorUnavailableError

from cueline.clock import SystemClock
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.log_writer import LogWriterActor
from cueline.cluster.remote_store import RemoteStore
from cueline.events.store import ANY, Write
from cueline.stores.presence import MemoryPresence
from cueline.stores.sqlite import SqliteStore
from cueline.testing.event_store_contract import EventStoreContract
from cueline.testing.event_store_example import SESSION, all_of, begin, facts
from cueline.testing.presence_contract import PresenceContract


class Parts:
    writes_anywhere = False

    def __init__(self, path, clock, *, near):
        self.path = path
        self.clock = clock
        self.near = near

    def log(self):
        return SqliteStore.open(self.path, self.clock), MemoryPresence(self.clock)

    def reader(self):
        return SqliteStore.open(self.path, SystemClock(), read_only=True) if self.near else None


class InProcess(RemoteStore):
    """Calls the writer as Ray would: everything goes through bytes."""

    def __init__(self, factory):
        super().__init__(
            ClusterContext(
                namespace="",
                node="",
                address="",
                machine="",
                owner="",
                detached=False,
                factory=factory,
            )
        )
        self.actor = LogWriterActor(factory)

    async def _call(self, method, *asked):
        asked = pickle.loads(pickle.dumps(asked))
        return pickle.loads(pickle.dumps(await getattr(self.actor, method)(*asked)))

    async def collect_blobs(self, now):
        return await self.actor._log()[0].collect_blobs(now)

    async def close(self):
        await super().close()
        await self.actor._log()[0].close()


class RemoteContract(EventStoreContract):
    near: bool

    @pytest.fixture
    async def store(self, clock, tmp_path):
        store = InProcess(Parts(tmp_path / "log.db", clock, near=self.near))
        await store.actor.start()
        yield store
        await store.close()


class TestRemoteStoreBesideTheFile(RemoteContract):
    near = True


class TestRemoteStoreOnAnotherMachine(RemoteContract):
    near = False


class TestRemoteBoard(PresenceContract):
    @pytest.fixture
    async def board(self, clock, tmp_path):
        board = InProcess(Parts(tmp_path / "log.db", clock, near=False))
        yield board
        await board.close()


class Away(InProcess):
    """Its writer dies over every second call, after it did what was asked."""

    calls = 0

    async def _call(self, method, *asked):
        answer = await super()._call(method, *asked)
        self.calls += 1
        if self.calls % 2:
            raise ActorUnavailableError("gone", None)
        return answer


@pytest.fixture
async def away(tmp_path):
    store = Away(Parts(tmp_path / "log.db", SystemClock(), near=False))
    yield store
    await store.close()


async def test_an_append_whose_answer_was_lost_is_asked_again_and_is_one_append(away):
    appended = await begin(away, events=2)

    assert (2, 2) == (appended.position, len(await all_of(away, SESSION)))


async def test_an_acquire_whose_answer_was_lost_has_taken_place(away):
    assert 1 == await away.acquire(SESSION, "host-1", 0)
    assert 1 == (await away.head(SESSION)).epoch


async def test_what_is_wished_in_one_turn_of_the_loop_goes_in_one_call(away):
    wishes = [away.append([Write(f"inbox-default/{n}", facts(1), ANY)], "k") for n in range(99)]
    await asyncio.gather(*wishes)

    assert 2 == away.calls
