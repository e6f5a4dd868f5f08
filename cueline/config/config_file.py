"""Finds the sources of settings without reading them."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from cueline.events.log_url import LogUrl

FILE = "cueline.toml"
PERSONAL = "config.toml"
"""The name of the file with a person's settings for all folders."""
PREFIX = "CUELINE_"
LOG = "CUELINE_LOG"
DEFAULT_LOG = LogUrl.of(".cueline/log.db")
IDLE_SECONDS = 60.0
"""The seconds after which an idle worker above its group's minimum retires."""
CONFIG = "CUELINE_CONFIG"
TOKEN = "CUELINE_TOKEN"  # noqa: S105 - the name of the variable
"""The variable with the token of `cueline serve`."""
LOG_LEVEL = "CUELINE_LOG_LEVEL"
"""The variable with the level of the log lines that a process writes."""
ELSEWHERE = (
    *(CONFIG, "CUELINE_ENCRYPTION_KEY", "CUELINE_KEYS_FOLDER", LOG_LEVEL),
    *("CUELINE_MACHINE", TOKEN),
)
"""The variables that are no settings: paths, keys, a level, and this machine's name."""


def find_file(folder: Path) -> Path | None:
    """Return the `cueline.toml` of *folder*, or of the nearest folder above in the project.

    The project is the folder with `.git` and all below it; without `.git`, only *folder*.
    """
    here = folder.absolute()
    above = (here, *here.parents)
    top = next((n for n, each in enumerate(above) if (each / ".git").exists()), 0)
    return next((p for each in above[: top + 1] if (p := each / FILE).is_file()), None)


def is_of_others(path: Path) -> bool:
    """Whether other users may write the file *path* or its folder."""
    found = path.stat(), path.parent.stat()
    return any(
        each.st_uid != os.geteuid()
        or each.st_mode & stat.S_IWOTH
        or (each.st_mode & stat.S_IWGRP and each.st_gid != os.getegid())
        for each in found
    )


def set_in(environ: Mapping[str, str]) -> list[str]:
    """Return the names of cueline's variables that are set and not empty."""
    return sorted(
        name
        for name, text in environ.items()
        if text and name.startswith(PREFIX) and name not in ELSEWHERE
    )
