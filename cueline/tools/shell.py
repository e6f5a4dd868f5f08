"""The tool that runs shell commands."""

import json
import os
import resource
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

from pydantic import Field

from cueline.actors.presence import machine_name
from cueline.actors.tool_port import JSON
from cueline.errors import ConfigError, ToolFailedError
from cueline.events.agent import COMMAND_SCHEME, AgentSpec, ToolSpec
from cueline.events.agent_parts import DEFAULT_ISOLATION
from cueline.events.codes import NOT_STARTED
from cueline.events.fact import json_or_text
from cueline.events.sanitize import CUT
from cueline.isolation.ladder import check_overlays, overlays, rung
from cueline.isolation.sandbox import Sandbox, check_sandbox, sandbox
from cueline.tools.guardian import LINUX, SET_CHILD_SUBREAPER, guard, prctl, sweep, watch_children
from cueline.tools.network_proxy import proxied
from cueline.tools.result import SHORTAGES, signal_name
from cueline.tools.sandbox import check_backend, run_there
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

    Unless the person who runs cueline has allowed more, it is isolated: it can change the
    workspace only, reads programs and the workspace, has no network, and finds an empty
    /tmp and home folder, which vanish at its end. It has no terminal and no input. What it
    leaves running in the background is killed when the command ends.
    """
    if context.sandbox is not None:
        there = run_there(["/bin/sh", "-c", command], context, timeout_seconds)
        return Printed(bytearray(there.output), there.size).output(status(there.exit_code))
    if not context.workspace.is_dir():
        raise ToolFailedError("tool_error", "the workspace is not there")
    shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
    printed = Printed()
    with isolated([shell, "-c", command], context) as box:
        with start_guarded(box, context.workspace) as process:
            ended = follow(process, printed, time.monotonic() + timeout_seconds)
        check_began(box, process.returncode, printed.kept)
    if not ended:
        effects = "nothing was changed" if context.overlay else "it may have had effects"
        reason = f"did not end within {timeout_seconds:g} s and was killed; {effects}"
        raise ToolFailedError("timeout", f"the command {reason}. {printed.tail()}")
    return printed.output(status(box.exit_code(process.returncode)))


@contextmanager
def isolated(command: Sequence[str], context: ToolContext) -> Iterator[Sandbox]:
    """Yield how to start *command* with the isolation of the agent.

    Raises:
        ToolFailedError: the command cannot be isolated here, and does not run.
    """
    with ExitStack() as stack:
        try:
            with not_started_on_shortage():
                if context.overlay:
                    check_overlays(context.isolation)
                proxy = stack.enter_context(proxied(context.isolation))
                box = stack.enter_context(
                    sandbox(
                        command,
                        isolation=context.isolation,
                        environment=os.environ,
                        workspace=context.folder,
                        hidden=context.hidden,
                        overlay=context.overlay,
                        proxy=proxy,
                    )
                )
        except ConfigError as error:
            raise ToolFailedError(
                "tool_error", f"the command did not run: {error.reason}"
            ) from None
        yield box


def commands_problem(workspace: Path | None = None, hidden: Sequence[Path] = ()) -> str:
    """Return why commands cannot run isolated here, and what to do; empty if they can.

    *workspace* is by default the current folder, and *hidden* are the files of the log.
    """
    found = rung()
    if not found.kind:
        return f"{found.cause}; {found.fix}"
    try:
        check_sandbox(DEFAULT_ISOLATION, workspace or Path.cwd(), hidden)
    except ConfigError as error:
        return error.reason
    return ""


def holding_problem() -> str:
    """Return why changes cannot be held on this machine, and what to do; empty if they can."""
    found = overlays()
    return "" if found.program else f"{found.cause}; {found.fix}"


def check_commands(agent: AgentSpec, hidden: Sequence[Path] = ()) -> None:
    """Raise if *agent* runs commands on this machine, and they cannot be isolated as it says.

    The commands must not reach the *hidden* files, those of the log. In a sandbox they are
    isolated by its back-end.

    Raises:
        ConfigError: install what isolates commands, or correct the agent's `isolation` or
            `sandbox`.
    """
    place = agent.workspace
    if agent.sandbox is not None:
        check_backend(agent.sandbox.backend)
        return
    commands = (f"{__name__}:", COMMAND_SCHEME)
    runs = any(tool.target.startswith(commands) for tool in agent.tools if tool.runs)
    if runs and place is not None and place.machine == machine_name():
        check_sandbox(agent.isolation, Path(place.path), hidden)
        if any(tool.changes for tool in agent.tools):
            check_overlays(agent.isolation)


def holds_changes(tool: ToolSpec) -> bool:
    """Whether what *tool* changes can wait for a yes."""
    commands = (run_command.spec().target, COMMAND_SCHEME)
    return tool.needs_workspace and tool.target.startswith(commands)


def runs_in_sandbox(tool: ToolSpec) -> bool:
    """Whether *tool* can work on a workspace that is in a sandbox.

    Commands run there. Another tool works on copies of the files that its arguments name, so one
    that looks into folders finds nothing.
    """
    if not tool.needs_workspace or tool.target.startswith((f"{__name__}:", COMMAND_SCHEME)):
        return True
    return bool(tool.paths) and not tool.target.startswith(_WALKS)


def check_began(box: Sandbox, code: int, printed: bytes | bytearray) -> None:
    """Raise if the isolation ended with *code* before the command began.

    Raises:
        ToolFailedError: the command did not run.
    """
    if not box.began(code):
        said = bytes(printed[-TOLD:]).decode(errors="replace").strip()
        raise ToolFailedError(
            "tool_error", f"the command did not run, it cannot be isolated: {said}"
        )


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
    signal.pthread_sigmask(signal.SIG_BLOCK, UNHEARD)
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
                preexec_fn=partial(become_guarded, control, box),  # noqa: PLW1509 - it takes no lock
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
        for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
            stream.close()


@contextmanager
def not_started_on_shortage() -> Iterator[None]:
    """Raise `not_started` if the system lacks resources for the block."""
    try:
        yield
    except (OSError, subprocess.SubprocessError) as error:  # or `guarded` could not fork
        if isinstance(error, OSError) and error.errno not in SHORTAGES:
            raise
        raise ToolFailedError(NOT_STARTED, f"no process can be started: {error}") from error


def become_guarded(control: int, box: Sandbox) -> None:
    """Become the command, below a guardian process; see `tools.guardian`.

    The worker's own guardian would let processes that leave the command's session live as
    long as the worker.
    """
    if LINUX:
        prctl(SET_CHILD_SUBREAPER, 1)
    box.before_fork()
    command = os.fork()
    if command:
        stand_by(command, control)
    box.before_exec()
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


_OUTPUT_FIRST: Final = """\
{ said=$("$@" 2>&1 >&3 3>&-); } 3>&1
code=$?
[ "$code" = 0 ] || printf '%s\\n' "$said"
exit "$code"
"""
"""A script for a sandbox, whose output is one text: of the errors of a command, it prints those
of a failure, after the output."""
STEP: Final = "run"
"""The name of a procedure's only step."""
_TOLD: Final = 10_000
_NOT_RUN: Final = (126, 127)
"""The exit statuses of a shell that cannot run a program."""


