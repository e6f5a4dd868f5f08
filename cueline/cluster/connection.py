"""Connects to Ray: joins a cluster, or starts one on this machine."""

import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cueline.errors import ClusterError

if TYPE_CHECKING:
    from ray.job_config import JobConfig

OBJECT_STORE_BYTES = 100 * 1024 * 1024
"""The size of Ray's object store, through which almost no data of cueline goes."""
REACH_SECONDS = 5.0
_AHEAD = 4
"""The minimum of ready processes, also on a machine with fewer CPUs."""
_TOKEN = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_QUIET = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
    # Attempts of one second each, if a cluster does not accept us.
    "RAY_NUM_REDIS_GET_RETRIES": "5",
    "RAY_USAGE_STATS_ENABLED": "0",
}
_OF_OUR_OWN = {
    # Creates a missing token; otherwise Ray prints a message about it.
    "RAY_AUTH_MODE": "token",
    # Otherwise Ray uploads the command's folder if `uv run` started it.
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    # Ray's default of 15 would starve hosts on a busy machine.
    "RAY_worker_niceness": "0",
}
_MANY_MACHINES = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Ray's own variable, despite its name for every system: 0 binds all ports to loopback."""


@dataclass(frozen=True, slots=True)
class RayConnection:
    """A connection to Ray."""

    address: str
    node: str
    """The Ray node of this process's machine."""
    node_address: str
    """Its IP address."""
    ours: bool
    """Whether the cluster was started here, and ends with this connection."""


@contextmanager
def connect_ray(address: str | None, namespace: str) -> Iterator[RayConnection]:
    """Connect to the cluster at *address*, or start one on this machine and stop it at the end.

    Raises:
        ClusterError: the cluster cannot be reached; the message says what to do.
    """
    if address is not None:
        _check_reachable(address)
    _prepare(ours=address is None)
    import ray  # noqa: PLC0415 - it reads the environment on import

    with ExitStack() as stack:
        try:
            with _silence_native_stderr(), _keep_sigterm_handler():
                if address is None:
                    _start(namespace, stack.enter_context(_private_folder()))
                else:
                    _join(address, namespace)
        except Exception as error:  # Ray raises errors of every kind, also bare ones
            raise _explained(address, error) from error
        stack.callback(ray.shutdown)
        # Ray's own debugger does the same: nothing else keeps Ray's messages about dead processes
        # off the terminal.
        ray._private.worker._worker_logs_enabled = False  # noqa: SLF001
        context = ray.get_runtime_context()
        node_address = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        node = context.get_node_id()
        yield RayConnection(context.gcs_address, node, node_address, ours=address is None)


@contextmanager
def connected_ray(address: str, namespace: str) -> Iterator[None]:
    """Connect to the cluster at *address*, or use this program's own connection to it.

    Raises:
        ClusterError: the cluster cannot be reached, or the program is connected to another one.
    """
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        has: str = ray.get_runtime_context().gcs_address
        if has != address:
            why = (
                f"this program is connected to the Ray at {has}, and `cueline up` runs at {address}"
            )
            raise ClusterError(address, f"{why}: take a process for each")
        yield
        return
    with connect_ray(address, namespace):
        yield


@contextmanager
def _private_folder() -> Iterator[str]:
    """Yield a folder for Ray inside one that only its owner can read.

    The name is short, because with a socket's name it may have 107 bytes.
    """
    from ray._common.utils import get_default_system_temp_dir  # noqa: PLC0415 - as above

    place: str = get_default_system_temp_dir()  # type: ignore[no-untyped-call]  # Ray types few
    folder = tempfile.mkdtemp(prefix="cl-", dir=place)
    try:
        yield f"{folder}/r"  # Ray creates it, with open permissions
    finally:
        # Logs of processes without state; Ray would keep them for ever.
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _use_loopback() -> Iterator[None]:
    """Let Ray use 127.0.0.1 as this machine's address, so no other machine reaches its ports.

    A variable that the user has set is kept.
    """
    from ray._private import ray_constants  # noqa: PLC0415 - as above

    if _MANY_MACHINES in os.environ:
        yield
        return
    os.environ[_MANY_MACHINES] = "0"  # for its processes
    before, ray_constants.ENABLE_RAY_CLUSTER = ray_constants.ENABLE_RAY_CLUSTER, False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before
        del os.environ[_MANY_MACHINES]


