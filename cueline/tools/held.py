"""Calls whose file changes wait for a yes (`changes = "held"`).

The command runs on an overlay of the workspace. What it changed is kept beside this machine's other
states until the session's rules let it in. So a crash before that means that nothing happened. Once
all changes fit and are being written, the next attempt writes the rest of them.
"""

import asyncio
import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from cueline.actors.tool_port import FileImage, ToolOrder, ToolOutput, ToolQuestion
from cueline.errors import ToolFailedError
from cueline.events.input_request import REQUESTS_LIMIT, InputRequest
from cueline.events.message import canonical_json
from cueline.files import LOG_FOLDER, make_folder
from cueline.tools.before_image import BEFORE_LIMIT
from cueline.tools.executor import ProcessToolExecutor
from cueline.tools.held_changes import (
    HeldChange,
    Place,
    changes_in,
    check_unchanged,
    places,
    write_changes,
)
from cueline.tools.preview import difference
from cueline.tools.tool import OUTPUT_LIMIT

_SHOWN: Final = REQUESTS_LIMIT - 1000
_LISTED: Final = 50
_SYNCED_ALONE: Final = 64
_KEPT_SECONDS: Final = 30 * 86_400
_ENDED: Final = {"timeout", "killed"}
_MANIFEST: Final = "manifest.json"
_WRITING: Final = "writing"
_WRITTEN: Final = "written"
_GONE: Final = "what it would change is not on this machine any more; nothing was changed"


class _Manifest(msgspec.Struct, frozen=True):
    """What a call would change, and what it returns once that is written."""

    workspace: str
    changes: list[HeldChange]
    seconds: float
    truncated_from: int | None


class HeldCalls:
    """Runs calls whose changes are held; see `ToolExecutor`."""

    def __init__(
        self, functions: ProcessToolExecutor, environ: Mapping[str, str] = os.environ
    ) -> None:
        """Create the executor, which runs the commands by *functions*."""
        self._functions = functions
        self._environ = environ

    async def call(self, order: ToolOrder) -> ToolOutput | ToolQuestion:
        """Run the command and return what it would change; with an answer, write that.

        A cancelled call that writes is written whole first.

        Raises:
            ToolFailedError: nothing was changed, unless the message says so.
        """
        try:
            if order.given is None:
                return await self._run(order)
            writing = asyncio.create_task(asyncio.to_thread(self._write, order, order.given.state))
            while not writing.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.shield(writing)
            return writing.result()
        except OSError as error:
            why = f"its changes cannot be held or written: {error}"
            raise ToolFailedError("tool_error", why) from error

    async def _run(self, order: ToolOrder) -> ToolOutput | ToolQuestion:
        place = await asyncio.to_thread(self._new_place, order)
        try:
            output = await self._functions.call(replace(order, overlay=str(place)))
            return await asyncio.to_thread(_held, order, place, output)
        except BaseException as error:
            await asyncio.to_thread(_discard, place)
            if isinstance(error, ToolFailedError) and error.kind in _ENDED:
                why = error.message.replace("it may have had effects", "nothing was changed")
                raise ToolFailedError("tool_error", why) from None
            raise

    def _new_place(self, order: ToolOrder) -> Path:
        """Return a new folder for the call's changes.

        What earlier turns of the session held is over, and so is what the call itself held.
        """
        workspace = _workspace(order)
        root = held_folder(self._environ, workspace)
        make_folder(root)
        session = hashlib.sha256(f"{order.session} {workspace}".encode()).hexdigest()[:16]
        turn = f"{session}.{order.effect.partition('.')[0]}."
        mine = f"{session}.{order.effect}."
        for each in root.iterdir():
            earlier = each.name.startswith(f"{session}.") and not each.name.startswith(turn)
            with suppress(OSError):
                old = time.time() - each.stat().st_mtime > _KEPT_SECONDS
                if old or earlier or each.name.startswith(mine):
                    _discard(each)
        place = Path(tempfile.mkdtemp(prefix=mine, dir=root))
        for name in ("upper", "work", "before"):
            (place / name).mkdir()
        shutil.copymode(workspace, place / "upper")
        return place

    def _write(self, order: ToolOrder, state: str) -> ToolOutput:
        """Write what an earlier attempt held, and return its output; again, if it is written."""
        name, _, digest = state.partition(":")
        place = held_folder(self._environ, _workspace(order)) / (name or "none")
        try:
            told = (place / _MANIFEST).read_bytes()
        except FileNotFoundError:
            told = b""
        if hashlib.sha256(told).hexdigest() != digest:
            raise ToolFailedError("tool_error", f"{_GONE}: run it again")
        manifest = msgspec.json.decode(told, type=_Manifest)
        if not (place / _WRITTEN).exists():
            _write_all(place, Path(manifest.workspace), manifest.changes)
            (place / _WRITTEN).touch()
        return ToolOutput(
            (place / "output").read_bytes(),
            manifest.seconds,
            manifest.truncated_from,
            changes=tuple(_images(place, manifest.changes)),
        )


