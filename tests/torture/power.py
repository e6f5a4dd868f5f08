"""Power cuts and failing disks: a log on files that forget what was not synced, or that fail.

    python -m tests.torture.power --seed 1 --cuts 1000

The writes of one run are recorded. At a cut, the disk has all that was synced, and of the rest
any part, in sectors: so pages are torn. cueline is told of nothing: its SQLite is that of apsw.
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random

import apsw

from tests.torture import apsw_sqlite

apsw_sqlite.install()

from cueline.clock import SystemClock  # noqa: E402 - after its SQLite was chosen
from cueline.errors import CuelineError  # noqa: E402
from cueline.events.chain import Chain  # noqa: E402
from cueline.events.store import ANY, Draft, Write  # noqa: E402
from cueline.stores.sqlite import SqliteStore  # noqa: E402
from cueline.testing.wait import PATIENCE_SECONDS  # noqa: E402

SECTOR = 512
FAULTS = {"full": apsw.FullError, "failed": apsw.IOError, "read-only": apsw.ReadOnlyError}


@dataclass
class Disk:
    """What was done with the files, and how the next acts fail."""

    acts: list[tuple] = field(default_factory=list)
    calls: int = 0
    fails_at: range = range(0)
    """The numbers of the calls that fail."""
    error: type[Exception] = apsw.IOError

    def call(self):
        self.calls += 1
        if self.calls in self.fails_at:
            raise self.error("the test said so")

    def note(self, *act):
        self.acts.append(act)


class File(apsw.VFSFile):
    """A file whose acts are noted."""

    def __init__(self, disk, path, flags):
        self._disk = disk
        disk.call()
        super().__init__("", path, flags)
        name = path.filename() if isinstance(path, apsw.URIFilename) else path
        self._name = Path(name).name if name else ""

    def xRead(self, amount, offset):  # noqa: N802 - apsw's name
        self._disk.call()
        return super().xRead(amount, offset)

    def xWrite(self, data, offset):  # noqa: N802
        self._disk.call()
        super().xWrite(data, offset)
        self._disk.note("write", self._name, offset, bytes(data))

    def xLock(self, level):  # noqa: N802
        try:
            super().xLock(level)
        except apsw.IOError:  # a reader's file, at its close; SQLite goes on without the lock
            raise apsw.BusyError("it can only be read") from None

    def xTruncate(self, size):  # noqa: N802
        self._disk.call()
        super().xTruncate(size)
        self._disk.note("truncate", self._name, size)

    def xSync(self, flags):  # noqa: N802
        self._disk.call()
        super().xSync(flags)
        self._disk.note("sync", self._name)


class Files(apsw.VFS):
    """A file system that passes everything on, and notes it."""

    def __init__(self, disk, name):
        self._disk = disk
        super().__init__(name, "")

    def xOpen(self, name, flags):  # noqa: N802
        return File(self._disk, name, flags)

    def xDelete(self, name, sync):  # noqa: N802
        super().xDelete(name, sync)
        self._disk.note("delete", Path(name).name)


_numbers = count()


class on_disk:  # noqa: N801 - it is used as a function
    """Have the connections that are opened in a block use *disk*."""

    def __init__(self, disk):
        self._name = f"noted-{next(_numbers)}"
        self._files = Files(disk, self._name)

    def __enter__(self):
        apsw_sqlite.vfs = self._name

    def __exit__(self, *_):
        apsw_sqlite.vfs = ""


async def work(path, disk, chance, appends):
    """Append for a while, several at a time; note what was acknowledged, and go on after errors."""
    store = None
    for _ in range(appends):
        try:
            store = store or SqliteStore.open(path, SystemClock())
            streams = chance.sample(range(8), chance.randint(1, 3))
            asked = [append(store, disk, chance, f"session-default/s{s}", s) for s in streams]
            await asyncio.wait_for(asyncio.gather(*asked), PATIENCE_SECONDS)
            if chance.random() < 0.1:
                blob = await store.put_blob(chance.randbytes(20_000))
                disk.note("blob", blob)
        except CuelineError:
            if store is not None and chance.random() < 0.5:
                await close(store)
                store = None
    if store is not None:
        await close(store)


async def append(store, disk, chance, stream, number):
    drafts = [
        Draft("ToolReturned", 1, chance.randbytes(chance.randint(10, 6000)), number, "runner")
        for _ in range(chance.randint(1, 3))
    ]
    done = await store.append([Write(stream, drafts, ANY)], f"key-{chance.random()}")
    disk.note("acknowledged", stream, done.versions[0], done.position)


async def close(store):
    with suppress(CuelineError):  # the disk fails still
        await store.close()


class Image:
    """The disk as a power cut leaves it."""

    def __init__(self, *, forgets=False):
        self.synced: dict[str, bytearray] = {}
        self.pending: dict[str, list[tuple]] = {}
        self._forgets = forgets
        """Whether a sync does nothing, which must be noticed."""

    def take(self, act):
        """Take the next act on the disk."""
        what, name, *rest = act
        if what in {"write", "truncate"}:
            self.pending.setdefault(name, []).append((what, *rest))
        elif what == "sync" and not self._forgets:
            for each in self.pending.pop(name, []):
                apply(each, self.synced.setdefault(name, bytearray()))
        elif what == "delete":
            self.pending.pop(name, None)
            self.synced.pop(name, None)

    def cut(self, folder, chance):
        """Write the files as they may be after a cut of the power now."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        keeps = chance.choice([0.0, 0.5, 0.9, 1.0])
        for name in self.synced.keys() | self.pending.keys():
            content = bytearray(self.synced.get(name, b""))
            for each in self.pending.get(name, []):
                for part in sectors(each):
                    if chance.random() < keeps:
                        apply(part, content)
            (folder / name).write_bytes(content)


