"""The contract that every store of snapshots has to pass."""

# ruff: noqa: SIM300 - a test's name is the fact; what is expected stands first

import pytest

from cueline.events.snapshot import SnapshotRow, SnapshotStore
from cueline.testing.event_store_example import FORK, OTHER, SESSION


async def keep(
    store: SnapshotStore, version: int, *, after: int, stream: str = SESSION, of: str = SESSION
) -> None:
    """Keep a snapshot named by its version, folded from events of *stream* and *of*."""
    name = b"%d" % version
    row = SnapshotRow(version, b"s" + name, b"c" + name, after, {stream, of})
    await store.keep(stream, row)


class SnapshotContract:
    """Subclass it, provide a `store` fixture, and run pytest with `asyncio_mode = "auto"`."""

    @pytest.fixture
    def store(self) -> SnapshotStore:
        """Return an empty store."""
        raise NotImplementedError

    async def test_there_is_none_at_first(self, store: SnapshotStore) -> None:
        assert await store.newest(SESSION) is None
        assert [] == list(await store.chunks(SESSION, 9))
        await store.forget([SESSION])

    async def test_the_newest_counts_up_to_a_version(self, store: SnapshotStore) -> None:
        await keep(store, 3, after=0)
        await keep(store, 5, after=3)

        assert b"s5" == await store.newest(SESSION)
        assert [None, b"s3", b"s3", b"s5"] == [await store.newest(SESSION, n) for n in (2, 3, 4, 5)]
        assert await store.newest(OTHER) is None

    async def test_chunks_add_up(self, store: SnapshotStore) -> None:
        await keep(store, 3, after=0)
        await keep(store, 5, after=3)

        assert [b"c3", b"c5"] == list(await store.chunks(SESSION, 5))
        assert [b"c3"] == list(await store.chunks(SESSION, 3))

    async def test_a_first_one_takes_the_place_of_all(self, store: SnapshotStore) -> None:
        await keep(store, 3, after=0)
        await keep(store, 5, after=3)
        await keep(store, 7, after=0)

        assert [b"c7"] == list(await store.chunks(SESSION, 9))

    async def test_one_that_goes_on_from_none_is_not_kept(self, store: SnapshotStore) -> None:
        await keep(store, 5, after=3)

        assert await store.newest(SESSION) is None

    async def test_the_same_one_is_kept_once(self, store: SnapshotStore) -> None:
        await keep(store, 3, after=0)
        await keep(store, 5, after=3)
        await keep(store, 5, after=3)

        assert [b"c3", b"c5"] == list(await store.chunks(SESSION, 9))

    async def test_a_forgotten_stream_takes_its_forks_with_it(self, store: SnapshotStore) -> None:
        await keep(store, 3, after=0)
        await keep(store, 4, after=0, stream=FORK)
        await keep(store, 5, after=4, stream=FORK)
        await keep(store, 5, after=0, stream=OTHER, of=OTHER)

        await store.forget([SESSION])

        newest = [await store.newest(stream) for stream in (SESSION, FORK, OTHER)]
        assert [None, None, b"s5"] == newest

    async def test_a_forgotten_fork_leaves_its_parent(self, store: SnapshotStore) -> None:
        await keep(store, 3, after=0)
        await keep(store, 4, after=0, stream=FORK)

        await store.forget([FORK])

        assert [b"s3", None] == [await store.newest(stream) for stream in (SESSION, FORK)]
