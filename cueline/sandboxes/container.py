"""Sandboxes that are containers of Docker or Podman.

A container's main process waits. A command runs by the exec API, below a shell that reads the
command's input first and then starts the command. So the connection needs no closing of its write
side, which TLS does not have, and none of the output comes before the client reads it. The shell
sends the exit code as its errors, and the command's output and errors as its output, in their
order.
"""

import hashlib
import math
import os
import posixpath
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from cueline.actors.sandbox_port import (
    LOG_LABEL,
    NAME_LABEL,
    OUTPUT_LIMIT,
    VOLUME_PATH,
    Executed,
    FoundSandbox,
    SandboxState,
)
from cueline.errors import SandboxError, SandboxGoneError
from cueline.events.sandbox import SandboxSpec
from cueline.files import LOG_FOLDER, make_folder

IMAGE: Final = "docker.io/library/debian:stable-slim"
"""The image of a sandbox whose spec names none."""
PROCESS_LIMIT: Final = 4096
WORKSPACE: Final = "/workspace"
"""The workspace of a sandbox whose spec names none."""
WORKSPACE_VARIABLE: Final = "CUELINE_WORKSPACE"
"""The variable of all commands with the path of the workspace."""

_CHUNK: Final = 1 << 20
_HEADER: Final = 8
_KILLED: Final = 137
_KILL_SECONDS: Final = 10
_NO_FILE: Final = 44
"""The exit code of the command that reads a file that is missing."""
_OUTPUT: Final = 1
"""The kind of a frame with a part of the shell's output."""
_SECONDS: Final = 60
_SHELL: Final = ("/bin/sh", "-c")
_SOCKETS: Final = (
    "/var/run/docker.sock",
    "{runtime}/docker.sock",
    "{runtime}/podman/podman.sock",
    "/run/podman/podman.sock",
)
"""Where engines listen by default, for all users or for one."""

_READ: Final = f'test -e "$1" || exit {_NO_FILE}; exec cat <"$1"'
_WRITE: Final = 'mkdir -p -- "$2" && exec cat >"$1"'
# SIGURG is ignored by default, so it does no harm before the trap is set.
_WAIT: Final = """trap : URG; until sleep "$0" & wait $!; do kill $!; done"""
# Processes that a command has left belong to its session, and have the init as their parent; or
# they have the mark. The second look is for one that becomes another program: for that moment, it
# has no environment.
_KILL: Final = """\
for look in 1 2; do
    while
        left=$(grep -ls ") [^Z] 1 [0-9]* $$ " /proc/[0-9]*/stat
            grep -ls "CUELINE_EXEC=$0" /proc/[0-9]*/environ)
        [ "$left" ]
    do
        for each in $left; do each=${each#/proc/}; kill -9 "${each%/*}"; done
    done
done
"""
_RUN: Final = f"""\
mkdir -p -- "${WORKSPACE_VARIABLE}" && cd -- "${WORKSPACE_VARIABLE}" || exit
read -r size && head -c "$size" >"/tmp/$0" && [ "$(wc -c <"/tmp/$0")" -eq "$size" ] || exit
exec 3>&2 2>/dev/null <"/tmp/$0"
rm "/tmp/$0"
kill -URG 1
(export CUELINE_EXEC="$0"; exec "$@" 2>&1 3>&-)
code=$?
{_KILL}
echo "$code" >&3
"""


