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
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from cueline.actors.sandbox_port import (
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
from cueline.tools.shell import Printed, follow, start_guarded

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

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        """Keep the sandboxes beside this user's other states, as *environ* names the place."""
        base = environ.get("XDG_STATE_HOME") or f"{environ.get('HOME') or '/root'}/.local/state"
        self._root = Path(base) / "cueline" / "sandboxes"
        self._volumes = self._root.with_name("volumes")
        self._environ = environ

    def create(
        self, spec: SandboxSpec, labels: Mapping[str, str], environment: Mapping[str, str]
    ) -> str:
        try:
            overlay_rung("sandbox")
        except ConfigError as error:
            raise SandboxError(labels[NAME_LABEL], error.reason) from None
        if spec.image:
            why = "a local sandbox has the system of this machine: leave `image` out"
            raise SandboxError(labels[NAME_LABEL], why)
        place = hashlib.sha256(labels[NAME_LABEL].encode()).hexdigest()[:24]
        folder = self._root / place
        if not (folder / _ABOUT).exists():
            make_folder(folder)
            for name in ("layers", "upper", "work", "workspace"):
                (folder / name).mkdir(exist_ok=True)
            if spec.workspace:
                shutil.copymode(spec.workspace, folder / "upper")
            if spec.volume:
                self.volume(spec.volume)
            about = _About(spec.model_dump(mode="json"), {**labels}, {**environment})
            _write_whole(folder / _ABOUT, msgspec.json.encode(about))
        self.start(place)
        return place

    def start(self, place: str) -> None:
        (self._folder(place) / _STOPPED).unlink(missing_ok=True)

    def stop(self, place: str) -> None:
        with self._alone(place) as folder:
            (folder / _STOPPED).touch()

    def delete(self, place: str) -> None:
        folder = self._root / place
        with suppress(FileNotFoundError):
            (folder / _ABOUT).unlink()
        if folder.exists():
            _remove(folder)

    def state(self, place: str) -> SandboxState:
        folder = self._root / place
        if not (folder / _ABOUT).exists():
            return "gone"
        return "stopped" if (folder / _STOPPED).exists() else "started"

    def find(self, labels: Mapping[str, str]) -> Collection[FoundSandbox]:
        found = []
        for each in self._root.glob(f"*/{_ABOUT}"):
            has = self._about(each.parent).labels
            if labels.items() <= has.items():
                place = each.parent.name
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
        with self._alone(place) as folder:
            if self.state(place) != "started":
                raise SandboxError(place, "it is stopped")
            return self._run(folder, command, stdin, environment or {}, timeout_seconds)

    def put(self, place: str, path: str, content: bytes) -> None:
        command = ["/bin/sh", "-c", _WRITE, "sh", path]
        ended = self.exec(place, command, stdin=content, timeout_seconds=_SECONDS)
        if ended.exit_code:
            raise SandboxError(place, f"{path} cannot be written: {_text(ended)}")

    def get(self, place: str, path: str) -> bytes:
        command = ["/bin/sh", "-c", _READ, "sh", path]
        ended = self.exec(place, command, timeout_seconds=_SECONDS)
        if ended.exit_code == _NO_FILE:
            raise FileNotFoundError(path)
        if ended.exit_code:
            raise SandboxError(place, f"{path} cannot be read: {_text(ended)}")
        return ended.output

    def volume(self, name: str) -> None:
        make_folder(self._volumes / name)

    def snapshot(self, place: str) -> int:
        """Freeze what the sandbox has changed so far; return the number of its layers.

        Without a change since the last snapshot, nothing is frozen.
        """
        with self._alone(place) as folder:
            layers, upper = folder / "layers", folder / "upper"
            kept = len(list(layers.iterdir()))
            if not any(upper.iterdir()):
                return kept
            mode = upper.stat().st_mode
            upper.rename(layers / f"{kept:04}")
            upper.mkdir()
            upper.chmod(mode & 0o7777)
            return kept + 1

    def fork(self, place: str, layers: int, labels: Mapping[str, str]) -> str:
        """Create a sandbox with the first *layers* of another one, and return its place."""
        origin = self._folder(place)
        about = self._about(origin)
        spec = SandboxSpec.model_validate(about.spec)
        made = self.create(spec, labels, about.environment)
        for each in sorted((origin / "layers").iterdir())[:layers]:
            # The files of a layer are never changed, so two sandboxes can have the same ones.
            copy = ["cp", "-al", str(each), str(self._root / made / "layers" / each.name)]
            done = subprocess.run(copy, capture_output=True, text=True, check=False)  # noqa: S603
            if done.returncode:
                self.delete(made)
                raise SandboxError(place, f"it cannot be copied: {done.stderr.strip()}")
        return made

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
        workspace = Path(spec.workspace or folder / "workspace")
        mounts = {str(self._volumes / spec.volume): VOLUME_PATH} if spec.volume else {}
        basic = {name: self._environ[name] for name in _BASIC if name in self._environ}
        printed = Printed()
        with sandbox(
            command,
            isolation=Isolation(
                network=spec.network, limits=IsolationLimits(memory_mb=spec.memory_mb)
            ),
            environment={**basic, **about.environment, **environment},
            workspace=workspace,
            overlay=str(folder),
            mounts=mounts,
        ) as box:
            with start_guarded(box, workspace, fed=True) as process:
                threading.Thread(target=_feed, args=(process, stdin), daemon=True).start()
                ended = follow(process, printed, time.monotonic() + seconds)
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
    def _alone(self, place: str) -> Iterator[Path]:
        """Lock the sandbox: an overlay that is mounted twice at a time loses changes."""
        folder = self._folder(place)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield self._folder(place)
        finally:
            os.close(descriptor)


_BASIC: Final = ("PATH", "HOME", "USER", "LANG", "TERM")


def _feed(process: subprocess.Popen[bytes], content: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ValueError):
        process.stdin.write(content)
    with suppress(BrokenPipeError, ValueError):
        process.stdin.close()


def _text(ended: Executed) -> str:
    return ended.output.decode(errors="replace").strip()[-1000:]


def _write_whole(path: Path, content: bytes) -> None:
    new = path.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_bytes(content)
    new.rename(path)


def _remove(folder: Path) -> None:
    """Remove *folder*, also what an overlay left that nobody may enter."""
    for root, folders, _ in os.walk(folder):
        for inner in (Path(root, name) for name in folders):
            with suppress(OSError):
                if not inner.is_symlink():
                    inner.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
