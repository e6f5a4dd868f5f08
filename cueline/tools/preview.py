"""Previews what a call would change."""

import hashlib
from collections.abc import Iterable, Mapping
from difflib import unified_diff
from os import fdopen
from pathlib import Path

from pydantic import JsonValue

from cueline.actors.presence import machine_name
from cueline.errors import CuelineError
from cueline.events.agent import ToolSpec, Workspace
from cueline.tools.folder import HardLinks, kind_of, open_file, parent_of
from cueline.tools.log_reach import REACHES_LOG, within

LARGEST = 1_000_000
PAIRS = 5000**2
"""The most lines compared, before plus after: comparing blocks the host."""
LINES = 400
_FILE_TOOLS = "cueline.tools.files:"


def preview(
    log: str,
    files: Iterable[Path],
    tool: ToolSpec,
    arguments: Mapping[str, JsonValue],
    workspace: Workspace | None,
) -> str:
    """Return the diff that a call would make to a file; empty if it is unknown.

    It works for tools that declare what they write, if the workspace is on this machine. A
    tool that may reach the *files* of *log* gets a warning.
    """
    if workspace is None or workspace.machine != machine_name():
        return ""
    warning = ""
    confined = not tool.needs_workspace or tool.target.startswith(_FILE_TOOLS)
    if not confined and within(workspace, files):
        warning = f"{REACHES_LOG} {log}: it is in the workspace."
    return "\n".join(filter(None, (warning, _change(tool, arguments, workspace))))


def _change(tool: ToolSpec, arguments: Mapping[str, JsonValue], workspace: Workspace) -> str:
    if tool.writes is None:
        return ""
    path, content = (arguments.get(name) for name in tool.writes)
    if not isinstance(path, str) or not isinstance(content, str):
        return ""
    before = _content(Path(workspace.path), path)
    return "" if before is None else _difference(path, before, content)


def _content(root: Path, path: str) -> str | None:
    """Return the text at *path*; empty if there is no file; None if it is not text."""
    try:
        if not (root / path).parent.exists():
            return ""  # the folders are created with the file
        with parent_of(root, path) as (parent, name):
            if kind_of(parent, name) is None:
                return ""
            with fdopen(open_file(parent, name, path, HardLinks(root)), "rb") as file:
                found = file.read(LARGEST + 1)
        return found.decode() if len(found) <= LARGEST else None
    except (OSError, ValueError, CuelineError):
        return None


def _difference(path: str, before: str, after: str) -> str:
    old, new = before.splitlines(), after.splitlines()
    if old == new and before != after:
        return f"a/{path}: only the ends of lines change"
    if len(old) * len(new) > PAIRS:
        was = hashlib.sha256(before.encode()).hexdigest()[:12]
        return f"a/{path}: {len(old):,} lines ({was}) become {len(new):,}, too many to compare"
    lines = list(unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm=""))
    if len(lines) > LINES:
        lines[LINES:] = [f"[{len(lines) - LINES} lines more]"]
    return "\n".join(lines)