class ContainerBackend:
    """See `SandboxBackend`. It uses the engine at `DOCKER_HOST`, or one of this machine."""

    def __init__(self, image: str = IMAGE) -> None:
        """Use *image* for sandboxes whose spec names none."""
        self._image = image

    def create(
        self, spec: SandboxSpec, labels: Mapping[str, str], environment: Mapping[str, str]
    ) -> str:
        unique = f"{labels.get(LOG_LABEL)}\n{labels[NAME_LABEL]}"
        place = f"cueline-{hashlib.sha256(unique.encode()).hexdigest()[:24]}"
        if self.state(place) == "gone":
            with self._engine(place) as engine:
                engine.containers.create(
                    spec.image or self._image,
                    [*_SHELL, _WAIT, str(math.ceil(spec.auto_stop_seconds))],
                    name=place,
                    entrypoint=[],
                    init=True,
                    labels={**labels},
                    environment={**environment, WORKSPACE_VARIABLE: spec.workspace or WORKSPACE},
                    mounts=_mounts(spec),
                    network_mode=None if spec.network else "none",
                    nano_cpus=int(spec.cpus * 10**9),
                    mem_limit=f"{spec.memory_mb}m",
                    pids_limit=PROCESS_LIMIT,
                    security_opt=["no-new-privileges"],
                )
        self.start(place)
        return place

    def start(self, place: str) -> None:
        with self._engine(place) as engine:
            engine.api.start(place)

    def stop(self, place: str) -> None:
        with self._engine(place) as engine:
            engine.api.stop(place)

    def delete(self, place: str) -> None:
        with suppress(SandboxGoneError), self._engine(place) as engine:
            engine.api.remove_container(place, v=True, force=True)

    def state(self, place: str) -> SandboxState:
        with suppress(SandboxGoneError), self._engine(place) as engine:
            return _state(engine.api.inspect_container(place)["State"]["Status"])
        return "gone"

    def find(self, labels: Mapping[str, str]) -> Collection[FoundSandbox]:
        wanted = {"label": [f"{name}={value}" for name, value in labels.items()]}
        with self._engine("any") as engine:
            return [
                FoundSandbox(each["Names"][0].lstrip("/"), each["Labels"], _state(each["State"]))
                for each in engine.api.containers(all=True, filters=wanted)
            ]

    def keep_alive(self, place: str) -> None:
        with self._engine(place) as engine:
            engine.api.kill(place, "SIGURG")

    def exec(
        self,
        place: str,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float,
    ) -> Executed:
        mark = f"cueline-{uuid4().hex}"
        frames = _Frames()
        with self._attached(place, [*_SHELL, _RUN, mark, *command], environment) as stream:
            deadline = time.monotonic() + timeout_seconds
            stream.settimeout(timeout_seconds)
            stream.sendall(b"%d\n%b" % (len(stdin), stdin))
            # A process without the mark can keep the output open after the command.
            timed_out = not frames.follow(stream, deadline) and not frames.status
            if timed_out:
                with self._attached(place, [*_SHELL, _KILL, mark]) as kill:
                    _Frames().follow(kill, time.monotonic() + _KILL_SECONDS)
                frames.follow(stream, time.monotonic() + _KILL_SECONDS)
        status = frames.status.decode(errors="replace").strip()
        if not status.isdecimal():
            raise SandboxError(place, f"it stopped, or cannot run commands: {status}")
        code = _KILLED if timed_out else int(status)
        return Executed(code, bytes(frames.output), frames.size, timed_out)

    def put(self, place: str, path: str, content: bytes) -> None:
        self._file(place, _WRITE, path, content)

    def get(self, place: str, path: str) -> bytes:
        return self._file(place, _READ, path)

    def volume(self, name: str) -> None:
        with self._engine(name) as engine:
            engine.volumes.create(name)

    def _file(self, place: str, script: str, path: str, content: bytes = b"") -> bytes:
        """Run *script* with *path* and its folder; return what it prints."""
        command = [*_SHELL, script, "sh", path, posixpath.dirname(path) or "."]
        ended = self.exec(place, command, stdin=content, timeout_seconds=_SECONDS)
        if ended.exit_code == _NO_FILE:
            raise FileNotFoundError(path)
        if ended.exit_code:
            raise SandboxError(place, f"{path}: {ended.output.decode(errors='replace').strip()}")
        if ended.size > OUTPUT_LIMIT:
            raise SandboxError(place, f"{path} has more than {OUTPUT_LIMIT:,} bytes")
        return ended.output

    @contextmanager
    def _attached(
        self, place: str, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> Iterator[Any]:
        """Start *command* and yield the connection to its input and output."""
        with self._engine(place) as engine:
            variables = {**(environment or {})}
            begun = engine.api.exec_create(place, command, stdin=True, environment=variables)
            reader = engine.api.exec_start(begun["Id"], socket=True)
            # Without TLS it is a file, which shares the socket with the client.
            stream = getattr(reader, "_sock", reader)
            with closing(reader), closing(stream):
                yield stream

    @contextmanager
    def _engine(self, place: str) -> Iterator[Any]:
        """Yield the client, and translate its errors.

        Raises:
            SandboxGoneError: there is no such container.
            SandboxError: the engine refused, or does not answer.
        """
        try:
            from docker.errors import APIError, DockerException, ImageNotFound, NotFound
        except ModuleNotFoundError as error:
            why = f"{error.name} is missing: `pip install 'cueline[container]'` installs it"
            raise SandboxError(place, why) from None
        try:
            yield self._client
        except ImageNotFound as error:
            fix = "get the image with `docker pull` or `podman pull`"
            raise SandboxError(place, f"{error.explanation}; {fix}") from error
        except NotFound as error:
            raise SandboxGoneError(place, f"the engine has it no more: {error}") from error
        except APIError as error:
            raise SandboxError(place, f"the engine refused: {error}") from error
        except (DockerException, OSError) as error:
            fix = "start docker or `podman system service`, or set DOCKER_HOST"
            raise SandboxError(place, f"the engine does not answer: {error}; {fix}") from error

    @cached_property
    def _client(self) -> Any:
        import docker

        runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
        known = (each.format(runtime=runtime) for each in _SOCKETS)
        host = next((f"unix://{each}" for each in known if Path(each).exists()), "")
        return docker.from_env(timeout=_SECONDS, environment={"DOCKER_HOST": host, **os.environ})


class _Frames:
    """What a command has sent so far."""

    def __init__(self) -> None:
        self.output = bytearray()
        self.size = 0
        self.status = bytearray()
        self._unread = bytearray()

    def follow(self, stream: Any, deadline: float) -> bool:
        """Add what comes from *stream*; return whether it ended by *deadline*."""
        while (left := deadline - time.monotonic()) > 0:
            stream.settimeout(left)
            try:
                chunk = stream.recv(_CHUNK)
            except TimeoutError:
                return False
            if not chunk:
                return True
            self._add(chunk)
        return False

    def _add(self, chunk: bytes) -> None:
        """Add the frames that are whole; a frame has its kind, and its length at the 5th byte."""
        self._unread += chunk
        while len(self._unread) >= (end := _HEADER + int.from_bytes(self._unread[4:_HEADER])):
            content = self._unread[_HEADER:end]
            if self._unread[0] == _OUTPUT:
                self.output += content[: OUTPUT_LIMIT - len(self.output)]
                self.size += len(content)
            else:
                self.status += content
            del self._unread[:end]


def _state(status: str) -> SandboxState:
    if status == "running":
        return "started"
    return "gone" if status in {"dead", "removing"} else "stopped"


def _mounts(spec: SandboxSpec) -> list[Any]:
    from docker.types import Mount

    workspace = [Mount(spec.workspace, spec.workspace, type="bind")] if spec.workspace else []
    log = Path(spec.workspace, LOG_FOLDER)
    if spec.workspace and log.is_dir():
        # No command may reach the log. Podman would mount a tmpfs below the workspace.
        state = os.environ.get("XDG_STATE_HOME") or f"{Path.home()}/.local/state"
        empty = Path(state, "cueline", "empty")
        make_folder(empty)
        workspace.append(Mount(str(log), str(empty), type="bind", read_only=True))
    return workspace + ([Mount(VOLUME_PATH, spec.volume)] if spec.volume else [])
