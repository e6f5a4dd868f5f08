"""Skills: folders with instructions that a model reads when a task needs them.

A skill is a folder with a `SKILL.md`, in the format of Agent Skills: a front matter with `name`
and `description`, then text. The model knows the descriptions, and reads the rest by `read_skill`.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field

from cueline.errors import ConfigError, ToolFailedError
from cueline.errors.suggestion import known_instead
from cueline.tools.files import AtLeastOne, read_in
from cueline.tools.tool import Image, ToolContext, tool

SKILL: Final = "SKILL.md"
_INTRODUCTION: Final = (
    "You have skills: instructions for certain tasks. "
    "Before such a task, read its skill by read_skill."
)
_FENCE: Final = "---"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LONGEST_DESCRIPTION: Final = 1024
_LARGEST: Final = 1_000_000
_ENTRY: Final = re.compile(r"([A-Za-z][\w-]*):(?:[ \t]+(.*))?")
_COMMENT: Final = re.compile(r"(^|\s)#.*")
_BLOCK: Final = re.compile(r"[|>][+-]?")
_NO_TEXT: Final = tuple("[{&*!%@`")
"""How values of YAML begin that are no plain text."""


class Skill(NamedTuple):
    """A skill of an agent."""

    name: str
    description: str
    folder: Path


@tool(read_only=True)
def read_skill(
    name: str,
    file: Annotated[str, Field(description="Relative to the skill's folder.")] = SKILL,
    start_line: AtLeastOne = 1,
    *,
    context: ToolContext,
) -> str | Image:
    """Read the instructions of a skill, or another file of its folder that they name."""
    folders: Any = context.options.get("folders", {})
    if name not in folders:
        known = known_instead(name, sorted(folders), "there are") or "; there is none"
        raise ToolFailedError("tool_error", f"there is no skill {name!r}{known}")
    if not (folder := Path(folders[name])).is_dir():
        raise ToolFailedError("tool_error", f"{name}: the folder of the skill, {folder}, is gone")
    return read_in(folder, file, start_line)


def skills_in(folders: Sequence[Path]) -> tuple[Skill, ...]:
    """Return the skills in *folders*, by name; each is a skill, or has skills in its subfolders.

    Raises:
        ConfigError: a folder has no skill, a `SKILL.md` cannot be read, or two have one name.
    """
    found: dict[str, Skill] = {}
    for file in (each for folder in folders for each in _files_in(folder)):
        skill = _skill_of(file)
        if (other := found.setdefault(skill.name, skill)).folder != skill.folder:
            raise ConfigError(str(file), f"{other.folder} has a skill {skill.name!r}, too")
    return tuple(found[name] for name in sorted(found))


def introduction(skills: Sequence[Skill]) -> str:
    """Return the instructions that name *skills*."""
    return "\n".join([_INTRODUCTION, *(f"- {each.name}: {each.description}" for each in skills)])


def _files_in(folder: Path) -> list[Path]:
    if (folder / SKILL).is_file():
        return [folder / SKILL]
    try:
        files = [each / SKILL for each in sorted(folder.iterdir()) if (each / SKILL).is_file()]
    except OSError as error:
        raise ConfigError(str(folder), f"it cannot be read: {error.strerror}") from None
    if not files:
        raise ConfigError(str(folder), f"it has no {SKILL}, and no folder in it has one")
    return files


def _skill_of(file: Path) -> Skill:
    """Return the skill of a `SKILL.md`.

    Raises:
        ConfigError: the file cannot be read, or a part is missing; the message names the line.
    """
    try:
        with file.open(encoding="utf-8-sig") as opened:
            lines = opened.read(_LARGEST).splitlines()
    except OSError as error:
        raise ConfigError(str(file), f"it cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(str(file), "it is no text in UTF-8") from None
    try:
        name, description = _front_matter(lines)
    except ValueError as error:
        line, reason = error.args
        raise ConfigError(str(file), f"line {line}: {reason}") from None
    return Skill(name, description, file.parent.resolve())


def _front_matter(lines: Sequence[str]) -> tuple[str, str]:
    """Return the name and the description of a skill.

    Raises:
        ValueError: with the number of the line and the reason.
    """
    values = {key: (line, _text(line, value)) for key, line, value in _entries(lines)}
    line, name = values.get("name", (1, ""))
    if _NAME.fullmatch(name) is None:
        why = "up to 64 letters, digits, `.`, `_` and `-`, as in `name: pdf-forms`"
        raise ValueError(line, f"`name` is {name!r}; it has {why}")
    line, description = values.get("description", (1, ""))
    if not 0 < len(description) <= _LONGEST_DESCRIPTION:
        why = f"has {len(description)} characters; it says in 1 to {_LONGEST_DESCRIPTION}"
        raise ValueError(line, f"`description` {why} what the skill is for, and when")
    return name, description


def _entries(lines: Sequence[str]) -> Iterator[tuple[str, int, list[str]]]:
    """Yield the keys `name` and `description`, with their line and the pieces of their value.

    Of YAML this reads entries of the top level; an indented line belongs to the entry above it.
    """
    if not lines or lines[0].rstrip() != _FENCE:
        raise ValueError(1, f"it begins with a line {_FENCE}, then `name: …` and `description: …`")
    entries: list[tuple[str, int, list[str]]] = []
    for number, line in enumerate(lines[1:], 2):
        if line.rstrip() == _FENCE:
            yield from (each for each in entries if each[0] in ("name", "description"))
            return
        entry = _ENTRY.fullmatch(line.rstrip())
        if entry is not None:
            entries.append((entry[1], number, [entry[2] or ""]))
        elif line[:1] in (" ", "\t", "-") and entries:
            entries[-1][2].append(line.strip())
        elif not _COMMENT.sub("", line).strip():
            continue
        else:
            raise ValueError(number, f"{line[:80]!r} is no `key: value`")
    raise ValueError(len(lines), f"the line {_FENCE} that ends the front matter is missing")


def _text(line: int, pieces: Sequence[str]) -> str:
    """Return the text of a value: plain, in quotes, or a block, on one line."""
    first, *rest = pieces
    if _BLOCK.fullmatch(first):
        return " ".join(" ".join(rest).split())
    whole = " ".join([first, *rest]).strip()
    if whole.startswith('"'):
        try:
            return " ".join(str(json.loads(whole)).split())
        except ValueError:
            raise ValueError(line, f"{whole[:80]} is no text in quotes") from None
    if whole.startswith("'"):
        if len(whole) == 1 or not whole.endswith("'"):
            raise ValueError(line, f"{whole[:80]} is no text in quotes")
        return " ".join(whole[1:-1].replace("''", "'").split())
    if whole.startswith(_NO_TEXT):
        raise ValueError(line, f"{whole[:80]!r} is no text; put it in quotes")
    return " ".join(_COMMENT.sub("", whole).split())
