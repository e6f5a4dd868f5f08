"""Processes of commands: each has a guardian, so that nothing it started outlives it."""

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
from typing import Final, NoReturn

from cueline.errors import ToolFailedError
from cueline.events.codes import NOT_STARTED
from cueline.events.sanitize import CUT
from cueline.isolation.sandbox import Sandbox
from cueline.tools.guardian import LINUX, SET_CHILD_SUBREAPER, guard, prctl, sweep, watch_children
from cueline.tools.result import SHORTAGES, signal_name
from cueline.tools.tool import OUTPUT_LIMIT, Output

TOLD: Final = 10_000
"""The number of bytes of an output's end that are told of a failure."""
_CHUNK: Final = 1 << 20
"""The size of a full pipe, so that one read takes all output."""
_UNHEARD: Final = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
_OPEN_FILES: Final = "/proc/self/fd" if LINUX else "/dev/fd"
_KILL_SECONDS: Final = 3.0
"""The time to kill processes; the worker's guardian kills the processes that survive it."""


@dataclass(slots=True)
class Printed:
    """The output of a command so far."""

    kept: bytearray = field(default_factory=bytearray)
    size: int = 0

    def add(self, chunk: bytes) -> None:
        """Keep *chunk* if there is room, and count its size."""
        self.kept += chunk[: OUTPUT_LIMIT - len(self.kept)]
        self.size += len(chunk)

    def output(self, status: str) -> Output:
        """Return the output, with *status* as its last line."""
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
        """Return the end of the output, for the model of a command that did not end in time."""
        if not self.kept:
            return "It printed nothing."
        last = self.kept[-TOLD:].decode(errors="replace")
        # A secret may be cut at this end, too.
        return f"The last it printed:\n{CUT if len(self.kept) > TOLD else ''}{last}{CUT}"


@contextmanager
def start_guarded(
    box: Sandbox, folder: Path | None, *, separately: bool = False, fed: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command of *box* for the block; then kill it and all processes that it started.

    Its output and errors are one stream, unless *separately*; it has an input if *fed*.
    """
    with not_started_on_shortage():
        control, holding = os.pipe()
    # A signal must not come before this process waits; the guardian ignores the signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, _UNHEARD)
    try:
        with not_started_on_shortage():
            process = subprocess.Popen(  # noqa: S603 - running the model's command is the purpose
                box.argv,
                env=box.environment,
                pass_fds=box.descriptors,
                cwd=folder,
                stdin=subprocess.PIPE if fed else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if separately else subprocess.STDOUT,
                preexec_fn=partial(_become_guarded, control, box),  # noqa: PLW1509 - it takes no lock
            )
    except BaseException:
        os.close(holding)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _UNHEARD)
        raise
    finally:
        os.close(control)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _UNHEARD)
        yield process
    except SystemExit:
        # The worker and the command got SIGTERM: let the command end by itself. The guardian kills
        # both when the grace period is over.
        process.wait()
        raise
    finally:
        os.close(holding)
        process.wait()
        for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
            stream.close()


@contextmanager
def not_started_on_shortage() -> Iterator[None]:
    """Raise `not_started` if the system lacks resources for the block."""
    try:
        yield
    except (OSError, subprocess.SubprocessError) as error:  # or the guardian could not fork
        if isinstance(error, OSError) and error.errno not in SHORTAGES:
            raise
        raise ToolFailedError(NOT_STARTED, f"no process can be started: {error}") from error


def _become_guarded(control: int, box: Sandbox) -> None:
    """Become the command, below a guardian process; see `tools.guardian`.

    The worker's own guardian would let processes that leave the command's session live as
    long as the worker.
    """
    if LINUX:
        prctl(SET_CHILD_SUBREAPER, 1)
    box.before_fork()
    command = os.fork()
    if command:
        _stand_by(command, control)
    box.before_exec()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _UNHEARD)
    os.setpgid(0, 0)  # signals to its process group do not reach its guardian


def _stand_by(command: int, control: int) -> NoReturn:
    """Wait for the end of *command* or *control*; kill the rest; exit with the command's status."""
    try:
        # The command and the worker have the other descriptors, and wait until these are closed.
        _close_all_but(control)
        signals = watch_children()
        signal.raise_signal(signal.SIGCHLD)  # the command may have ended earlier
        code = guard(command, control, signals)
        sweep(signals, _KILL_SECONDS)
        if code is not None and code < 0:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            with suppress(OSError):  # SIGKILL cannot be handled
                signal.signal(-code, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
            os.kill(os.getpid(), -code)
        os._exit(code or 0)
    finally:
        os._exit(1)


def _close_all_but(kept: int) -> None:
    """Close all open descriptors except *kept*; not all possible ones, which may be a billion."""
    for name in os.listdir(_OPEN_FILES):  # noqa: PTH208 - only the names, and fast
        if (descriptor := int(name)) != kept:
            os.closerange(descriptor, descriptor + 1)  # the listing has closed its descriptor


def follow(process: subprocess.Popen[bytes], printed: Printed, seconds: float) -> bool:
    """Collect the output of *process* until it ends; return whether it ended within *seconds*.

    The wait is for the process, not for the end of its output, which background processes
    keep open.
    """
    deadline = time.monotonic() + seconds
    assert process.stdout is not None
    ended, ending = os.pipe()
    threading.Thread(target=_announce, args=(process, ending), daemon=True).start()
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


def _announce(process: subprocess.Popen[bytes], ending: int) -> None:
    """Close *ending* when *process* has ended."""
    process.wait()
    os.close(ending)


def drain(source: int, printed: Printed) -> bool:
    """Read the available output; return whether there may be more."""
    try:
        chunk = os.read(source, _CHUNK)
    except BlockingIOError:
        return True
    printed.add(chunk)
    return chunk != b""


def status(code: int) -> str:
    """Return the end of a process in words."""
    return f"killed by {signal_name(-code)}" if code < 0 else f"exit status {code}"
