"""Whatever happens to the file of the snapshots, at whatever moment, the session is the same."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from cueline.stores import SqliteSnapshots
from tests.actors.test_snapshots import VERSIONS, WHOLE, check_same, whole_after
from tests.drawn import drawn


async def rest(path, *versions):
    """Keep snapshots of the story at *versions*."""
    for version in versions:
        await whole_after(version, SqliteSnapshots(path, every=0))


def whole_file():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.db.snapshots")
        asyncio.run(rest(path, 5, 20, VERSIONS - 3))
        return path.read_bytes()


WHOLE_FILE = whole_file()
LENGTH = len(WHOLE_FILE)
place_in_it = st.integers(0, LENGTH - 1)
overwritten = st.tuples(place_in_it, st.binary(min_size=1, max_size=64)).map(
    lambda at: WHOLE_FILE[: at[0]] + at[1] + WHOLE_FILE[at[0] + len(at[1]) :]
)
cut = place_in_it.map(lambda at: WHOLE_FILE[:at])
swapped = st.tuples(place_in_it, place_in_it).map(
    lambda at: WHOLE_FILE[min(at) :] + WHOLE_FILE[: min(at)]
)
nothing_of_ours = st.binary(max_size=200)


@settings(max_examples=drawn(150), deadline=None)
@given(st.one_of(overwritten, cut, swapped, nothing_of_ours), st.integers(1, VERSIONS))
def test_a_damaged_file_changes_nothing(content, again):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.db.snapshots")
        path.write_bytes(content)

        asyncio.run(go_on(path, again))


async def go_on(path, again):
    """See that the session is the same, also when it rests once more, and the next time."""
    kept = SqliteSnapshots(path, every=0)
    await check_same(WHOLE.place, kept)
    await rest(path, again)
    await check_same(WHOLE.place, kept)


async def test_undamaged_it_is_gone_on_from(tmp_path):
    path = tmp_path / "log.db.snapshots"
    path.write_bytes(WHOLE_FILE)
    kept = SqliteSnapshots(path, every=0)

    assert VERSIONS - 3 == (await check_same(WHOLE.place, kept))._snapshot
