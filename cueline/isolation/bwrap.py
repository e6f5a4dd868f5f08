"""The arguments with which bubblewrap runs a command alone with its workspace.

Inside there is a read-only system, the workspace at its own path, and empty private folders. What
is not mounted does not exist there. Programs of another owner than this process, such as MCP
servers, can be run by the same arguments.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from cueline.errors import ConfigError
from cueline.events.agent_parts import Isolation
from cueline.files import LOG_FOLDER

_MIB: Final = 1 << 20
_SYSTEM: Final = ("/usr", "/opt", "/nix/store", "/gnu/store")
_LINKED: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Folders that are links into /usr on most systems."""
_ETC: Final = (
    *("alternatives", "crypto-policies", "group", "hosts", "ld.so.cache", "localtime"),
    *("nsswitch.conf", "passwd", "pki/ca-trust/extracted", "pki/tls/certs", "services"),
    *("ssl/certs", "ssl/openssl.cnf"),
)
"""The parts of /etc that programs need, none of which holds a secret."""
ETC_OF_NETWORK: Final = "/etc/resolv.conf"
_TEMPORARY: Final = "/tmp"  # noqa: S108 - it is a private one
_WHOLE: Final = ("/dev", "/etc", "/home", "/proc", "/run", "/sys", "/tmp", "/usr", "/var/tmp")  # noqa: S108
"""Folders that no granted folder may contain."""
_PERSONAL: Final = (
    *(".aws", ".azure", ".config/cueline", ".config/gcloud", ".config/gh", ".docker", ".gnupg"),
    *(".kube", ".netrc", ".git-credentials", ".pgpass", ".pypirc", ".ray", ".ssh"),
)
"""Secrets in the home folder, for a workspace that is the home folder."""
_OUTSIDE: Final = re.compile(
    r"TMP|TEMP|TMPDIR|DISPLAY|XAUTHORITY|WAYLAND_DISPLAY|KUBECONFIG|GPG_AGENT_INFO"
    r"|DBUS_.*|LISTEN_.*|SSH_.*|XDG_.*_(DIR|HOME)|.*_SOCK|.*_SOCKET|(DOCKER|CONTAINER)_HOST"
)
"""Variables that name sockets, displays and folders outside."""
# The count of processes begins in the user namespace, so its limit is set in there. Each shell has
# one of the two options.
_LIMITED: Final = '{ ulimit -u "$1" || ulimit -p "$1"; } 2>/dev/null; shift; exec "$@"'


class Machine(NamedTuple):
    """The parts of this machine that isolated commands see."""

    links: Mapping[str, str]
    """Links of the system, such as /bin, with their targets."""
    folders: tuple[str, ...]
    """Folders and files of the system, of Python and of `PATH`, which commands can read."""
    home: str
    """The path of the private home folder; empty if there is none."""


def this_machine(environment: Mapping[str, str]) -> Machine:
    """Return the parts of this machine that commands with this *environment* need."""
    return _machine(environment.get("PATH", ""), environment.get("HOME", ""))


@lru_cache(maxsize=16)
def _machine(path: str, home: str) -> Machine:
    home = home.rstrip("/") if home.startswith("/") else ""
    system = [*_SYSTEM, *_LINKED, *(f"/etc/{name}" for name in _ETC)]
    links = {each: str(Path(each).readlink()) for each in system if Path(each).is_symlink()}
    ours = [sys.base_prefix, sys.prefix, *_with_libraries(path.split(os.pathsep))]
    wanted = [each for each in system if each not in links]
    wanted += [each for each in ours if each.startswith("/") and not _shows_more(each, home)]
    folders = [each for each in dict.fromkeys(wanted) if Path(each).exists()]
    outer = [e for e in folders if not any(_is_within(e, o) for o in folders if o != e)]
    return Machine(links, tuple(each for each in outer if not _inside(each, [*links])), home)


def _with_libraries(path: Sequence[str]) -> Iterator[str]:
    """Yield the folders of *path*, and those beside them that their programs need."""
    for folder in path:
        above, name = os.path.split(folder.rstrip("/"))
        if name == "shims":  # programs of pyenv and the like, which start those of their folder
            yield above
        yield folder
        if name == "bin" and above != "/":
            yield from (f"{above}/lib", f"{above}/libexec", f"{above}/pyvenv.cfg")


