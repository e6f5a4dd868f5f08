"""Sandboxes of this machine: commands in bubblewrap, on an overlay of the workspace.

A sandbox is a folder. `upper` has what its commands changed, and the folders in `layers` what they
had changed before each snapshot. So a snapshot is the rename of a folder, and a fork shares the
files of the other sandbox's layers. A command runs in the namespaces of its own call and dies with
it, so a sandbox between two commands takes no memory and no processor, started or not.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from cueline.actors.sandbox_port import (
    LOG_LABEL,
    NAME_LABEL,
    VOLUME_PATH,
    Executed,
    FoundSandbox,
    SandboxState,
)
from cueline.errors import ConfigError, SandboxError, SandboxGoneError
from cueline.events.agent_parts import Isolation, IsolationLimits
from cueline.events.sandbox import SandboxSpec
from cueline.files import make_folder
from cueline.isolation.ladder import overlay_rung
from cueline.isolation.sandbox import sandbox
from cueline.sandboxes.layers import MERGED, MOST_LAYERS, link_tree, merge_oldest, remove
from cueline.tools.guarded_process import Printed, follow, start_guarded

_ABOUT: Final = "about.json"
_STOPPED: Final = "stopped"
_SECONDS: Final = 60.0
_NO_FILE: Final = 44
"""The exit code of the command that reads a file that is missing."""
_KILLED: Final = 137
_READ: Final = f'test -e "$1" || exit {_NO_FILE}; exec cat -- "$1"'
_WRITE: Final = 'mkdir -p -- "$(dirname -- "$1")" && exec cat > "$1"'


class _About(msgspec.Struct, frozen=True):
    """What a sandbox was created with; its variables are in a file that this user alone reads."""

    spec: dict[str, object]
    labels: dict[str, str]
    environment: dict[str, str]


class LocalBackend:
    """See `SandboxBackend`."""

    folder_name = "sandboxes"
    has_overlay = True

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        """Keep the sandboxes beside this user's other states, as *environ* names the place."""
        base = environ.get("XDG_STATE_HOME") or f"{environ.get('HOME') or '/root'}/.local/state"
        self._root = Path(base) / "cueline" / self.folder_name
        self._volumes = self._root.with_name("volumes")
        self._environ = environ

    def create(
        self, spec: SandboxSpec, labels: Mapping[str, str], environment: Mapping[str, str]
    ) -> str:
        try:
            self._check(spec)
        except ConfigError as error:
            raise SandboxError(labels[NAME_LABEL], error.reason) from None
        if spec.image:
            why = "a local sandbox has the system of this machine: leave `image` out"
            raise SandboxError(labels[NAME_LABEL], why)
        place = _place_of(labels)
        folder = self._root / place
        if not (folder / _ABOUT).exists():
            make_folder(folder)
            self._fill(folder, spec, labels)
            if spec.volume:
                self.volume(spec.volume)
            about = _About(spec.model_dump(mode="json"), {**labels}, {**environment})
            _write_new(folder / _ABOUT, msgspec.json.encode(about)).rename(folder / _ABOUT)
        self.start(place)
        return place

    def start(self, place: str) -> None:
        (self._folder(place) / _STOPPED).unlink(missing_ok=True)

    def stop(self, place: str) -> None:
        with self._locked(place) as folder:
            (folder / _STOPPED).touch()

    def delete(self, place: str) -> None:
        folder = self._root / place
        if folder.exists():
            for each in folder.iterdir():
                if each.name not in {_ABOUT, _STOPPED}:
                    remove(each)
            # Last, so that it shows as started or stopped, as before, until all else is deleted.
            (folder / _ABOUT).unlink(missing_ok=True)
            remove(folder)

    def state(self, place: str) -> SandboxState:
        folder = self._root / place
        if not (folder / _ABOUT).exists():
            return "gone"
        return "stopped" if (folder / _STOPPED).exists() else "started"

    def find(self, labels: Mapping[str, str]) -> Collection[FoundSandbox]:
        found = []
        name = _place_of(labels) if {LOG_LABEL, NAME_LABEL} <= labels.keys() else "*"
        for each in self._root.glob(f"{name}/{_ABOUT}"):
            place = each.parent.name
            with suppress(FileNotFoundError):  # deleted since
                has = self._about(each.parent).labels
                if labels.items() <= has.items():
                    found.append(FoundSandbox(place, has, self.state(place)))
        return found

    def keep_alive(self, place: str) -> None:
        self._folder(place)

    def exec(
        self,
        place: str,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float,
    ) -> Executed:
        with self._locked(place) as folder:
            if self.state(place) != "started":
                raise SandboxError(place, "it is stopped")
            return self._run(folder, command, stdin, environment or {}, timeout_seconds)

    def put(self, place: str, path: str, content: bytes) -> None:
        command = ["/bin/sh", "-c", _WRITE, "sh", path]
        ended = self.exec(place, command, stdin=content, timeout_seconds=_SECONDS)
        if ended.exit_code:
            raise SandboxError(place, f"{path} cannot be written: {output_text(ended)}")

    def get(self, place: str, path: str) -> bytes:
        command = ["/bin/sh", "-c", _READ, "sh", path]
        ended = self.exec(place, command, timeout_seconds=_SECONDS)
        if ended.exit_code == _NO_FILE:
            raise FileNotFoundError(path)
        if ended.exit_code:
            raise SandboxError(place, f"{path} cannot be read: {output_text(ended)}")
        if ended.size > len(ended.output):
            raise SandboxError(place, f"{path} is too large: {ended.size:,} bytes")
        return ended.output

    def volume(self, name: str) -> None:
        make_folder(self._volumes / name)

    def snapshot(self, place: str, name: str) -> None:
        """Keep what the sandbox has changed so far under *name*; it takes the time of a rename."""
        with self._locked(place) as folder:
            layers, snapshots, upper = (folder / each for each in ("layers", "snapshots", "upper"))
            _make_upper(folder)
            known = sorted(layers.iterdir())
            last = known[-1].name.rstrip(MERGED) if known else ""
            newest = f"{int(last or 0) + 1:06}" if any(upper.iterdir()) else last
            snapshots.mkdir(exist_ok=True)
            written = _write_new(snapshots / name, newest.encode())  # first: it takes room
            if newest != last:
                upper.rename(layers / newest)
                _make_upper(folder)
            written.rename(snapshots / name)
            merge_oldest(layers)

    def fork(self, place: str, name: str, labels: Mapping[str, str]) -> str:
        """Create a sandbox with the files that another one had at the snapshot *name*.

        Raises:
            SandboxError: it has no such snapshot, or not any more.
        """
        with self._locked(place) as origin:
            self._copy_layers(origin, name, self._root / _place_of(labels))
            about = self._about(origin)
        return self.create(SandboxSpec.model_validate(about.spec), labels, about.environment)

    def _copy_layers(self, origin: Path, name: str, fork: Path) -> None:
        """Link the layers of the snapshot *name*, before the fork is one that can be used."""
        place = origin.name
        try:
            last = (origin / "snapshots" / name).read_text()
        except FileNotFoundError:
            raise SandboxError(place, f"it has no snapshot of the call {name}") from None
        layers = {each.name.rstrip(MERGED): each for each in (origin / "layers").iterdir()}
        if last and last not in layers:
            why = f"the files of the call {name} are merged into later ones"
            raise SandboxError(place, f"{why}: at most {MOST_LAYERS} snapshots are kept")
        make_folder(fork / "layers")
        for number, layer in layers.items():
            copy = fork / "layers" / layer.name
            if number <= last and not copy.exists():
                remove(fork / "copied")
                link_tree(layer, fork / "copied")
                (fork / "copied").rename(copy)

    def _check(self, spec: SandboxSpec) -> None:  # noqa: ARG002 - a subclass looks at it
        """Raise `ConfigError` if there can be no sandbox with *spec* here."""
        overlay_rung("sandbox")

    def _fill(self, folder: Path, spec: SandboxSpec, labels: Mapping[str, str]) -> None:  # noqa: ARG002
        """Make the files of a new sandbox; a repetition goes on where a crash cut it off."""
        for name in ("layers", "upper", "work", "workspace"):
            (folder / name).mkdir(exist_ok=True)
        if spec.workspace:
            shutil.copymode(spec.workspace, folder / "upper")

    def _access(self, folder: Path, spec: SandboxSpec) -> tuple[Path, dict[str, Any]]:
        """Return the folder of its commands, and what they can read and write besides."""
        return Path(spec.workspace or folder / "workspace"), {}

    def _run(
        self,
        folder: Path,
        command: Sequence[str],
        stdin: bytes,
        environment: Mapping[str, str],
        seconds: float,
    ) -> Executed:
        about = self._about(folder)
        spec = SandboxSpec.model_validate(about.spec)
        if self.has_overlay:
            _make_upper(folder)
        workspace, access = self._access(folder, spec)
        limits = IsolationLimits(memory_mb=spec.memory_mb)
        mounts = {str(self._volumes / spec.volume): VOLUME_PATH} if spec.volume else {}
        basic = {name: self._environ[name] for name in _BASIC if name in self._environ}
        printed = Printed()
        with sandbox(
            command,
            isolation=Isolation(network=spec.network, limits=limits, **access),
            environment={**basic, **about.environment, **environment},
            workspace=workspace,
            overlay=str(folder) if self.has_overlay else "",
            mounts=mounts,
        ) as box:
            with start_guarded(box, workspace, fed=True) as process:
                threading.Thread(target=_feed, args=(process, stdin), daemon=True).start()
                ended = follow(process, printed, seconds)
            code = box.exit_code(process.returncode)
        return Executed(
            exit_code=_KILLED if not ended else 128 - code if code < 0 else code,
            output=bytes(printed.kept),
            size=printed.size,
            timed_out=not ended,
        )

    def _folder(self, place: str) -> Path:
        folder = self._root / place
        if not (folder / _ABOUT).exists():
            raise SandboxGoneError(place, f"there is no folder {folder}")
        return folder

    def _about(self, folder: Path) -> _About:
        return msgspec.json.decode((folder / _ABOUT).read_bytes(), type=_About)

    @contextmanager
    def _locked(self, place: str) -> Iterator[Path]:
        """Lock the sandbox: an overlay that is mounted twice at a time loses changes."""
        with locked(self._folder(place)):
            yield self._folder(place)


_BASIC: Final = ("PATH", "HOME", "USER", "LANG", "TERM")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Wait for the lock of a folder, which one holder at a time has in all processes."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _place_of(labels: Mapping[str, str]) -> str:
    unique = f"{labels.get(LOG_LABEL)}\n{labels[NAME_LABEL]}"
    return hashlib.sha256(unique.encode()).hexdigest()[:24]


def _feed(process: subprocess.Popen[bytes], content: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ValueError):
        process.stdin.write(content)
    with suppress(BrokenPipeError, ValueError):
        process.stdin.close()


def output_text(ended: Executed) -> str:
    """Return the end of what a command printed."""
    return ended.output.decode(errors="replace").strip()[-1000:]


def _make_upper(folder: Path) -> None:
    """Make the folder of changes, which a snapshot that was cut off has left out."""
    upper, layers = folder / "upper", folder / "layers"
    if not upper.exists():
        upper.mkdir()
        upper.chmod(max(layers.iterdir()).stat().st_mode & 0o7777)


def _write_new(path: Path, content: bytes) -> Path:
    """Write the file that will be renamed to *path*, and return it."""
    new = path.with_name(f".{path.name}.new")
    new.touch(mode=0o600)
    new.write_bytes(content)
    return new
