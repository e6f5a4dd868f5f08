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


def log_within(workspace: Workspace, log: Path) -> list[Path]:
    """Return where *log*, and the link that names it, lie in *workspace*, relative to that."""
    root = Path(os.path.realpath(workspace.path))
    named = Path(os.path.realpath(log.parent)) / log.name
    places = {named, Path(os.path.realpath(log))}
    return [each.relative_to(root) for each in places if each.is_relative_to(root)]
