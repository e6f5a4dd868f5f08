"""The parent process of a worker, which kills all processes that the worker started.

A guardian runs this file; its runner may die at any moment. Orphans below the guardian
become its children (it is a subreaper), so it also finds a daemon in a separate
session. When the runner closes the control pipe or dies, or when the worker ends, the
guardian kills all processes below it.

The file imports little: the worker is forked from the guardian, and both have to start
fast.
"""

import contextlib
import ctypes
import fcntl
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any, NoReturn

SET_PDEATHSIG = 1
SET_CHILD_SUBREAPER = 36
LINUX = sys.platform == "linux"
IMPATIENT, PATIENT = 0.02, 1.0
TERM_SECONDS = 1.0
"""The time between SIGTERM and SIGKILL for a kept command."""


def main() -> None:
    """Detach from the runner, and guard a worker."""
    config = json.loads(sys.argv[1])
    if "command" in config:
        keep(**config)
    # Ray kills the children of its workers on exit, and would kill the guardian before its work is
    # done. So the guardian becomes an orphan.
    if os.fork():
        os._exit(0)
    if LINUX:
        prctl(SET_CHILD_SUBREAPER, 1)
    signals = watch_children()
    guardian = os.getpid()
    worker = os.fork()
    if worker == 0:
        become_worker(config, guardian)
    for descriptor in (config["requests"], config["replies"]):
        os.close(descriptor)
    silence()
    for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    code = guard(worker, config["control"], signals)
    sweep(signals)
    with contextlib.suppress(BrokenPipeError):
        os.write(config["status"], json.dumps({"code": code}).encode())
    os._exit(0)


def keep(command: list[str], descriptors: list[int], limits: list[Any] | None) -> NoReturn:
    """Run *command* on the streams of this process, and kill it when the starting process dies.

    SIGTERM is passed on; what is left after `TERM_SECONDS` is killed. The *descriptors* come
    through standard error, which is a socket then, and have these numbers in the command.
    """
    starter = os.getppid()
    received = receive(len(descriptors))
    box = None if limits is None else process_limits(*limits)
    if LINUX:
        prctl(SET_CHILD_SUBREAPER, 1)
    signals = watch_children()
    terminated: list[float] = []
    signal.signal(signal.SIGTERM, lambda *_: terminated.append(time.monotonic()))
    if box is not None:
        box.before_fork()
    child = os.fork()
    if child == 0:
        place(received, descriptors)
        become(command, box)
    for stream in (0, 1):  # their ends show the end of the command
        os.close(stream)
    poll = select.poll()
    poll.register(signals, select.POLLIN)
    if LINUX:
        # A changed parent is seen at once, not at the next look.
        with contextlib.suppress(ProcessLookupError):
            poll.register(os.pidfd_open(starter), select.POLLIN)
    code = None
    while code is None and os.getppid() == starter:
        poll.poll(TERM_SECONDS * 1000)
        with contextlib.suppress(BlockingIOError):
            os.read(signals, 4096)
        code = reap().get(child)
        if terminated and code is None:
            late = time.monotonic() > terminated[0] + TERM_SECONDS
            kill_below(signal.SIGKILL if late else signal.SIGTERM)
    sweep(signals)
    os._exit(code if code is not None and code >= 0 else 1)


def become(command: list[str], box: Any) -> NoReturn:
    """Become *command*, with the limits *box* if it is isolated."""
    try:
        if box is not None:
            os.setpgid(0, 0)  # a signal to the group would end bwrap without a hint
            box.before_exec()
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606 - the agent's command
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def receive(count: int) -> list[int]:
    """Return so many descriptors that the starter has sent through standard error."""
    if not count:
        return []
    socket = importlib.import_module("socket")
    with contextlib.closing(socket.socket(fileno=os.dup(2))) as source:
        return list(socket.recv_fds(source, 1, count)[1])


def place(received: list[int], numbers: list[int]) -> None:
    """Give the *received* descriptors these *numbers*, with which a program inherits them."""
    above = max([*received, *numbers], default=0) + 1
    moved = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, above) for each in received]
    for source, number in zip(moved, numbers, strict=True):
        os.dup2(source, number)


def process_limits(*limits: Any) -> Any:
    """Return the limits of an isolated command."""
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))  # noqa: PTH120 - as above
    return importlib.import_module("cueline.isolation.limits").ProcessLimits(*limits)


