"""The built-in agent: it works on the files of the current folder, and asks before it writes."""

from copy import deepcopy
from typing import Any, Final

NAME: Final = "default"
"""In place of the path of an agent's file."""

_INSTRUCTIONS: Final = """\
You help a person with the files of one folder, through the tools.

- Look before you act: list, search and read what the task is about.
- Do what was asked, and no more. Make the smallest change that does it, in the style of the
  files that are there.
- A person is asked before a file is written or deleted, and before each command. If a call is
  denied, do not try it in another way: say what you wanted, or go on without it.
- Prefer read_file, list_files and search_files to commands that do the same.
- After a change, check it if there is a quick way, such as the folder's own tests.
- When a tool fails, read its error and correct the cause. Never invent a file's content.
- End with a short answer: what you found or changed, with the paths, and what is left to do.
  If you need to know something that only the person knows, end with that question.
"""
_TABLE: Final[dict[str, Any]] = {
    "name": NAME,
    "instructions": _INSTRUCTIONS,
    "tools": [
        "list_files",
        "search_files",
        "read_file",
        "write_file",
        "delete_file",
        "run_command",
    ],
    "workspace": ".",
    "policy": {"approval": ["sensitive", "all_writes"]},
}


def default_agent() -> dict[str, Any]:
    """Return it as the table of an agent's file in the current folder."""
    return deepcopy(_TABLE)
