"""The built-in tools that list and search the workspace."""

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

from pydantic import Field

from cueline.errors import PathEscapeError, ToolFailedError
from cueline.events.sanitize import CUT, cut
from cueline.linear_regex import compile_regex
from cueline.tools.files import Inside, is_binary, lines_of
from cueline.tools.folder import (
    HardLinks,
    folder_at,
    kind_of,
    names_in,
    open_file,
    parent_of,
    word_for,
)
from cueline.tools.tool import ToolContext, tool
from cueline.tools.walk import DEPTH, FolderEntry, IgnoreRules, walk

LIST_LIMIT = 1_000
SEARCH_LIMIT = 10_000_000
LINE_LIMIT = 300
_BREAKS = re.compile(r"[\x00-\x1f]")
_WILD = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_PIECES = re.compile(r"\*\*/|\*\*|\{[^{}]*\}|\[[^\]/]+\]|.", re.DOTALL)
_SPECIAL = re.compile(r"[\\\[\]&~]")

Glob = Annotated[str, Field(description="For example `**/*.py`.")]


@tool(read_only=True, needs_workspace=True, paths=["path"])
def list_files(  # noqa: D417 - the model is not told of the context
    path: Inside = ".",
    recursive: bool = False,  # noqa: FBT001, FBT002 - the model names it
    *,
    glob: Glob = "",
    ignored: bool = False,
    context: ToolContext,
) -> str:
    """List a folder of the workspace: folders end in `/`, files have their size in bytes.

    At most 1,000 entries are listed. `.git` and `.cueline` are not entered. Entries that
    `.gitignore` files ignore are left out, and counted.

    Args:
        path: the folder, relative to the workspace.
        recursive: whether the folders below are listed, too.
        glob: only entries whose path below *path* matches, such as `**/*.py`; `**/` stands for any
            folders, `*` for a part of one name, `{a,b}` for a or b. The folders below are searched.
        ignored: whether ignored entries are listed, too.
    """
    lines: list[str] = []
    wanted = matcher(glob)
    depth = DEPTH if "**" in glob or (recursive and not glob) else glob.count("/")
    nothing = "[no match]" if glob else "[empty]"
    names = names_in(path)
    prefix = "".join(f"{name}/" for name in names)
    rules = None if ignored else rules_at(context, names)
    with folder_at(context.workspace, path) as folder:
        for entry in walk(folder, prefix, depth=depth, rules=rules):
            if not wanted(entry.path.removeprefix(prefix)):
                continue
            if len(lines) == LIST_LIMIT:
                lines.append(f"[more than {LIST_LIMIT:,} entries; list a folder further down]")
                break
            lines.append(line_for(entry))
    return "\n".join([*(lines or [nothing]), *left_out(rules)])


@tool(read_only=True, needs_workspace=True, paths=["path"])
def search_files(  # noqa: D417 - the model is not told of the context
    pattern: str,
    path: Inside = ".",
    regex: bool = False,  # noqa: FBT001, FBT002 - the model names it
    max_matches: Annotated[int, Field(ge=1, le=1000)] = 200,
    *,
    glob: Glob = "",
    ignored: bool = False,
    context: ToolContext,
) -> str:
    """Search the text files of the workspace line by line: `path:line: text`.

    Binary files, files over 10 MB, `.git`, `.cueline` and files that `.gitignore` files ignore
    are left out, and said to be. What *path* names is searched also if it is ignored.

    Args:
        pattern: text to find as it is; with `regex`, a regular expression.
        path: the file or folder to search, relative to the workspace.
        regex: whether *pattern* is a regular expression; it may have no look-around and no
            backreferences.
        max_matches: the search ends after as many.
        glob: only files whose path below *path* matches, as for `list_files`.
        ignored: whether ignored files are searched, too.
    """
    try:
        wanted = compile_regex(pattern) if regex else lambda line: pattern in line
    except ValueError as error:
        raise ToolFailedError(
            "tool_error", f"{pattern!r} is no regular expression: {error}"
        ) from None
    # A file without these bytes is not read line by line. U+FFFD stands for any invalid bytes.
    part = b"" if regex or "\ufffd" in pattern else pattern.encode(errors="replace")
    lines: list[str] = []
    skipped = 0
    rules = None if ignored else rules_at(context, names_in(path))
    links = HardLinks(context.workspace)
    for entry in entries_at(context, path, matcher(glob), rules):
        found = search(entry, part, wanted, max_matches - len(lines), links)
        skipped += found is None
        lines += found or []
        if len(lines) == max_matches:
            lines.append(f"[stopped at {max_matches} matches]")
            break
    if skipped:
        lines.append(f"[left out {skipped} binary, huge or unreadable files]")
    return "\n".join([*(lines or ["[no match]"]), *left_out(rules)])


