"""Tools that do what a tool should not, and some that look at where they run."""

import asyncio
import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

from cueline.tools.tool import ToolContext, tool


@tool
def fail() -> None:
    """Fail as a network does."""
    raise ConnectionError("network error: timeout")


@tool(needs_workspace=True)
def fail_and_count(*, context: ToolContext) -> None:
    """Fail, and leave a mark for each time."""
    with (context.workspace / "journal").open("a") as journal:
        journal.write(f"{context.key} {context.attempt}\n")
    raise ConnectionError("network error: timeout")


@tool(timeout_seconds=0.3)
def hang() -> None:
    """Never return, with a daemon that does not either."""
    subprocess.Popen(["tail", "-f", "/dev/null"], start_new_session=True)
    threading.Event().wait()


@tool(timeout_seconds=0.3)
def hang_stubbornly() -> None:
    """Never return, and take no hint."""
    while True:
        try:
            threading.Event().wait()
        except BaseException:  # noqa: BLE001 - it is what the test is about
            continue


@tool(needs_workspace=True)
def hang_and_tidy_up(*, context: ToolContext) -> None:
    """Never return, but clean up when terminated."""
    try:
        (context.workspace / "begun").touch()
        threading.Event().wait()
    finally:
        (context.workspace / "tidy").touch()


@tool
def limit(files: int, *, hard: bool) -> None:
    """Limit what this process may open and create; *hard*: for good, as it is for most users."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files if hard else most))
    os.umask(0o777)
    if hard:
        resource.setrlimit = refuse


def refuse(*_: object) -> None:
    """Refuse as the system does it for all but root."""
    raise ValueError("not allowed to raise maximum limit")


@tool
def limits() -> str:
    """Return the process, what it may open, and with which mode it creates."""
    mask = os.umask(0)
    os.umask(mask)
    return f"{os.getpid()} {resource.getrlimit(resource.RLIMIT_NOFILE)} {mask}"


@tool(needs_workspace=True)
def list_names(*, raises: bool = False, context: ToolContext) -> list[Path]:
    """List the workspace, or raise an error with its names."""
    names = [Path(name) for name in sorted(os.listdir(context.workspace))]  # noqa: PTH208
    if raises:
        raise FileNotFoundError(2, "no such file", str(names[0]))
    return names


@tool
def leave() -> None:
    """End the process."""
    os._exit(3)


@tool
def stop_existing() -> None:
    """Be killed."""
    os.kill(os.getpid(), signal.SIGKILL)


@tool
def crash() -> None:
    """Read where nothing is."""
    ctypes.string_at(0)


@tool
def ask_to_exit() -> None:
    """Exit politely."""
    sys.exit("enough")


@tool
def babble() -> str:
    """Print a lot, in every way there is."""
    print("x" * 100_000, flush=True)  # noqa: T201 - it is what the test is about
    os.write(1, b"\0" * 100_000)
    subprocess.run(["/bin/sh", "-c", "echo y; echo z >&2"], check=True)
    return "said"


@tool(read_only=True)
def read_input() -> str:
    """Read the standard input."""
    return sys.stdin.read()


@tool(read_only=True)
def environment() -> dict[str, str]:
    """Tell the environment."""
    return dict(os.environ)


@tool(read_only=True)
def process() -> int:
    """Tell the process."""
    return os.getpid()


@tool
def move(to: str) -> str:
    """Go elsewhere, and say from where."""
    before = str(Path.cwd())
    os.chdir(to)
    return before


@tool
def take_no_hint() -> None:
    """Have whoever comes next be deaf to a polite end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


@tool
def forget_children() -> None:
    """Let the system bury them."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


@tool
def leave_a_fork() -> str:
    """Leave a copy of the worker behind, which holds all that it holds."""
    pid = os.fork()
    if pid == 0:
        threading.Event().wait()
    return str(pid)


@tool
def exit_a_fork(how: str) -> str:
    """Have a copy of the worker end as *how* says, and answer when it did."""
    pid = os.fork()
    if pid == 0:
        if how == "exits":
            sys.exit(0)
        return "said by the fork"
    os.waitpid(pid, 0)
    return "said by the tool"


class PanicError(BaseException):
    """What a part that is no Python raises: it is no `Exception`."""


class MuteError(Exception):
    """One that cannot even say what it is."""

    def __str__(self) -> str:
        """Fail at that, too."""
        raise ZeroDivisionError


@tool
def panic(how: str) -> None:
    """Raise what few expect."""
    raise ODD[how]


@tool
async def panic_in_loop(how: str) -> None:
    """Raise what few expect, in the runner's loop."""
    raise ODD[how]


@tool(in_loop=False)
async def cancel_elsewhere() -> None:
    """Wait in a worker for something that somebody has cancelled."""
    other = asyncio.create_task(forever())
    other.cancel()
    await other


ODD = {
    "panic": PanicError("at the disco"),
    "mute": MuteError(),
    "group": BaseExceptionGroup("several", [PanicError("at the disco")]),
}


@tool(needs_workspace=True)
def meet(name: str, *, context: ToolContext) -> str:
    """Wait until the other one is there, too."""
    mine, other = ("a", "b") if name == "a" else ("b", "a")
    flags = {"a": os.O_RDONLY, "b": os.O_WRONLY}
    os.close(os.open(context.workspace / "door", flags[mine]))
    return f"met {other}"


@tool(read_only=True)
def huge(size: int) -> bytes:
    """Return a lot."""
    return b"\xff\0" * (size // 2)


@tool
def strange() -> object:
    """Return what is neither text nor JSON."""
    return threading.Event()


@tool
def half_a_pair() -> str:
    """Return what is no text."""
    return "\ud800"


@tool(timeout_seconds=0.2)
async def wait_for_ever() -> None:
    """Wait in the loop."""
    await forever()


@tool(timeout_seconds=0.2)
async def swallow_cancellation() -> None:
    """Wait in the loop, and do not take the first hint."""
    with contextlib.suppress(asyncio.CancelledError):
        await forever()
    await forever()


@tool
async def wait_for_what_is_cancelled() -> None:
    """Wait for something else that somebody has cancelled."""
    other = asyncio.create_task(forever())
    other.cancel()
    await other


@tool
async def exit_the_loop() -> None:
    """Exit politely, from inside the loop."""
    sys.exit("enough")


@tool(in_loop=False)
async def wait_elsewhere() -> int:
    """Be async, in a worker."""
    return os.getpid()


async def forever() -> None:
    """Wait for what never comes."""
    await asyncio.get_running_loop().create_future()
