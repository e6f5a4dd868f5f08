"""The tool that runs shell commands."""

import os
import resource
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, NoReturn

from pydantic import Field

from cueline.errors import ToolFailedError
from cueline.events.failure import NOT_STARTED
from cueline.events.sanitize import CUT
from cueline.tools.guardian import LINUX, SET_CHILD_SUBREAPER, guard, prctl, sweep, watch_children
from cueline.tools.result import SHORTAGES, signal_name
from cueline.tools.tool import OUTPUT_LIMIT, TIMEOUT_SECONDS, Output, ToolContext, tool

CHUNK = 1 << 20
"""All that a pipe can be made to hold: one look takes everything that was printed."""
TOLD = 10_000
# A little less than the tool's own, so that what was printed can still be told.
LONGEST = TIMEOUT_SECONDS - 10
UNHEARD = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
OPEN_FILES = "/proc/self/fd" if LINUX else "/dev/fd"
KILL_SECONDS = 3.0
"""What is not gone by then, as another user's process, is left to the worker's guardian."""


@tool(sensitive=True, needs_workspace=True)
def run_command(
    command: str,
    timeout_seconds: Annotated[float, Field(gt=0, le=LONGEST)] = LONGEST,
    *,
    context: ToolContext,
) -> Output:
    """Run a shell command in the workspace; return what it prints, and its exit status.

    It is not confined: it can read and change whatever the user can who runs
    cueline, outside the workspace too. It has no terminal and no input. What it
    leaves running in the background is killed when the command ends.
    """
    if not context.workspace.is_dir():
        raise ToolFailedError("tool_error", "the workspace is not there")
    with start_shell(command, context.workspace) as process:
        printed = Printed()
        ended = follow(process, printed, time.monotonic() + timeout_seconds)
    if not ended:
        reason = f"did not end within {timeout_seconds:g} s and was killed; it may have had effects"
        raise ToolFailedError("timeout", f"the command {reason}. {printed.tail()}")
    return printed.output(status(process.returncode))


@dataclass(slots=True)
class Printed:
    """What a command has printed so far."""

    kept: bytearray = field(default_factory=bytearray)
    size: int = 0

    def add(self, chunk: bytes) -> None:
        """Keep *chunk*, if there is room; count it anyway."""
        self.kept += chunk[: OUTPUT_LIMIT - len(self.kept)]
        self.size += len(chunk)

    def output(self, status: str) -> Output:
        """Return the whole, with *status* as its last line."""
        cut = self.size > len(self.kept)
        if cut:
            self.kept += CUT.encode()
        if self.kept and not self.kept.endswith(b"\n"):
            self.kept += b"\n"
        if cut:
            self.kept += f"[the first {OUTPUT_LIMIT:,} of {self.size:,} bytes]\n".encode()
        self.kept += f"[{status}]".encode()
        return Output(bytes(self.kept), self.size if cut else None)

    def tail(self) -> str:
        """Return the end of it, for a model that has to find out what happened."""
        if not self.kept:
            return "It printed nothing."
        last = self.kept[-TOLD:].decode(errors="replace")
        # What it had not printed yet is cut off as well.
        return f"The last it printed:\n{CUT if len(self.kept) > TOLD else ''}{last}{CUT}"


@contextmanager
def start_shell(command: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run *command*; it and all that it started are killed in the end."""
    shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
    with not_started_on_shortage():
        control, holding = os.pipe()
    # Not before there is somebody to wait for; and the guardian below hears none at all.
    signal.pthread_sigmask(signal.SIG_BLOCK, UNHEARD)
    try:
        with not_started_on_shortage():
            process = subprocess.Popen(  # noqa: S603 - to run what the model asks for is the purpose
                [shell, "-c", command],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                preexec_fn=partial(become_guarded, control),  # noqa: PLW1509 - it takes no lock
            )
    except BaseException:
        os.close(holding)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, UNHEARD)
        raise
    finally:
        os.close(control)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, UNHEARD)
        yield process
    except SystemExit:
        # The worker was told to terminate, and so was the command: let it end in
        # its own way. The guardian kills both when their time is up.
        process.wait()
        raise
    finally:
        os.close(holding)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def not_started_on_shortage() -> Iterator[None]:
    """Say that nothing began where the system has no room for what is started in here."""
    try:
        yield
    except (OSError, subprocess.SubprocessError) as error:  # or `guarded` could not fork
        if isinstance(error, OSError) and error.errno not in SHORTAGES:
            raise
        raise ToolFailedError(NOT_STARTED, f"no process can be started: {error}") from error


def become_guarded(control: int) -> None:
    """Become the command, below a guardian that stays behind; see `tools.guardian`.

    The worker's own would adopt what leaves the command's session, and would
    let it live as long as the worker does.
    """
    if LINUX:
        prctl(SET_CHILD_SUBREAPER, 1)
    command = os.fork()
    if command:
        stand_by(command, control)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, UNHEARD)
    os.setpgid(0, 0)  # what it does to its group is not done to its guardian


def stand_by(command: int, control: int) -> NoReturn:
    """Wait for the end of *command*, or of *control*; kill what is left, and end likewise."""
    try:
        # All else is the command's and the worker's, who wait for its end.
        close_all_but(control)
        signals = watch_children()
        signal.raise_signal(signal.SIGCHLD)  # it may have ended before
        code = guard(command, control, signals)
        sweep(signals, KILL_SECONDS)
        if code is not None and code < 0:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            with suppress(OSError):  # SIGKILL has no other meaning
                signal.signal(-code, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
            os.kill(os.getpid(), -code)
        os._exit(code or 0)
    finally:
        os._exit(1)


def close_all_but(kept: int) -> None:
    """Close what is open, and not all that could be: that may be a billion, one by one."""
    for name in os.listdir(OPEN_FILES):  # noqa: PTH208 - only the names, and quickly
        if (descriptor := int(name)) != kept:
            os.closerange(descriptor, descriptor + 1)  # the folder's own is closed already


def follow(process: subprocess.Popen[bytes], printed: Printed, deadline: float) -> bool:
    """Collect what *process* prints until it ends; say whether that was in time.

    The end of the process is waited for, not the end of its output: that is
    held open by whatever it leaves in the background.
    """
    assert process.stdout is not None
    ended, ending = os.pipe()
    threading.Thread(target=announce, args=(process, ending), daemon=True).start()
    os.set_blocking(process.stdout.fileno(), False)
    with selectors.DefaultSelector() as selector, os.fdopen(ended):
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(ended, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            ready = {key.fd for key, _ in selector.select(left)}
            if not drain(process.stdout.fileno(), printed) and process.stdout.fileno() in ready:
                selector.unregister(process.stdout)
            if ended in ready:
                return True
    return False


def announce(process: subprocess.Popen[bytes], ending: int) -> None:
    """Close *ending* when *process* has ended."""
    process.wait()
    os.close(ending)


def drain(source: int, printed: Printed) -> bool:
    """Take what is there now; say whether there may be more."""
    try:
        chunk = os.read(source, CHUNK)
    except BlockingIOError:
        return True
    printed.add(chunk)
    return chunk != b""


def status(code: int) -> str:
    """Return in words how a process ended."""
    return f"killed by {signal_name(-code)}" if code < 0 else f"exit status {code}"