def _shows_more(folder: str, home: str) -> bool:
    """Whether *folder* contains more than programs."""
    return any(_is_within(each, folder) for each in (*_WHOLE, home or "/home"))


def private_environment(environment: Mapping[str, str], machine: Machine) -> dict[str, str]:
    """Return *environment* without the variables that lead out of the isolation."""
    kept = {name: each for name, each in environment.items() if not _OUTSIDE.fullmatch(name)}
    return {**kept, "HOME": machine.home or _TEMPORARY}


def arguments(
    command: Sequence[str],
    *,
    isolation: Isolation,
    machine: Machine,
    workspace: Path | None,
    hidden: Sequence[Path] = (),
    overlay: str = "",
    mounts: Mapping[str, str] = MappingProxyType({}),
    descriptors: Sequence[str] = (),
) -> list[str]:
    """Return the arguments of bubblewrap that run *command*.

    The *workspace* and the paths that *isolation* grants have to exist. The *hidden* files and
    folders are empty inside. With *overlay*, a folder with the folders `upper` and `work`, changes
    of the workspace go to `upper` instead; the folders in its folder `layers`, in the order of
    their names, lie between. *mounts* are folders that commands can change, with their paths
    inside.
    *descriptors* are options that name descriptors, such as `--seccomp N`.

    Raises:
        ConfigError: a granted folder contains the system, or leads elsewhere by a link.
    """
    place, writable = grants(isolation, machine, workspace)
    around = [each for each in isolation.read if _holds_other(each, writable)]
    size = str(isolation.limits.private_mb * _MIB)
    private = ["/dev/shm", _TEMPORARY, *([machine.home] if machine.home else [])]  # noqa: S108
    made = [
        *("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent"),
        *("--new-session", "--cap-drop", "ALL", *descriptors),
        *(["--share-net"] if isolation.network is True else []),
        *(word for path, target in machine.links.items() for word in ("--symlink", target, path)),
        *("--proc", "/proc", "--dev", "/dev", "--symlink", "../tmp", "/var/tmp"),  # noqa: S108
        *(word for each in private for word in ("--size", size, "--tmpfs", each)),
        *_pairs("--ro-bind", [each for each in machine.folders if not _inside(each, writable)]),
        *_pairs("--ro-bind", [ETC_OF_NETWORK] if isolation.network is True else []),
        *_pairs("--ro-bind", around),
        *(_overlaid(place, overlay) if place and overlay else ()),
        *_pairs("--bind", writable[1:] if overlay else writable),
        *(word for path, inside in mounts.items() for word in ("--bind", path, inside)),
        *_pairs("--ro-bind", _own_python(machine.folders, place, isolation.write)),
        *_repository(place, overlay),
        *_pairs("--ro-bind", [each for each in isolation.read if each not in around]),
        *_masks(_hidden([*writable, *isolation.read], machine.home, hidden)),
        *(
            "--remount-ro",
            "/dev",
            "--remount-ro",
            "/",
            "--chdir",
            place or machine.home or _TEMPORARY,
        ),
    ]
    processes = str(isolation.limits.processes)
    return [*made, "--", "/bin/sh", "-c", _LIMITED, "sh", processes, *command]


def grants(
    isolation: Isolation, machine: Machine, workspace: Path | None
) -> tuple[str | None, list[str]]:
    """Return the real path of *workspace*, and all paths that commands can change.

    Raises:
        ConfigError: a granted folder contains the system, or leads elsewhere by a link.
    """
    place = None if workspace is None else os.path.realpath(workspace)
    writable = [path for path in (place, *isolation.write) if path is not None]
    for path in (*writable, *isolation.read):
        _check_grant(path, machine.home, [each for each in writable if each != path])
    return place, writable


def covered(
    isolation: Isolation, machine: Machine, workspace: Path | None, hidden: Sequence[Path]
) -> list[str]:
    """Return the paths in granted folders that commands must not have as the folders grant them.

    A mount covers them. They are the *hidden* ones, this Python, and folders that are granted for
    reading only.

    Raises:
        ConfigError: see `grants`.
    """
    place, writable = grants(isolation, machine, workspace)
    granted = [*writable, *isolation.read]
    return [
        *(each for each in map(os.path.realpath, hidden) if _inside(each, granted)),
        *_hidden(granted, machine.home, hidden),
        *_own_python(machine.folders, place, isolation.write),
        *(each for each in isolation.read if _inside(each, writable)),
    ]


