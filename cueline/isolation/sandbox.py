"""One isolated command: what to run, in which environment, and whether it began."""

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from cueline.events.agent_parts import Isolation
from cueline.isolation import forwarder
from cueline.isolation.bwrap import arguments, grants, private_environment, this_machine
from cueline.isolation.filter_file import filter_file
from cueline.isolation.ladder import check, overlay_rung
from cueline.isolation.landlock import BEGAN, Restriction, check_grants, restricted
from cueline.isolation.limits import ProcessLimits

_SIGNALLED = 128
_LAST_SIGNAL = 64
_FAILED = 1
"""The status of a bwrap that fails; that of a command is in the file `status`, too."""
_TOLD = 4096


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A command as a program has to start it: arguments, environment, inherited descriptors."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    descriptors: Sequence[int] = ()
    limits: ProcessLimits | None = None
    status: int | None = None
    restriction: Restriction | None = None

    def before_fork(self) -> None:
        """Prepare the process that will fork the command; it must start nothing else."""
        if self.limits is not None:
            self.limits.before_fork()

    def before_exec(self) -> None:
        """Set the limits of the process that becomes the command."""
        if self.limits is not None:
            self.limits.before_exec()
        if self.restriction is not None:
            self.restriction.restrict(self.status)

    def for_guardian(self) -> str:
        """Return what `guardian.keep` needs to start the command, besides the descriptors."""
        limits = None if self.limits is None else [self.limits.values, self.limits.pid_max]
        told = {"command": self.argv, "descriptors": self.descriptors, "limits": limits}
        return json.dumps(told)

    def exit_code(self, code: int) -> int:
        """Return the exit code of the command from *code*, that of the started program.

        Isolated, a command that a signal ended looks like one that exits with 128 and its number.
        """
        signalled = self.limits is not None and _SIGNALLED < code <= _SIGNALLED + _LAST_SIGNAL
        return _SIGNALLED - code if signalled else code

    def began(self, code: int) -> bool:
        """Whether the command began, of a started program that ended with *code*."""
        if self.status is None or code != _FAILED:
            return True
        told = os.pread(self.status, _TOLD, 0)
        return told == BEGAN or b'"exit-code"' in told


def check_sandbox(isolation: Isolation, workspace: Path, hidden: Sequence[Path] = ()) -> None:
    """Raise if commands with this *isolation* could not run in *workspace* on this machine.

    The *hidden* files may be missing so far.

    Raises:
        ConfigError: nothing isolates commands here, or a granted path cannot be granted.
    """
    machine = this_machine(os.environ)
    if (kind := check(isolation).kind) == "landlock":
        check_grants(isolation, machine, workspace, hidden)
    elif kind:
        grants(isolation, machine, workspace)


@contextmanager
def sandbox(
    command: Sequence[str],
    *,
    isolation: Isolation,
    environment: Mapping[str, str],
    workspace: Path | None,
    hidden: Sequence[Path] = (),
    overlay: str = "",
    mounts: Mapping[str, str] = MappingProxyType({}),
    proxy: int | None = None,
) -> Iterator[Sandbox]:
    """Yield how to start *command*; its descriptors are open for the block.

    The descriptor *proxy* leads to the proxy, if it may reach some hosts alone.

    Without isolation it is the command itself. A caller starts it with the environment, passes the
    descriptors on, and calls `before_fork` and `before_exec`. Without `before_exec` there are no
    limits, and with Landlock the command does not run.

    The folders `upper` and `work` in the folder *overlay* get what the command changes in the
    workspace; without it, the workspace gets it. See `arguments` for *mounts*.

    Raises:
        ConfigError: nothing isolates commands here, or a granted path cannot be granted.
    """
    found = overlay_rung() if overlay else check(isolation)
    if not found.kind:
        yield Sandbox(command, environment)
        return
    if found.kind == "landlock":
        with (
            restricted(command, isolation, environment, workspace, hidden) as box,
            open(os.memfd_create("status"), "rb") as status,  # noqa: PTH123
        ):
            limits = ProcessLimits.of(isolation.limits, namespaces=False)
            yield Sandbox(box.argv, box.environment, (), limits, status.fileno(), box)
        return
    git = None if workspace is None else workspace / ".git"
    if git is not None and git.is_dir():
        # A missing folder could not be kept from being made, with hooks in it.
        with suppress(OSError):
            (git / "hooks").mkdir(exist_ok=True)
    if proxy is not None:
        code = Path(forwarder.__file__).read_text()
        command = [sys.executable, "-I", "-S", "-c", code, str(proxy), *command]
    machine = this_machine(environment)
    with (
        _without_commondir(git),
        filter_file() as filters,
        open(os.memfd_create("status"), "rb") as status,  # noqa: PTH123
    ):
        words = arguments(
            command,
            isolation=isolation,
            machine=machine,
            workspace=workspace,
            hidden=hidden,
            overlay=overlay,
            mounts=mounts,
            descriptors=["--seccomp", str(filters), "--json-status-fd", str(status.fileno())],
        )
        yield Sandbox(
            [found.program, *words],
            private_environment(environment, machine),
            (filters, status.fileno(), *([] if proxy is None else [proxy])),
            ProcessLimits.of(isolation.limits),
            status.fileno(),
        )


@contextmanager
def _without_commondir(git: Path | None) -> Iterator[None]:
    """Remove the file `commondir` of a repository that comes in the block.

    Git takes its configuration, which names programs, from the folder that the file names. A whole
    repository has none.
    """
    named = None if git is None or not git.is_dir() or git.is_symlink() else git / "commondir"
    if named is None or named.exists():
        yield
        return
    try:
        yield
    finally:
        shutil.rmtree(named, ignore_errors=True)
        with suppress(OSError):
            named.unlink()