@tool
def run_program(command: list[Any], parameters: dict[str, Any], *, context: ToolContext) -> Output:
    """Run a program with *parameters* as JSON on its standard input; return what it prints.

    A part of *command* that is null is left out; another that is no text is written as JSON.
    An object or a list that it prints is JSON, and all else text. What the program writes to
    standard error is its message if it fails.
    """
    given = [each for each in command if each is not None]
    argv = [each if isinstance(each, str) else json.dumps(each) for each in given]
    if command[0] is None:
        why = "the program is null: give its parameter a value, or a `default` in the schema"
        raise ToolFailedError("invalid_arguments", why)
    return _run(argv, context, json.dumps(parameters).encode())


@tool
def run_argv(command: list[str], *, context: ToolContext) -> Output:
    """Run a program without an input; return what it prints.

    An object or a list that it prints is JSON. If it fails, its message is all that it wrote.
    """
    return _run(command, context)


def _run(argv: Sequence[str], context: ToolContext, given: bytes | None = None) -> Output:
    fed = given is not None
    if context.sandbox is not None:
        command = ["/bin/sh", "-c", _OUTPUT_FIRST, "sh", *argv]
        ended = run_there(command, context, LONGEST, given or b"")
        if ended.exit_code:
            last = ended.output[-_TOLD:].decode(errors="replace").strip()
            raise ToolFailedError("tool_error", f"exit status {ended.exit_code}: {last}")
        return _printed(ended.output)
    with isolated(argv, context) as box:
        try:
            with start_guarded(box, context.folder, separately=True, fed=fed) as process:
                stdout, stderr = process.communicate(given)
        except OSError as error:
            why = f"{argv[0]} cannot be run: {error.strerror}"
            raise ToolFailedError("tool_error", why) from None
        check_began(box, process.returncode, stderr)
    if code := box.exit_code(process.returncode):
        said = stderr or stdout if fed else stdout + stderr
        last = said[-_TOLD:].decode(errors="replace").strip()
        unable = f"{argv[0]} cannot be run, " if code in _NOT_RUN else ""
        effects = "\n[nothing was changed]" if context.overlay else ""
        raise ToolFailedError("tool_error", f"{unable}exit status {code}: {last}{effects}")
    return _printed(stdout)


def _printed(stdout: bytes) -> Output:
    if len(stdout) > OUTPUT_LIMIT:
        return Output(stdout[:OUTPUT_LIMIT], len(stdout))
    value = json_or_text(stdout.decode(errors="replace"))
    return Output(stdout, media_type=JSON if isinstance(value, dict | list) else "")


_WALKS: Final = "cueline.tools.search:"
COMMANDS: Final = (run_command, run_program, run_argv)
"""The tools that start one command, and have no effect before it."""