def _start(namespace: str, folder: str) -> None:
    """Start a cluster on this machine with its sockets and logs in *folder*."""
    import ray  # noqa: PLC0415 - as above

    with _detach_from_terminal(), _use_loopback():
        ray.init(
            address="local",
            namespace=namespace,
            _temp_dir=folder,
            # Ray starts as many processes ahead as there are CPUs, and the actors use these. They
            # take no CPU, so the number means nothing else.
            num_cpus=max(_AHEAD, os.cpu_count() or 1),
            include_dashboard=False,
            configure_logging=False,
            log_to_driver=False,
            object_store_memory=OBJECT_STORE_BYTES,
            job_config=_job(),
        )
    _keep_token()


def _join(address: str, namespace: str) -> None:
    import ray  # noqa: PLC0415 - as above

    # Otherwise Ray takes another address of this machine for its 127.0.0.1.
    with _use_loopback() if address.startswith("127.") else nullcontext():
        ray.init(
            address=address,
            namespace=namespace,
            configure_logging=False,
            log_to_driver=False,
            job_config=_job(),
        )


class _SearchPath(list[str]):
    """The folders in which Ray's worker processes search for modules.

    Ray would add the working folder first, where a file can shadow cueline's modules. This list
    drops each folder in which this process does not search.
    """

    def extend(self, folders: Iterable[str]) -> None:
        ours = set(map(os.path.abspath, sys.path))
        super().extend(each for each in folders if each in ours)


def _job() -> "JobConfig":
    from ray.job_config import JobConfig  # noqa: PLC0415 - as above

    config = JobConfig()
    config._py_driver_sys_path = _SearchPath()  # noqa: SLF001 - there is no public way
    return config


@contextmanager
def _detach_from_terminal() -> Iterator[None]:
    """Detach Ray's processes from the terminal, so that they are stopped in order."""
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)


@contextmanager
def _silence_native_stderr() -> Iterator[None]:
    """Collect the stderr of Ray's native code for the error message."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _keep_sigterm_handler() -> Iterator[None]:
    """Keep Ray from handling SIGTERM, which would end this process before sessions are drained."""
    from ray._private import utils  # noqa: PLC0415 - as above

    ours, theirs = signal.getsignal(signal.SIGTERM), utils.set_sigterm_handler
    utils.set_sigterm_handler = lambda _: None
    try:
        yield
    finally:
        utils.set_sigterm_handler = theirs
        # Ray's native code also handles it; that cannot be prevented.
        if ours is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ours)


def _prepare(*, ours: bool) -> None:
    """Set the environment variables that Ray reads, unless the user has set them."""
    for name, value in (_QUIET | _OF_OUR_OWN if ours else _QUIET).items():
        os.environ.setdefault(name, value)
    if has_token():
        # Ray does this only for clusters that it starts.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    if "ray" in sys.modules:
        # Ray has read its settings by now; it calls this, too, when it sets the mode.
        sys.modules["ray"]._raylet.Config.initialize("")  # noqa: SLF001
    # Without bytecode, each process of the cluster compiles everything again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def _check_reachable(address: str) -> None:
    """Raise if no process listens at the address, because Ray would try for minutes."""
    if address.startswith("ray://"):
        reason = "Ray Client is not used; run this on a node of the cluster, and name HOST:PORT"
        raise ClusterError(address, reason)
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH_SECONDS).close()
    except OSError as error:
        reason = (
            f"nobody answers there ({error}); `ray status` on the cluster's head tells its address"
        )
        raise ClusterError(address, reason) from error


def has_token() -> bool:
    """Whether Ray finds a token on this machine."""
    return any(os.environ.get(name) for name in _TOKEN) or _token_path().exists()


def _token_path() -> Path:
    return Path.home() / ".ray" / "auth_token"


def _keep_token() -> None:
    """Make the token file private, which Ray leaves readable for all."""
    path = _token_path()
    if path.exists() and path.stat().st_uid == os.getuid() and path.stat().st_mode & 0o077:
        path.chmod(0o600)


def _explained(address: str | None, error: Exception) -> ClusterError:
    import ray  # noqa: PLC0415 - as above

    if ray.is_initialized():
        reason = "this process has one already, of another runtime or a `ray.init()` of its own"
        return ClusterError("Ray", f"{reason}; end that first, or take a process for each")
    if address is None:
        return ClusterError("Ray", f"it cannot be started on this machine: {error}")
    if "ersion mismatch" in str(error):
        lines = (line.strip() for line in str(error).splitlines())
        told = " ".join(line for line in lines if line)
        return ClusterError(address, f"{told}; install the cluster's Ray and Python here")
    token = (
        "it takes the token in RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH or ~/.ray/auth_token"
        if os.environ.get("RAY_AUTH_MODE") == "token"
        else "if it wants a token, put it into ~/.ray/auth_token"
    )
    reason = (
        f"no cluster can be joined there; is one running, on this machine or with a node on it? "
        f"{token} ({type(error).__name__})"
    )
    return ClusterError(address, reason)