def held_folder(environ: Mapping[str, str], workspace: Path) -> Path:
    """Return the folder for what calls in *workspace* hold; it is not in the workspace.

    Raises:
        ToolFailedError: there is no place for it.
    """
    base = environ.get("XDG_STATE_HOME") or f"{environ.get('HOME', '')}/.local/state"
    for each in (base, f"/var/tmp/cueline-{os.getuid()}"):  # noqa: S108 - a private folder
        place = Path(os.path.realpath(f"{each}/cueline/held"))
        if each.startswith("/") and not place.is_relative_to(workspace):
            return place
    why = f"its changes cannot be held: {workspace} contains the folders for that"
    raise ToolFailedError("tool_error", f"{why}; choose a smaller workspace")


def _discard(place: Path) -> None:
    """Remove *place*, however deep the folders in it are."""
    try:
        shutil.rmtree(place, ignore_errors=True)
    except RecursionError:
        subprocess.run(["rm", "-rf", "--", place], check=False)  # noqa: S603, S607 - it goes deeper


def _workspace(order: ToolOrder) -> Path:
    if order.workspace is None:
        raise ToolFailedError("tool_error", f"{order.tool.name} needs a workspace; there is none")
    return Path(os.path.realpath(order.workspace.path))


def _held(order: ToolOrder, place: Path, output: ToolOutput) -> ToolOutput | ToolQuestion:
    """Return what the call would change; its output, if that is nothing."""
    workspace, content = _workspace(order), output.content
    changes, left_out = changes_in(place / "upper", workspace)
    if left_out:
        content += f"\n[not kept: {', '.join(left_out[:_LISTED])}]".encode()
    if not changes:
        _discard(place)
        return replace(output, content=content)
    manifest = _Manifest(str(workspace), changes, output.seconds, output.truncated_from)
    told = msgspec.json.encode(manifest)
    (place / "output").write_bytes(content)
    with places(workspace) as below, places(place / "upper") as above:
        _keep(changes, below, place / "before")
        text = _described(changes, place / "before", above)
    _sync(changes, place / "upper")
    _write_safely(place / _MANIFEST, told)
    digest = hashlib.sha256(told).hexdigest()
    ended = content.decode(errors="replace").rstrip().rpartition("\n")[2]
    message = _fit(f"[{len(changes):,} changed, sha256 {digest}]\n{ended[:200]}\n{text}")
    request = InputRequest(key="changes", message=message)
    return ToolQuestion((request,), f"{place.name}:{digest}", tuple(each.path for each in changes))


def _sync(changes: Sequence[HeldChange], upper: Path) -> None:
    """Bring the changed files to the disk, also because renaming a file would wait for that."""
    files = [each for each in changes if HeldChange.is_file(each.after)]
    if len(files) > _SYNCED_ALONE:
        with places(upper) as place:
            ctypes.CDLL(None).syncfs(place("")[0])
        return
    for each in files:
        with (upper / each.path).open("rb") as file:
            os.fsync(file.fileno())


