"""The diff of the change that a call would make, for the question about the call."""

import hashlib
from collections.abc import Iterable, Mapping
from difflib import unified_diff
from os import fdopen
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from cueline.actors.presence import machine_name
from cueline.errors import CuelineError
from cueline.events.agent import COMMAND_SCHEME, AgentSpec, ToolSpec, Workspace
from cueline.tools.changes import apply_patch, patched, restore_files, restored
from cueline.tools.files import edit_file, edited
from cueline.tools.folder import REACHES_LOG, HardLinks, kind_of, open_file, parent_of, within
from cueline.tools.patch import NO_FILE

LARGEST = 1_000_000
PAIRS = 5000**2
"""The most pairs of an old and a new line to compare, because a comparison blocks the host."""
LINES = 400
_CONFINED = ("cueline.tools.files:", "cueline.tools.search:", "cueline.tools.changes:")
"""The modules whose tools reach nothing outside of the workspace."""
_ISOLATED = ("cueline.tools.shell:", COMMAND_SCHEME)
"""The targets whose commands do not see the log, unless isolation is off."""
_EDIT = edit_file.spec().target
_SEVERAL = {tool.spec().target: tool for tool in (apply_patch, restore_files)}


def preview(
    log: str,
    files: Iterable[Path],
    tool: ToolSpec,
    arguments: Mapping[str, JsonValue],
    agent: AgentSpec,
) -> str:
    """Return the diff of the change that a call of *agent* would make; empty if unknown.

    The diff needs a tool that declares `writes`, and a workspace on this machine that no sandbox
    has. For a tool that
    may reach the *files* of *log*, the text is a warning.
    """
    workspace = agent.workspace
    if workspace is None or workspace.machine != machine_name():
        return ""
    if agent.sandbox is not None and tool.needs_workspace:
        return ""
    warning = ""
    isolated = () if agent.isolation.kind == "none" else _ISOLATED
    confined = not tool.needs_workspace or tool.target.startswith((*_CONFINED, *isolated))
    if not confined and within(workspace, files):
        warning = f"{REACHES_LOG} {log}: it is in the workspace."
    return "\n".join(filter(None, (warning, _change(tool, arguments, workspace))))


def _change(tool: ToolSpec, arguments: Mapping[str, JsonValue], workspace: Workspace) -> str:
    if tool.target == _EDIT:
        return _edit(arguments, workspace)
    if tool.target in _SEVERAL:
        return _several(tool, arguments, workspace)
    if tool.writes is None:
        return ""
    path, content = (arguments.get(name) for name in tool.writes)
    if not isinstance(path, str) or not isinstance(content, str):
        return ""
    before = _content(Path(workspace.path), path)
    return "" if before is None else _difference(path, before, content)


def _edit(arguments: Mapping[str, JsonValue], workspace: Workspace) -> str:
    """Return the diff of a call of `edit_file`; empty if the call would fail."""
    path, old, new = (arguments.get(name) for name in ("path", "old", "new"))
    if not isinstance(path, str) or not isinstance(old, str) or not isinstance(new, str):
        return ""
    before = _content(Path(workspace.path), path)
    try:
        after = edited(before or "", old, new, every=arguments.get("every") is True)
    except ValueError:
        return ""
    return _difference(path, before or "", after)


def _several(tool: ToolSpec, arguments: Mapping[str, JsonValue], workspace: Workspace) -> str:
    """Return the diffs of a call that changes several files; empty if the call would fail."""
    root = Path(workspace.path)
    try:
        bound: Any = _SEVERAL[tool.target].signature.bind(arguments)
        changes = (
            patched(root, bound["paths"], bound["patch"])
            if "patch" in bound
            else restored(root, bound["paths"], bound["files"])
        )
    except (OSError, ValueError, CuelineError):
        return ""
    return "\n".join(difference(e.path, e.before or b"", e.after or b"") for e in changes)


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


def difference(path: str, before: bytes | None, after: bytes | None, most: int = LINES) -> str:
    """Return the unified diff of a file, at most *most* lines; None: there is no file."""
    try:
        found = _difference(path, (before or b"").decode(), (after or b"").decode(), most)
    except UnicodeDecodeError:
        return f"a/{path}: {len(before or b''):,} bytes become {len(after or b''):,}, no text"
    if before is None:
        found = found.replace(f"--- a/{path}\n", f"--- {NO_FILE}\n", 1)
    return found.replace(f"+++ b/{path}\n", f"+++ {NO_FILE}\n", 1) if after is None else found


def _difference(path: str, before: str, after: str, most: int = LINES) -> str:
    old, new = before.splitlines(), after.splitlines()
    if old == new and before != after:
        return f"a/{path}: only the ends of lines change"
    if len(old) * len(new) > PAIRS:
        was = hashlib.sha256(before.encode()).hexdigest()[:12]
        return f"a/{path}: {len(old):,} lines ({was}) become {len(new):,}, too many to compare"
    lines = list(unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm=""))
    if len(lines) > most:
        lines[most:] = [f"[{len(lines) - most} lines more]"]
    return "\n".join(lines)
