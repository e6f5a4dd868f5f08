"""The tools that run commands: of a shell, and of programs that an agent names."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from cueline.actors.presence import machine_name
from cueline.actors.tool_port import JSON
from cueline.errors import ConfigError, ToolFailedError
from cueline.events.agent import COMMAND_SCHEME, AgentSpec, ToolSpec
from cueline.events.agent_parts import DEFAULT_ISOLATION
from cueline.events.fact import json_or_text
from cueline.isolation.ladder import check_overlays, overlays, rung
from cueline.isolation.sandbox import Sandbox, check_sandbox, sandbox
from cueline.tools.guarded_process import (
    TOLD,
    Printed,
    follow,
    not_started_on_shortage,
    start_guarded,
    status,
)
from cueline.tools.network_proxy import proxied
from cueline.tools.sandbox import check_backend, run_there
from cueline.tools.tool import OUTPUT_LIMIT, TIMEOUT_SECONDS, Output, ToolContext, tool

# A little less than the time-out of the tool, so that the output can still be returned.
LONGEST = TIMEOUT_SECONDS - 10
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
_NOT_RUN: Final = (126, 127)
"""The exit statuses of a shell that cannot run a program."""
_WALKS: Final = "cueline.tools.search:"


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
            ended = follow(process, printed, timeout_seconds)
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
            last = ended.output[-TOLD:].decode(errors="replace").strip()
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
        last = said[-TOLD:].decode(errors="replace").strip()
        unable = f"{argv[0]} cannot be run, " if code in _NOT_RUN else ""
        effects = "\n[nothing was changed]" if context.overlay else ""
        raise ToolFailedError("tool_error", f"{unable}exit status {code}: {last}{effects}")
    return _printed(stdout)


def _printed(stdout: bytes) -> Output:
    if len(stdout) > OUTPUT_LIMIT:
        return Output(stdout[:OUTPUT_LIMIT], len(stdout))
    value = json_or_text(stdout.decode(errors="replace"))
    return Output(stdout, media_type=JSON if isinstance(value, dict | list) else "")


COMMANDS: Final = (run_command, run_program, run_argv)
"""The tools that start one command, and have no effect before it."""
