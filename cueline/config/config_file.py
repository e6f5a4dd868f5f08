"""Finds settings without reading them, which takes longer than a list of sessions does."""

from collections.abc import Mapping
from pathlib import Path

from cueline.events.log_url import LogUrl

FILE = "cueline.toml"
PREFIX = "CUELINE_"
LOG = "CUELINE_LOG"
DEFAULT_LOG = LogUrl.of(".cueline/log.db")
IDLE_SECONDS = 60.0
"""How long a worker above the least of its range may be idle before it retires."""
CONFIG = "CUELINE_CONFIG"
ELSEWHERE = (CONFIG, "CUELINE_ENCRYPTION_KEY", "CUELINE_KEYS_FOLDER", "CUELINE_MACHINE")
"""Variables that are no settings: paths, the master key, and this machine's name."""


def find_file(folder: Path) -> Path | None:
    """Return the `cueline.toml` of *folder*, or of the nearest folder above."""
    here = folder.absolute()
    return next((p for each in (here, *here.parents) if (p := each / FILE).is_file()), None)


def set_in(environ: Mapping[str, str]) -> list[str]:
    """Return cueline's variables that are set and not empty."""
    return sorted(
        name
        for name, text in environ.items()
        if text and name.startswith(PREFIX) and name not in ELSEWHERE
    )
