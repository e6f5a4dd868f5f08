"""The checks of `cueline doctor`; each function is one check."""

import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

from cueline.agents.preflight import check_log, has_full_text, sqlite_version
from cueline.cli import open_log
from cueline.cli.settings_context import SettingsContext
from cueline.cli.up_lookup import command
from cueline.client.providers import provider_rows
from cueline.client.verify import BadRow
from cueline.console.text import count
from cueline.errors import CuelineError
from cueline.events.log_url import LogUrl
from cueline.isolation import ladder
from cueline.providers.factory import retirements
from cueline.runtime.on_ray import count_nodes
from cueline.runtime.up_record import find_up

_PROC = Path("/proc")
_LISTENS = "0A"


def open_ports(pid: int) -> Counter[str]:
    """Return the number of listening ports by address; empty without /proc."""
    sockets = {each for process in _below(pid) for each in _open_in(process)}
    return Counter(str(address) for address, inode in _listeners() if inode in sockets)


def _below(pid: int) -> set[int]:
    parents = dict(_parents())
    found, size = {pid}, 0
    while size < len(found):
        size = len(found)
        found |= {child for child, parent in parents.items() if parent in found}
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for file in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            # The name of the program stands in parentheses, and may hold anything.
            yield int(file.parent.name), int(file.read_text().rpartition(")")[2].split()[1])