def _overlaid(place: str, overlay: str) -> list[str]:
    upper, work, layers = f"{overlay}/upper", f"{overlay}/work", Path(overlay, "layers")
    between = sorted(map(str, layers.iterdir())) if layers.is_dir() else []
    sources = [word for each in (place, *between) for word in ("--overlay-src", each)]
    return [*sources, "--overlay", upper, work, place]


def _pairs(option: str, paths: Sequence[str]) -> list[str]:
    return [word for path in paths for word in (option, path, path)]


def _check_grant(path: str, home: str, writable: Sequence[str]) -> None:
    """Raise if *path* would show the system, or what a command may have put in its place.

    Raises:
        ConfigError: grant another folder.
    """
    if any(_is_within(each, path) for each in _WHOLE) or (home != path and _is_within(home, path)):
        why = f"{path} contains folders of the system or of other people: grant a smaller folder"
        raise ConfigError("isolation", why)
    if _inside(path, writable) and os.path.realpath(path) != path:
        why = f"{path} is a link in a folder that commands can write to: grant its target"
        raise ConfigError("isolation", why)
    if not Path(path).exists():
        raise ConfigError("isolation", f"{path} is not there: make it, or grant another folder")


def _own_python(folders: Sequence[str], place: str | None, writable: Sequence[str]) -> list[str]:
    """Return the folders of this Python in the workspace *place*, which commands must not change.

    Later starts of this program run what is in them.
    """
    own = [each for each in folders if each in (sys.prefix, sys.base_prefix)]
    inside = [each for each in own if place and _is_within(each, place)]
    return [
        each for each in inside if os.path.realpath(each) == each and not _inside(each, writable)
    ]


def _repository(place: str | None, overlay: str) -> list[str]:
    """Return the arguments that keep what git runs from being changed.

    Git reads programs from its configuration and its hooks. The folder is mounted over itself, so
    that it cannot be renamed, and another one put in its place. On an overlay such a change is one
    that a person sees.
    """
    git = "" if place is None else f"{place}/.git"
    if not os.path.isdir(git) or os.path.islink(git):  # noqa: PTH112, PTH114 - a text
        return []
    parts = [f"{git}/{name}" for name in ("hooks", "config", "config.worktree", "modules")]
    real = [each for each in parts if os.path.realpath(each) == each and Path(each).exists()]
    return [*_pairs("--bind", [] if overlay else [git]), *_pairs("--ro-bind", real)]


def _hidden(granted: Sequence[str], home: str, files: Sequence[Path]) -> list[str]:
    """Return what is hidden in the *granted* folders: logs, personal secrets, the *files*.

    Files whose names begin with the name of one of the *files* are hidden, too.
    """
    secrets = [f"{home}/{each}" for each in _PERSONAL if home and home in granted]
    beside = [str(each) for file in files for each in (file, *file.parent.glob(f"{file.name}*"))]
    hidden: list[str] = []
    paths = [*(f"{each}/{LOG_FOLDER}" for each in granted), *secrets, *beside]
    for path in dict.fromkeys(map(os.path.realpath, paths)):
        if _inside(path, granted) and not _inside(path, hidden) and Path(path).exists():
            hidden.append(path)
    return hidden


def _masks(hidden: Sequence[str]) -> list[str]:
    words: list[str] = []
    for path in hidden:
        folder = Path(path).is_dir()
        words += ["--tmpfs", path, "--remount-ro", path] if folder else _null(path)
    return words


def _null(path: str) -> list[str]:
    return ["--ro-bind", os.devnull, path]


def _inside(path: str, folders: Sequence[str]) -> bool:
    return any(_is_within(path, each) for each in folders)


def _holds_other(folder: str, paths: Sequence[str]) -> bool:
    """Whether one of *paths* is in *folder*, and not *folder* itself."""
    return any(path != folder and _is_within(path, folder) for path in paths)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
