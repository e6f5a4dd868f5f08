"""Finds the files of a log in the folder of an agent's tools."""

import os
from collections.abc import Iterable
from pathlib import Path

from cueline.events.agent import Workspace
from cueline.files import LOG_FOLDER

"""File tools refuse folders of this name, everywhere."""

REACHES_LOG = "This call can read, change or delete the log"
"""The start of a preview of a call that can reach the log."""


def names_log_folder(names: Iterable[str]) -> bool:
    """Whether a path of these components leads into a log's folder."""
    # Some file systems ignore case.
    return any(name.casefold() == LOG_FOLDER for name in names)


def within(workspace: Workspace, files: Iterable[Path]) -> list[Path]:
    """Return those of *files* that are in *workspace*, relative to it."""
    root = Path(os.path.realpath(workspace.path))
    return [each.relative_to(root) for each in files if each.is_relative_to(root)]
