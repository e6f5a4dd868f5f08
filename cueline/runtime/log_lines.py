"""Writes the log lines of a process to stderr, as JSON."""

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from cueline.actors.session_log import LOGGER
from cueline.config.config_file import LOG_LEVEL
from cueline.errors import ConfigError

_LEVELS: Final = ("debug", "info", "warning", "error")
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({})))


class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON, with the fields of its `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": at, "level": record.levelname.lower(), "message": record.getMessage()}
        extra = {name: each for name, each in vars(record).items() if name not in _STANDARD}
        return json.dumps(line | extra, ensure_ascii=False, default=str)


def start_logging(environ: Mapping[str, str]) -> None:
    """Write the lines of this process to stderr, from the level in CUELINE_LOG_LEVEL on.

    Raises:
        ConfigError: there is no such level.
    """
    level = environ.get(LOG_LEVEL, "").lower()
    if not level or LOGGER.level:
        return
    if level not in _LEVELS:
        raise ConfigError(LOG_LEVEL, f"{level!r} is no level; known are {', '.join(_LEVELS)}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    LOGGER.addHandler(handler)
    LOGGER.setLevel(level.upper())
    LOGGER.propagate = False