def apply(act, content):
    """Do a write or a truncation in *content*."""
    if act[0] == "truncate":
        del content[act[1] :]
        content.extend(bytes(act[1] - len(content)))
        return
    _, offset, data = act
    content.extend(bytes(max(0, offset + len(data) - len(content))))
    content[offset : offset + len(data)] = data


def sectors(act):
    """Yield the parts of a write that reach the disk, or do not, each by itself."""
    if act[0] == "truncate":
        yield act
        return
    _, offset, data = act
    while data:
        size = SECTOR - offset % SECTOR
        yield "write", offset, data[:size]
        offset, data = offset + size, data[size:]


async def faults_of(path, acknowledged, hashes, *, exists):
    """Return what is wrong with the log at *path*."""
    try:
        store = SqliteStore.open(path, SystemClock(), must_exist=exists)
    except CuelineError as error:
        return [f"it does not open: {type(error).__name__}"]
    try:
        found, chains = {}, {}
        async for event in store.read_all():
            chains.setdefault(event.stream, Chain()).check(event)
            found[event.stream, event.version] = event.hash
        wrong = [str(fault) for fault in await store.faults()]
        lost = [each for each in acknowledged if each not in found]
        wrong += [f"{stream}@{version} is lost" for stream, version in lost]
        known = hashes or found
        wrong += [f"{each} is another" for each in found if known.get(each) != found[each]]
        await store.append([Write("session-default/next", [draft()], ANY)], "next")
    except CuelineError as error:
        return [f"it is damaged: {type(error).__name__}"]
    finally:
        await store.close()
    return wrong


def draft():
    return Draft("ToolReturned", 1, b"{}", 0, "runner")


def acknowledged_in(acts):
    """Return the events that were acknowledged, by stream and version."""
    last, found = {}, []
    for act in acts:
        if act[0] == "acknowledged":
            _, stream, version, _ = act
            found += [(stream, each) for each in range(last.get(stream, 0) + 1, version + 1)]
            last[stream] = max(version, last.get(stream, 0))
    return found


async def hashes_of(path):
    store = SqliteStore.open(path, SystemClock(), must_exist=True)
    found = {(event.stream, event.version): event.hash async for event in store.read_all()}
    await store.close()
    return found


def cut_power(folder, seed, cuts, *, appends=150, forgets=False):
    """Record one run, and cut the power at random moments of it; return what was wrong."""
    chance, disk = Random(f"power {seed}"), Disk()
    with on_disk(disk):
        asyncio.run(work(folder / "log.db", disk, chance, appends))
        hashes = asyncio.run(hashes_of(folder / "log.db"))
    moments = Counter(chance.randrange(len(disk.acts)) for _ in range(cuts))
    image, wrong = Image(forgets=forgets), []
    for moment, act in enumerate(disk.acts):
        for _ in range(moments[moment]):
            image.cut(folder / "cut", chance)
            before = acknowledged_in(disk.acts[:moment])
            path = folder / "cut" / "log.db"
            found = asyncio.run(faults_of(path, before, hashes, exists=bool(before)))
            wrong += [f"cut at act {moment}: {each}" for each in found]
        image.take(act)
    return wrong


def fail_disk(folder, seed, *, appends=12, step=1):
    """Have each call of the disk fail, once and for a while; return runs and faults."""
    counted = Disk()
    chance = f"disk {seed}"
    with on_disk(counted):
        asyncio.run(work(folder / "counted.db", counted, Random(chance), appends))
    runs, wrong = 0, []
    for name, error in FAULTS.items():
        for at in range(1, counted.calls + 1, step):
            for lasts in (1, 40):
                disk = Disk(fails_at=range(at, at + lasts), error=error)
                path = folder / f"{name}-{at}-{lasts}.db"
                with on_disk(disk):
                    asyncio.run(work(path, disk, Random(chance), appends))
                before = acknowledged_in(disk.acts)
                found = asyncio.run(faults_of(path, before, {}, exists=bool(before)))
                wrong += [f"{name} at call {at}, {lasts} times: {each}" for each in found]
                runs += 1
                for each in folder.glob(f"{path.name}*"):
                    each.unlink()
    return runs, wrong


def main():
    """Print what was done and what was wrong, as JSON; return 1 if anything was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cuts", type=int, default=1000)
    parser.add_argument("--step", type=int, default=1, help="fail each call of the disk, or fewer")
    parser.add_argument("--forgets", action="store_true", help="a sync does nothing: to be noticed")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        cuts = cut_power(folder, asked.seed, asked.cuts, forgets=asked.forgets)
        runs, disk = (0, []) if asked.forgets else fail_disk(folder, asked.seed, step=asked.step)
    told = {"cuts": asked.cuts, "cut": cuts[:20], "runs": runs, "disk": disk[:20]}
    json.dump(told | {"wrong": len(cuts) + len(disk)}, sys.stdout)
    return 1 if cuts or disk else 0


if __name__ == "__main__":
    sys.exit(main())
