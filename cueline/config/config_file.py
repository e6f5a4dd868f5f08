"""Where settings are found; without reading them, which takes longer than a list does."""

from collections.abc import Mapping
from pathlib import Path

from cueline.events.log_url import LogUrl

FILE = "cueline.toml"
PREFIX = "CUELINE_"
LOG = "CUELINE_LOG"
DEFAULT_LOG = LogUrl.of(".cueline/log.db")
CONFIG = "CUELINE_CONFIG"
ELSEWHERE = (CONFIG, "CUELINE_MACHINE")
"""Variables that are no settings: where the file is, and what this machine is called."""


def find_file(folder: Path) -> Path | None:
    """Return the `cueline.toml` of *folder*, or of the nearest folder around it."""
    here = folder.absolute()
    return next((p for each in (here, *here.parents) if (p := each / FILE).is_file()), None)


def set_in(environ: Mapping[str, str]) -> list[str]:
    """Return the variables of ours that say something; an empty one does not."""
    return sorted(
        name
        for name, text in environ.items()
        if text and name.startswith(PREFIX) and name not in ELSEWHERE
    )
