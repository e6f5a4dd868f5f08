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


def main() -> None:
    """Detach from the runner, and guard a worker."""
    config = json.loads(sys.argv[1])
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
            os.kill(pid, number)


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
