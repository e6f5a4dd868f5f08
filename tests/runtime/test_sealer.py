"""A log that is sealed by itself: how often, by whom, and what is kept outside of it."""

import errno
from dataclasses import replace

import pytest

from cueline.client.verify import verify_log
from cueline.config.settings import SealSettings
from cueline.errors import ConfigError
from cueline.events.journal import FactWrite
from cueline.events.seal import SEAL_STREAM
from cueline.events.store import NO_STREAM
from cueline.events.token import TokenRevoked
from cueline.runtime.sealer import sealing

EVERY = SealSettings(every_seconds=60, every_events=10)


class Sealed:
    """A log with a loop that seals it, and notes in a folder."""

    def __init__(self, log, folder):
        self.log, self.folder = log, folder
        self.trouble = []
        self.added = 0

    def loop(self):
        return sealing(self.log, lambda *told: self.trouble.append(told))

    async def add(self, count=1):
        for _ in range(count):
            self.added += 1
            fact = TokenRevoked(token="a", by="ada", at=self.log.clock.now())
            write = FactWrite(f"token-default/t{self.added}", [[fact]], NO_STREAM)
            await self.log.journal().append([write], key=f"{self.added}")

    async def seals(self):
        return (await self.log.store.head(SEAL_STREAM)).version

    def notes(self):
        return sorted(int(each.stem) for each in self.folder.glob("*.txt"))


@pytest.fixture
def sealed(log, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    settings = EVERY.model_copy(update={"folder": str(tmp_path / "seals")})
    return Sealed(replace(log, seal=settings), tmp_path / "seals")


async def test_an_event_is_sealed_after_a_minute(sealed, clock):
    await sealed.add(3)
    with sealed.loop():
        await clock.advance(60)
        before = await sealed.seals(), sealed.notes()
        await clock.advance(1)

        assert (0, []) == before
        assert (1, [3]) == (await sealed.seals(), sealed.notes())
    checked = await verify_log(sealed.log, sealed.folder)
    assert ((), 1, 3) == (checked.bad, checked.seals, checked.sealed)


async def test_many_new_events_are_sealed_at_once(sealed, clock):
    with sealed.loop():
        await sealed.add(9)
        await clock.advance(2)
        before = await sealed.seals()
        await sealed.add()
        await clock.advance(1)

        assert (0, 1, [10]) == (before, await sealed.seals(), sealed.notes())


async def test_a_log_at_rest_is_not_sealed_again(sealed, clock):
    await sealed.add()
    with sealed.loop():
        await clock.advance(600)

    assert (1, []) == (await sealed.seals(), sealed.trouble)


class _Busy:
    """A store to which another process appends an event right before the first seal."""

    def __init__(self, sealed):
        self._sealed, self._store, self._other = sealed, sealed.log.store, sealed.log

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def append(self, writes, key):
        if writes[0].stream == SEAL_STREAM and self._sealed.log is not self._other:
            self._sealed.log = self._other
            await self._sealed.add()
        return await self._store.append(writes, key)


async def test_an_event_that_comes_before_the_seal_is_sealed_by_the_next(sealed, clock):
    await sealed.add(3)
    sealed.log = replace(sealed.log, store=_Busy(sealed))
    with sealed.loop():
        await clock.advance(300)

    assert (2, [5]) == (await sealed.seals(), sealed.notes())
    assert 5 == (await verify_log(sealed.log, sealed.folder)).sealed


async def test_a_note_that_cannot_be_written_leaves_no_part_of_it(sealed, clock, monkeypatch):
    await sealed.add()
    with sealed.loop():
        await clock.advance(62)
        monkeypatch.setattr("cueline.files.os.fsync", _no_space)
        await sealed.add()
        await clock.advance(62 + 60)

    assert (2, [1]) == (await sealed.seals(), sealed.notes())
    assert "No space" in str(sealed.trouble[0][1])
    assert [] == [each for each in sealed.folder.iterdir() if each.name != "1.txt"]


def _no_space(_file):
    raise OSError(errno.ENOSPC, "No space left on device")


async def test_of_several_that_seal_a_log_one_does(sealed, clock):
    await sealed.add()
    with sealed.loop(), sealed.loop(), sealed.loop():
        await clock.advance(62)
        await sealed.add()
        await clock.advance(62)

        assert 2 == await sealed.seals()
    (first, second) = [event async for event in sealed.log.store.read(SEAL_STREAM)]
    assert ("system:sealer", 62) == (
        first.actor,
        (second.recorded_at - first.recorded_at).total_seconds(),
    )


async def test_the_newest_note_of_each_day_is_kept(sealed, clock):
    with sealed.loop():
        for _ in range(4):
            await sealed.add()
            await clock.advance(5 * 3600)  # from noon on

    assert [5, 7] == sealed.notes()
    assert () == (await verify_log(sealed.log, sealed.folder)).bad


async def test_a_seal_that_fails_is_tried_again_a_minute_later(sealed, clock):
    sealed.folder.write_text("a file where the folder should be\n")
    await sealed.add()
    with sealed.loop():
        await clock.advance(59 + 60)
        before = len(sealed.trouble)
        await clock.advance(10)
        [(what, error)] = sealed.trouble
        sealed.folder.unlink()
        await sealed.add()
        await clock.advance(200)

    assert (0, "sealing the log") == (before, what)
    assert isinstance(error, ConfigError)
    assert [3] == sealed.notes()


@pytest.mark.parametrize("seal", [None, SealSettings(every_seconds=0)])
async def test_a_log_is_not_sealed_where_the_settings_say_so(sealed, clock, seal):
    sealed.log = replace(sealed.log, seal=seal)
    await sealed.add(20)
    with sealed.loop():
        await clock.advance(600)

    assert 0 == await sealed.seals()
