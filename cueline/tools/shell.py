"""The tool that runs shell commands."""

import json
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
from typing import Annotated, Any, Final, NoReturn

from pydantic import Field

from cueline.actors.tool_port import JSON
from cueline.errors import ToolFailedError
from cueline.events.codes import NOT_STARTED
from cueline.events.fact import json_or_text
from cueline.events.sanitize import CUT
from cueline.tools.guardian import LINUX, SET_CHILD_SUBREAPER, guard, prctl, sweep, watch_children
from cueline.tools.result import SHORTAGES, signal_name
from cueline.tools.tool import OUTPUT_LIMIT, TIMEOUT_SECONDS, Output, ToolContext, tool

CHUNK = 1 << 20
"""The size of a full pipe, so that one read takes all output."""
TOLD = 10_000
# A little less than the time-out of the tool, so that the output can still be returned.
LONGEST = TIMEOUT_SECONDS - 10
UNHEARD = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
OPEN_FILES = "/proc/self/fd" if LINUX else "/dev/fd"
KILL_SECONDS = 3.0
"""The time to kill processes; the worker's guardian kills the processes that survive it."""


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
def start_shell(command: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run *command* for the block; then kill it and all processes that it started."""
    shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
    with not_started_on_shortage():
        control, holding = os.pipe()
    # A signal must not come before this process waits; the guardian ignores the signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, UNHEARD)
    try:
        with not_started_on_shortage():
            process = subprocess.Popen(  # noqa: S603 - running the model's command is the purpose
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
        # The worker and the command got SIGTERM: let the command end by itself. The guardian kills
        # both when the grace period is over.
        process.wait()
        raise
    finally:
        os.close(holding)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def not_started_on_shortage() -> Iterator[None]:
    """Raise `not_started` if the system lacks resources for the block."""
    try:
        yield
    except (OSError, subprocess.SubprocessError) as error:  # or `guarded` could not fork
        if isinstance(error, OSError) and error.errno not in SHORTAGES:
            raise
        raise ToolFailedError(NOT_STARTED, f"no process can be started: {error}") from error


def become_guarded(control: int) -> None:
    """Become the command, below a guardian process; see `tools.guardian`.

    The worker's own guardian would let processes that leave the command's session live as
    long as the worker.
    """
    if LINUX:
        prctl(SET_CHILD_SUBREAPER, 1)
    command = os.fork()
    if command:
        stand_by(command, control)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, UNHEARD)
    os.setpgid(0, 0)  # signals to its process group do not reach its guardian


def stand_by(command: int, control: int) -> NoReturn:
    """Wait for the end of *command* or *control*; kill the rest; exit with the command's status."""
    try:
        # The command and the worker have the other descriptors, and wait until these are closed.
        close_all_but(control)
        signals = watch_children()
        signal.raise_signal(signal.SIGCHLD)  # the command may have ended earlier
        code = guard(command, control, signals)
        sweep(signals, KILL_SECONDS)
        if code is not None and code < 0:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            with suppress(OSError):  # SIGKILL cannot be handled
                signal.signal(-code, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
            os.kill(os.getpid(), -code)
        os._exit(code or 0)
    finally:
        os._exit(1)


def close_all_but(kept: int) -> None:
    """Close all open descriptors except *kept*; not all possible ones, which may be a billion."""
    for name in os.listdir(OPEN_FILES):  # noqa: PTH208 - only the names, and fast
        if (descriptor := int(name)) != kept:
            os.closerange(descriptor, descriptor + 1)  # the listing has closed its descriptor


def follow(process: subprocess.Popen[bytes], printed: Printed, deadline: float) -> bool:
    """Collect the output of *process* until it ends; return whether it ended in time.

    The wait is for the process, not for the end of its output, which background processes
    keep open.
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
    """Read the available output; return whether there may be more."""
    try:
        chunk = os.read(source, CHUNK)
    except BlockingIOError:
        return True
    printed.add(chunk)
    return chunk != b""


def status(code: int) -> str:
    """Return the end of a process in words."""
    return f"killed by {signal_name(-code)}" if code < 0 else f"exit status {code}"


STEP: Final = "run"
"""The name of a procedure's only step."""
_TOLD: Final = 10_000


@tool
def run_program(command: list[Any], parameters: dict[str, Any], *, context: ToolContext) -> Output:
    """Run a program with *parameters* as JSON on its standard input; return what it prints.

    A part of *command* that is null is left out; another that is no text is written as JSON.
    An object or a list that it prints is JSON, and all else text. What the program writes to
    standard error is its message if it fails.
    """
    folder = context.folder
    given = [each for each in command if each is not None]
    argv = [each if isinstance(each, str) else json.dumps(each) for each in given]
    if command[0] is None:
        why = "the program is null: give its parameter a value, or a `default` in the schema"
        raise ToolFailedError("invalid_arguments", why)
    try:
        done = subprocess.run(  # noqa: S603 - running the procedure's command is the purpose
            argv,
            input=json.dumps(parameters).encode(),
            capture_output=True,
            cwd=folder,
            check=False,
        )
    except OSError as error:
        raise ToolFailedError("tool_error", f"{argv[0]} cannot be run: {error.strerror}") from None
    if done.returncode:
        last = (done.stderr or done.stdout)[-_TOLD:].decode(errors="replace").strip()
        raise ToolFailedError("tool_error", f"exit status {done.returncode}: {last}")
    if len(done.stdout) > OUTPUT_LIMIT:
        return Output(done.stdout[:OUTPUT_LIMIT], len(done.stdout))
    value = json_or_text(done.stdout.decode(errors="replace"))
    return Output(done.stdout, media_type=JSON if isinstance(value, dict | list) else "")