def _keep(changes: Sequence[HeldChange], below: Place, kept: Path) -> None:
    """Keep the files as they are before the changes, up to 10 MB a file, and 100 MB a call."""
    room = OUTPUT_LIMIT
    for number, each in enumerate(changes):
        content = _content(below, each.path, each.before)
        if content is not None and len(content) <= room:
            room -= len(content)
            (kept / str(number)).write_bytes(content)


def _content(place: Place, path: str, mark: str) -> bytes | None:
    """Return the content of a file; None for what is no file, or too large."""
    if not HeldChange.is_file(mark):
        return None
    folder, name = place(path)
    with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder), "rb") as file:  # noqa: PTH123
        content = file.read(BEFORE_LIMIT + 1)
    return content if len(content) <= BEFORE_LIMIT else None


def _described(changes: Sequence[HeldChange], kept: Path, above: Place) -> str:
    """Return the changes as a list with digests, and as diffs; no more than people are shown."""
    lines = [str(each) for each in changes[:_LISTED]]
    lines += [f"[{len(changes) - _LISTED:,} more]"] if len(changes) > _LISTED else []
    size = 0
    for number, each in enumerate(changes):
        before, after = _read(kept / str(number)), _content(above, each.path, each.after)
        is_whole = (before is None) != HeldChange.is_file(each.before)
        if size < _SHOWN and is_whole and (before, after) != (None, None):
            lines.append(difference(each.path, before, after))
            size += len(lines[-1])
    return "\n".join(lines)


def _read(file: Path) -> bytes | None:
    return file.read_bytes() if file.exists() else None


def _fit(text: str) -> str:
    """Return as much of *text* as a request may have."""
    rest = "\n[the rest is left out]"
    whole = text
    while (size := len(canonical_json(text))) > _SHOWN:
        text = text.removesuffix(rest)[: int(len(text) * _SHOWN / size) - len(rest)] + rest
    return text if text != whole else whole


def _write_all(place: Path, workspace: Path, changes: Sequence[HeldChange]) -> None:
    """Write *changes* to the workspace; a part may be written already.

    On another file system the files are copied there before the first change.
    """
    ready, upper = workspace / LOG_FOLDER / place.name, place / "upper"
    with places(workspace) as target:
        if not (place / _WRITING).exists():
            check_unchanged(changes, target)
            if upper.stat().st_dev != workspace.stat().st_dev:
                _copy(changes, upper, ready)
            _write_safely(place / _WRITING, b"")
        with places(ready if ready.is_dir() else upper) as source:
            write_changes(changes, source, target)
    shutil.rmtree(ready, ignore_errors=True)
    with suppress(OSError):
        ready.parent.rmdir()  # unless a log is in it


def _copy(changes: Sequence[HeldChange], upper: Path, ready: Path) -> None:
    if ready.parent.is_symlink():
        raise ToolFailedError("tool_error", f"{ready.parent} is a link; nothing was changed")
    shutil.rmtree(ready, ignore_errors=True)
    ready.mkdir(parents=True, mode=0o700)
    for each in changes:
        if each.after:
            (ready / each.path).parent.mkdir(parents=True, exist_ok=True)
            if (upper / each.path).is_dir() and not (upper / each.path).is_symlink():
                (ready / each.path).mkdir(exist_ok=True)
                shutil.copymode(upper / each.path, ready / each.path)
            else:
                shutil.copy2(upper / each.path, ready / each.path, follow_symlinks=False)


def _write_safely(file: Path, content: bytes) -> None:
    """Write *file*, which is there whole or not at all."""
    half = file.with_suffix(".half")
    with half.open("wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    half.rename(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _images(place: Path, changes: Sequence[HeldChange]) -> Iterator[FileImage]:
    """Yield the changed files, as they were before."""
    kept = {*os.listdir(place / "before")}  # noqa: PTH208 - only the names
    for number, each in enumerate(changes):
        was, now = HeldChange.is_file(each.before), HeldChange.is_file(each.after)
        if was or now:
            mode, _, before = each.before.partition(" ") if was else ("", "", "")
            after = each.after.partition(" ")[2] if now else ""
            if before != after:
                content = None
                if str(number) in kept:
                    content = (place / "before" / str(number)).read_bytes()
                yield FileImage(each.path, before, after, int(mode, 8) if was else None, content)
