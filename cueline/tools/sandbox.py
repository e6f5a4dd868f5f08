"""Tools that need the workspace, run in the sandbox of their session."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from msgspec.structs import replace

from cueline.actors.sandbox_port import Executed, SandboxBackend, SandboxForks
from cueline.errors import ConfigError, SandboxError, ToolFailedError
from cueline.errors.suggestion import known_instead
from cueline.events.sandbox import SandboxSpec
from cueline.tools.folder import names_in
from cueline.tools.tool import ToolContext

GROUP: Final = "cueline.sandboxes"
_OWN: Final = {
    "container": "cueline.sandboxes.container:ContainerBackend",
    "daytona": "cueline.sandboxes.daytona:DaytonaBackend",
    "local": "cueline.sandboxes.local:LocalBackend",
    "ray": "cueline.sandboxes.ray:RayBackend",
    "worktree": "cueline.sandboxes.worktree:WorktreeBackend",
}
VARIABLES: Final = {
    "daytona": ("DAYTONA_API_KEY",),
    "ray": ("RAY_SANDBOX_URL", "RAY_SANDBOX_API_TOKEN", "RAY_AUTH_TOKEN"),
}
"""The variables that a back-end needs and that tools do not see otherwise."""
_HELPER: Final = '!f() {{ printf "username=x-access-token\\npassword=%s\\n" "${}"; }}; f'
_SECONDS: Final = 60.0
_SHOWN: Final = 10_000


@cache
def sandbox_backend(name: str) -> SandboxBackend:
    """Return the back-end of this name: cueline's own, or that of an installed package.

    Raises:
        ConfigError: there is no such back-end, or it does not load.
    """
    check_backend(name)
    try:
        backend: SandboxBackend = _known()[name].load()()
    except ImportError as error:
        why = f"{name!r} cannot be loaded: {error}; install it: `pip install 'cueline[{name}]'`"
        raise ConfigError("sandbox", why) from error
    return backend


def check_backend(name: str) -> None:
    """Raise if there is no back-end of this name; it is not loaded.

    Raises:
        ConfigError: install its package, or name another.
    """
    if name not in _known():
        why = f"{name!r} is unknown{known_instead(name, sorted(_known()), 'there are')}"
        raise ConfigError("sandbox", why)


@cache
def _known() -> dict[str, EntryPoint]:
    others = {entry.name: entry for entry in entry_points(group=GROUP)}
    own = {each: EntryPoint(each, target, GROUP) for each, target in _OWN.items()}
    return {**others, **own}


def run_there(
    command: Sequence[str], context: ToolContext, seconds: float, given: bytes = b""
) -> Executed:
    """Run *command* in the sandbox of a call, with *given* as its input.

    Raises:
        ToolFailedError: the back-end failed, or the command was killed after so many *seconds*.
    """
    assert context.sandbox is not None, "the call has a sandbox"
    place = context.sandbox.place
    with as_tool_failures():
        backend = sandbox_backend(context.sandbox.spec.backend)
        backend.keep_alive(place)
        login = _git_login(context.sandbox.spec, place)
        ended = backend.exec(
            place, command, stdin=given, environment=login, timeout_seconds=seconds
        )
        lost = _keep_files(backend, place, context.effect)
    if ended.timed_out:
        reason = f"did not end within {seconds:g} s and was killed; it may have had effects"
        last = ended.output[-_SHOWN:].decode(errors="replace")
        raise ToolFailedError("timeout", f"the command {reason}. The last it printed:\n{last}")
    if lost:
        told = f"\n[no fork can have the files of this call: {lost}]".encode()
        return replace(ended, output=ended.output + told, size=ended.size + len(told))
    return ended


@contextmanager
def mirrored(context: ToolContext, paths: Sequence[str]) -> Iterator[ToolContext]:
    """Yield *context* with a folder that has the files *paths* of the sandbox.

    What the block changes in them is changed in the sandbox at its end.

    Raises:
        PathEscapeError: a path leads out of the workspace.
        ToolFailedError: the sandbox cannot be read or written.
    """
    assert context.sandbox is not None, "the call has a sandbox"
    place = context.sandbox.place
    with as_tool_failures(), TemporaryDirectory(prefix="cueline-") as folder:
        backend = sandbox_backend(context.sandbox.spec.backend)
        backend.keep_alive(place)
        before: dict[str, bytes] = {}
        for path in map("/".join, map(names_in, paths)):
            try:
                before[path] = backend.get(place, path)
            except FileNotFoundError:
                continue
            (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / path).write_bytes(before[path])
        try:
            yield replace(context, folder=Path(folder))
            for path in map("/".join, map(names_in, paths)):
                file = Path(folder) / path
                if not file.is_file():
                    if path in before:
                        backend.exec(place, ["rm", "-f", "--", path], timeout_seconds=_SECONDS)
                elif (after := file.read_bytes()) != before.get(path):
                    backend.put(place, path, after)
        finally:
            _keep_files(backend, place, context.effect)


def _git_login(spec: SandboxSpec, place: str) -> dict[str, str]:
    """Return the variables with which git logs in over HTTPS, for one command."""
    if not spec.git_token:
        return {}
    if (token := os.environ.get(spec.git_variable)) is None:
        raise SandboxError(place, f"{spec.git_token} is not set at the runner: set it")
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "credential.helper",
        "GIT_CONFIG_VALUE_0": _HELPER.format(spec.git_variable),
        spec.git_variable: token,
    }


def _keep_files(backend: SandboxBackend, place: str, effect: str) -> str:
    """Keep the files of the sandbox for forks, if the back-end can; return why it failed.

    The outcome of the call counts in any case; a fork at this call says that it has no files.
    """
    if isinstance(backend, SandboxForks):
        try:
            backend.snapshot(place, effect)
        except (OSError, SandboxError) as error:
            return str(error)
    return ""


@contextmanager
def as_tool_failures() -> Iterator[None]:
    """Raise the failures of a back-end in the block as those of the tool."""
    try:
        yield
    except SandboxError as error:
        raise ToolFailedError("tool_error", f"the sandbox failed: {error.reason}") from error