def guard(worker: int, control: int, signals: int) -> int | None:
    """Wait for the worker's end and return its status; None if the runner ended first."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(signals, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if signals in ready:
            os.read(signals, 4096)
            ended = reap()
            if worker in ended:
                return ended[worker]
        if control in ready:
            if os.read(control, 4096) == b"":
                return None
            kill_below(signal.SIGTERM)


def sweep(signals: int, seconds: float = float("inf")) -> None:
    """Kill all processes below this one, until none is left, for at most *seconds*."""
    pause = IMPATIENT
    deadline = time.monotonic() + seconds
    poll = select.poll()
    poll.register(signals, select.POLLIN)
    while time.monotonic() < deadline:
        # Listing processes is not atomic: a new one can be missed. So repeat until the system
        # reports no children.
        try:
            while reap():
                pass  # repeat while children have ended: none may be left
        except ChildProcessError:
            return
        kill_below(signal.SIGKILL)
        poll.poll(pause * 1000)
        with contextlib.suppress(BlockingIOError):
            os.read(signals, 4096)
        pause = min(2 * pause, PATIENT)


def reap() -> dict[int, int]:
    """Return the exit code of each child process that has ended, by its pid.

    Each is returned once.

    Raises:
        ChildProcessError: this process has no child processes.
    """
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            if ended:
                return ended
            raise
        if pid == 0:
            return ended
        ended[pid] = os.waitstatus_to_exitcode(status)


def kill_below(number: int) -> None:
    """Send a signal to every process below this one."""
    parents = parents_by_linux() if LINUX else parents_by_ps()
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found = list(children.get(os.getpid(), ()))
    for pid in found:
        found += children.pop(pid, ())
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if number == signal.SIGKILL or not is_bwrap(pid):
                os.kill(pid, number)


def is_bwrap(pid: int) -> bool:
    """Whether the process isolates a command; its end would be the command's, without a hint.

    A command that takes this name gets no hint, and is killed a little later.
    """
    path = f"/proc/{pid}/comm"
    with contextlib.suppress(OSError), open(path, "rb") as file:  # noqa: PTH123 - pathlib is slow to import
        return file.read() == b"bwrap\n"
    return False


def parents_by_linux() -> dict[int, int]:
    """Return the parent of each process."""
    parents: dict[int, int] = {}
    with os.scandir("/proc") as entries:
        names = [entry.name for entry in entries if entry.name.isdigit()]
    for name in names:
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - pathlib is slow to import
            # The second field is the command in brackets, which may contain any character.
            parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    return parents


def parents_by_ps() -> dict[int, int]:
    """Return the parent of each process; only on Linux does this find orphans."""
    listing = subprocess.run(
        ["/bin/ps", "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE, check=False
    )
    pairs = (line.split() for line in listing.stdout.splitlines())
    return {int(pid): int(parent) for pid, parent in pairs}


def watch_children() -> int:
    """Return a descriptor that becomes readable when a child ends."""
    source, target = os.pipe()
    os.set_blocking(source, False)
    os.set_blocking(target, False)
    signal.set_wakeup_fd(target, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return source


def become_worker(config: dict[str, Any], guardian: int) -> NoReturn:
    """Become the worker, with a clean process state."""
    code = 1
    try:
        if LINUX:
            prctl(SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guardian:
            os._exit(1)
        for descriptor in (config["control"], config["status"]):
            os.close(descriptor)
        for descriptor in (config["requests"], config["replies"]):
            os.set_inheritable(descriptor, False)  # noqa: FBT003 - os gives it no name
        silence()
        reset()
        code = serve(config)
    except SystemExit as asked:
        code = asked.code if isinstance(asked.code, int) else int(asked.code is not None)
    finally:
        os._exit(code)


def serve(config: dict[str, Any]) -> int:
    """Serve the runner; report an error at the start to the runner."""
    try:
        sys.path[:] = config["path"]
        worker = importlib.import_module(config["worker"])
    except Exception as error:  # noqa: BLE001 - the path comes from outside
        told = json.dumps({"kind": "broken", "reason": f"{type(error).__name__}: {error}"}).encode()
        os.write(config["replies"], len(told).to_bytes(4) + bytes(8) + told)
        return 1
    worker.serve(config["requests"], config["replies"])
    return 0


def silence() -> None:
    """Keep the output of tools away from the runner's terminal and logs."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)


def reset() -> None:
    """Undo Ray's changes of its workers: a blocked SIGINT, a low priority."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    # When memory runs out, the system should choose the tool, not its guardian.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - as above
        file.write("1000")


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process."""
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    main()