def rules_at(context: ToolContext, names: Sequence[str]) -> IgnoreRules:
    """Return the rules that hold in the folder *names* of the workspace."""
    rules = IgnoreRules(HardLinks(context.workspace))
    rules.at(context.workspace, names)
    return rules


def left_out(rules: IgnoreRules | None) -> list[str]:
    """Return the line about the entries that *rules* have ignored; no line without entries."""
    if rules is None or rules.left_out == 0:
        return []
    what = "1 ignored entry" if rules.left_out == 1 else f"{rules.left_out:,} ignored entries"
    return [f"[left out {what} (.gitignore); ignored=true has them]"]


def matcher(glob: str) -> Callable[[str], bool]:
    """Return whether a path matches *glob*; an empty glob matches every path.

    Raises:
        ToolFailedError: *glob* is none.
    """
    if not glob:
        return lambda _: True
    try:
        return compile_regex(rf"(?s)\A{_expression(glob)}\z")
    except ValueError as error:
        raise ToolFailedError("tool_error", f"{glob!r} is no glob: {error}") from None


def _expression(glob: str) -> str:
    return "".join(map(_meaning, _PIECES.findall(glob)))


def _meaning(piece: str) -> str:
    """Return the regular expression of a *piece* of a glob."""
    if len(piece) > 1 and piece[0] == "{":
        return f"(?:{'|'.join(map(_expression, piece[1:-1].split(',')))})"
    if len(piece) > 1 and piece[0] == "[":
        inner = _SPECIAL.sub(r"\\\g<0>", piece[1:-1])
        return f"[^{inner[1:]}]" if inner[0] == "!" else f"[{inner}]"
    return _WILD.get(piece) or re.escape(piece)


def line_for(entry: FolderEntry) -> str:
    """Return the line for *entry* in the list of a folder."""
    name = on_one_line(entry.path)
    if entry.kind == stat.S_IFDIR:
        return f"{name}/"
    if entry.kind == stat.S_IFREG:
        return f"{name}  {entry.size:,}"
    return f"{name}  ({word_for(entry.kind)})"


def on_one_line(path: str) -> str:
    """Return *path*; as JSON if *path* contains control characters."""
    return json.dumps(path, ensure_ascii=False) if _BREAKS.search(path) else path


def entries_at(
    context: ToolContext, path: str, wanted: Callable[[str], bool], rules: IgnoreRules | None
) -> Iterator[FolderEntry]:
    """Yield the regular files at *path*: the *wanted* ones of a folder, or the file itself."""
    names = names_in(path)
    if names:
        with parent_of(context.workspace, path) as (parent, name):
            if kind_of(parent, name) == stat.S_IFREG:
                yield FolderEntry("/".join(names), parent, name, stat.S_IFREG, 0)
                return
    prefix = "".join(f"{name}/" for name in names)
    with folder_at(context.workspace, path) as folder:
        for entry in walk(folder, prefix, rules=rules):
            if entry.kind == stat.S_IFREG and wanted(entry.path.removeprefix(prefix)):
                yield entry


def search(
    entry: FolderEntry, part: bytes, wanted: Callable[[str], bool], most: int, links: HardLinks
) -> list[str] | None:
    """Return the matching lines of *entry*; None if the file is not searched."""
    try:
        descriptor = open_file(entry.parent, entry.name, entry.path, links)
    except (PathEscapeError, ToolFailedError):
        return None
    with os.fdopen(descriptor, "rb") as file:
        if os.fstat(descriptor).st_size > SEARCH_LIMIT or is_binary(file):
            return None
        if part not in file.read(SEARCH_LIMIT):
            return []
        file.seek(0)
        lines: list[str] = []
        before = 0
        for number, chunk in lines_of(file):
            text = chunk.decode(errors="replace").rstrip("\r\n")
            if wanted(text):
                start = CUT if number == before else ""  # a part of a very long line
                lines.append(f"{on_one_line(entry.path)}:{number}: {start}{cut(text, LINE_LIMIT)}")
                if len(lines) == most:
                    break
            before = number
        return lines
