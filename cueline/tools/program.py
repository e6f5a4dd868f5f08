"""The tool that runs the command of a procedure."""

import json
import subprocess
from typing import Any, Final

from cueline.actors.tool_port import JSON
from cueline.errors import ToolFailedError
from cueline.events.fact import json_or_text
from cueline.tools.tool import OUTPUT_LIMIT, Output, ToolContext, tool

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
