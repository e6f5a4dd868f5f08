"""Which files of a log lie where an agent's tools work."""

import os
from collections.abc import Iterable
from pathlib import Path

from cueline.events.agent import Workspace

LOG_FOLDER = ".cueline"
"""No file tool touches what is in a folder of this name, wherever it is."""

REACHES_LOG = "This call can read, change or delete the log"
"""What the preview of a call begins with that can reach the log."""


def names_log_folder(names: Iterable[str]) -> bool:
    """Tell whether a path of these components leads into a log's folder."""
    # Some file systems do not tell upper from lower case.
    return any(name.casefold() == LOG_FOLDER for name in names)


def within(workspace: Workspace, files: Iterable[Path]) -> list[Path]:
    """Return those of *files* that lie in *workspace*, relative to that."""
    root = Path(os.path.realpath(workspace.path))
    return [each.relative_to(root) for each in files if each.is_relative_to(root)]