def _open_in(pid: int) -> Iterator[str]:
    with suppress(OSError):  # it has ended, or is another user's
        for file in (_PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                yield str(file.readlink()).removeprefix("socket:[").removesuffix("]")


def _listeners() -> Iterator[tuple[object, str]]:
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == _LISTENS:
                    yield _address(words[1].partition(":")[0]), words[9]


def _address(written: str) -> object:
    """Return the IP address *written* as in /proc: words of four bytes in reverse order."""
    told = bytes.fromhex(written)
    address = ip_address(b"".join(told[n : n + 4][::-1] for n in range(0, len(told), 4)))
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


_PYTHON = (3, 11)
_FSYNCS = 20
_FAST_MS = 0.02
"""A disk that syncs faster than this very likely does not sync at all."""
_SLOW_MS = 30.0
_ROOM = 1_000_000_000
_MAKE_ROOM_FOR_RAY = "make room, or point TMPDIR elsewhere: Ray needs it"
_MAKE_ROOM = "make room: a log on a full disk takes nothing more"
_CHECKED = 100_000
"""The number of events that can be checked in a few seconds."""


class DoctorFinding(NamedTuple):
    """The result of one check."""

    subject: str
    verdict: Literal["good", "warn", "bad"]
    found: str
    advice: str = ""


def python() -> DoctorFinding:
    """Check the running Python."""
    found = f"{platform.python_version()} ({platform.system()} {platform.machine()})"
    if sys.version_info[:2] < _PYTHON:
        return DoctorFinding("Python", "bad", found, "install Python 3.11 to 3.14")
    return DoctorFinding("Python", "good", found)


def package() -> Iterator[DoctorFinding]:
    """Tell which cueline runs, and which of its extras are installed."""
    yield DoctorFinding("cueline", "good", f"{version('cueline')} ({Path(__file__).parents[1]})")
    offered = metadata("cueline").get_all("Provides-Extra") or ()
    lacking = {extra: _lacks("cueline", extra) for extra in offered}
    there = ", ".join(extra for extra in offered if not lacking[extra])
    absent = ", ".join(f"{extra} (needs {lacking[extra]})" for extra in offered if lacking[extra])
    yield DoctorFinding("extras", "good", f"{there or 'none'}{absent and '; without '}{absent}")


_REQUIREMENT = re.compile(r"""([\w.-]+)(?:\[([\w,-]+)\])?.*extra == ["']([\w-]+)["']""")


def _lacks(distribution: str, extra: str) -> str:
    """Return the first package that *extra* needs and that is not installed, or ''."""
    for line in requires(distribution) or ():
        found = _REQUIREMENT.match(line)
        if found is None or found[3] != extra:
            continue
        try:
            version(found[1])
        except PackageNotFoundError:
            return found[1]
        for inner in filter(None, (found[2] or "").split(",")):
            if lacking := _lacks(found[1], inner):
                return lacking
    return ""


def sqlite() -> DoctorFinding:
    """Check the SQLite library in use."""
    try:
        found = sqlite_version()
    except CuelineError as error:
        return DoctorFinding("SQLite", "bad", str(error))
    if not has_full_text():
        advice = "install pysqlite3 where it has a wheel, or a Python whose SQLite has it"
        return DoctorFinding("SQLite", "bad", f"{found}, without FTS5 (full text)", advice)
    return DoctorFinding("SQLite", "good", f"{found}, with FTS5")


def disk(log: LogUrl) -> Iterator[DoctorFinding]:
    """Check the file system of the log's file, also if the file does not exist yet."""
    try:
        files = check_log(log).files
    except CuelineError as error:
        yield DoctorFinding("disk", "bad", str(error))
        return
    if not files:
        return
    folder = _existing(files[0].parent)
    free = shutil.disk_usage(folder).free
    found = f"{folder}, {free / 1e9:,.1f} GB free"
    if not os.access(folder, os.W_OK):
        yield DoctorFinding(
            "disk", "bad", f"{found}, not writable", "mend its permissions, or use --log"
        )
        return
    advice = _MAKE_ROOM if free < _ROOM else ""
    yield DoctorFinding("disk", "warn" if advice else "good", found, advice)
    try:
        yield _sync_time(folder)
    except OSError as error:
        yield DoctorFinding("fsync", "bad", f"nothing can be written: {error.strerror}", _MAKE_ROOM)


def _sync_time(folder: Path) -> DoctorFinding:
    with tempfile.TemporaryFile(dir=folder) as file:
        times = []
        for _ in range(_FSYNCS):
            began = time.perf_counter()
            os.write(file.fileno(), b"x" * 4096)
            os.fsync(file.fileno())
            times.append((time.perf_counter() - began) * 1000)
    found = f"{median(times):.2f} ms"
    if median(times) < _FAST_MS:
        advice = "so fast that it may not reach the disk (tmpfs, or a cache that lies)"
        return DoctorFinding(
            "fsync", "warn", found, f"{advice}; a power cut could lose the last events"
        )
    if median(times) > _SLOW_MS:
        return DoctorFinding(
            "fsync", "warn", found, "each turn waits twice for it; use a faster disk"
        )
    return DoctorFinding("fsync", "good", found)


def log(path: LogUrl) -> DoctorFinding:
    """Check the events of the log, if the log exists."""
    try:
        exists, files = check_log(path)
        if not exists:
            return DoctorFinding("log", "good", f"none at {path} yet; `cueline run` makes it")
        last, bad = open_log.run(_checked(path))
    except CuelineError as error:
        return DoctorFinding("log", "bad", str(error))
    sizes = [f", {file.stat().st_size / 1e6:,.1f} MB" for file in files[:1]]
    found = f"{path}, {last:,} events{''.join(sizes)}"
    verify = command(path, "audit", "verify")
    if bad:
        where = f"{bad[0].place}: {bad[0].reason}"
        damaged = f"damaged in {count(len(bad), 'place')}"
        advice = f"restore it from a backup; `{verify}` names every one, other streams still load"
        return DoctorFinding("log", "bad", f"{found}, {damaged}: {where}", advice)
    advice = f"too long to be checked here; `{verify}` does" if last > _CHECKED else ""
    return DoctorFinding("log", "good", found, advice)


async def _checked(path: LogUrl) -> tuple[int, tuple[BadRow, ...]]:
    """Return the last position, and the damage if the log is short enough for a check."""
    async with open_log.reader(path) as reader:
        last = await reader.log.store.last_position()
        return last, (await reader.verify()).bad if last <= _CHECKED else ()


def temporary() -> DoctorFinding:
    """Check the folder for temporary files, which Ray fills."""
    try:
        folder = Path(tempfile.gettempdir())
    except OSError:  # it tries them out
        return DoctorFinding("tmp", "bad", "no folder takes a file", _MAKE_ROOM_FOR_RAY)
    free = shutil.disk_usage(folder).free
    found = f"{folder}, {free / 1e9:,.1f} GB free"
    if free < _ROOM:
        return DoctorFinding("tmp", "warn", found, _MAKE_ROOM_FOR_RAY)
    return DoctorFinding("tmp", "good", found)


def isolation() -> DoctorFinding:
    """Check what isolates commands, by running one."""
    found = ladder.rung()
    if not found.kind:
        advice = f"{found.fix}; or {ladder.GIVE_UP}"
        return DoctorFinding("isolation", "warn", f"none: {found.cause}", advice)
    why = f", because {found.cause}" if found.cause else ""
    advice = "; ".join(filter(None, (found.gap, found.fix)))
    return DoctorFinding("isolation", "warn" if advice else "good", f"{found.name}{why}", advice)


def held_changes() -> DoctorFinding:
    """Check whether changes of commands can wait for a yes."""
    found = ladder.overlays()
    if not found.program:
        return DoctorFinding("held changes", "warn", f"no: {found.cause}", found.fix)
    return DoctorFinding("held changes", "good", f"bubblewrap {found.version} ({found.program})")


def ray() -> Iterator[DoctorFinding]:
    """Check the installed Ray, without importing it."""
    from cueline.cluster.connection import has_token

    try:
        found = version("ray")
    except PackageNotFoundError:
        advice = "install it, or run without --ray"
        yield DoctorFinding("Ray", "warn", "not installed", advice)
        return
    yield DoctorFinding("Ray", "good", found)
    mode = os.environ.get("RAY_AUTH_MODE", "")
    address = os.environ.get("RAY_ADDRESS", "")
    if mode == "token":
        advice = "" if has_token() else "set RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH"
        yield DoctorFinding("Ray auth", "bad" if advice else "good", "token", advice)
    elif address:
        advice = "whoever reaches its ports runs code there; set RAY_AUTH_MODE=token on every node"
        yield DoctorFinding("Ray auth", "warn", f"off, and RAY_ADDRESS is {address}", advice)
    else:
        yield DoctorFinding(
            "Ray auth", "good", "off; a Ray that cueline starts is this machine's own"
        )


def ports(log: LogUrl) -> DoctorFinding:
    """Check the listening ports of a running `cueline up` and its Ray."""
    running = find_up(log)
    if running is None:
        found = "no `cueline up` runs here; a Ray that cueline starts listens on 127.0.0.1 alone"
        return DoctorFinding("Ray ports", "good", found)
    if running.kept_by == "ray" or not running.lives:
        found = f"those of the cluster at {running.address}, where `cueline up` is"
        return DoctorFinding("Ray ports", "good", found)
    there = open_ports(running.keeper.pid)
    told = ", ".join(f"{count(number, 'port')} on {at}" for at, number in sorted(there.items()))
    found = f"`cueline up` (process {running.keeper.pid}, Ray at {running.address}): {told or '?'}"
    if there and all(ip_address(each).is_loopback for each in there):
        return DoctorFinding("Ray ports", "good", found)
    advice = "other machines may reach them and run code there; set RAY_AUTH_MODE=token"
    return DoctorFinding("Ray ports", "warn", found, advice)


def nodes(address: str) -> DoctorFinding:
    """Check each node of a Ray cluster."""
    try:
        number = open_log.run(count_nodes(address))
    except CuelineError as error:
        return DoctorFinding("Ray nodes", "bad", str(error))
    return DoctorFinding("Ray nodes", "good", f"{count(number, 'node')}, each with this cueline")


def telemetry(log: LogUrl, outside: SettingsContext) -> Iterator[DoctorFinding]:
    """Check how far the back-end of the settings has the traces."""
    endpoint = outside.settings.telemetry.endpoint
    if endpoint is None:
        return
    if lacking := _lacks("cueline", "otel"):
        advice = f"{lacking} is missing: `pip install 'cueline[otel]'`"
        yield DoctorFinding("telemetry", "bad", f"no traces go to {endpoint}", advice)
        return
    with suppress(CuelineError):  # the check of the log tells it
        if not check_log(log).exists:
            return
        position, last = open_log.run(_exported(log, endpoint))
        found = f"{endpoint} has the traces up to event {position or 0:,} of {last:,}"
        behind = position is None or last - position > _CHECKED
        advice = "`cueline serve` or `cueline telemetry export --follow` sends them"
        kind: Literal["warn", "good"] = "warn" if behind else "good"
        yield DoctorFinding("telemetry", kind, found, advice if behind else "")


async def _exported(log: LogUrl, endpoint: str) -> tuple[int | None, int]:
    from cueline.client.telemetry import exported

    async with open_log.reader(log) as reader:
        return await exported(reader.log, endpoint), await reader.log.store.last_position()


def keys(outside: SettingsContext) -> Iterator[DoctorFinding]:
    """Check the providers' keys, which are never shown."""
    rows = provider_rows(settings_of=outside.of_provider)
    asked = [each for each in rows if each.key or each.needs_key]
    found = ", ".join(f"{each.name}: {each.key or 'none'}" for each in asked)
    advice = ""
    if not any(each.key for each in asked):
        advice = f"`cueline keys set {asked[0].name}` stores one, or set {asked[0].key_variable}"
        without = ", ".join(each.name for each in rows if each.base_url and not each.needs_key)
        advice += f"; {without} needs none" if without else ""
    yield DoctorFinding("keys", "warn" if advice else "good", found, advice)
    for each in rows:
        if each.problem:
            yield DoctorFinding(f"provider {each.name}", "warn", each.problem)


def models(agent: Path | None, outside: SettingsContext) -> Iterator[DoctorFinding]:
    """Check for models that their vendor will end, in the settings and in the file *agent*.

    Raises:
        ConfigError: the file, or a setting, is wrong.
    """
    asking = outside.settings if agent is None else outside.read_agent(agent).agent
    for line in retirements(asking):
        yield DoctorFinding("model", "warn", line)


def _existing(folder: Path) -> Path:
    return folder if folder.exists() else _existing(folder.parent)
