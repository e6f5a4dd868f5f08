"""Parses the name of a log: a URL, or the path of the log's file."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from cueline.errors import ConfigError

SQLITE = "sqlite"
MEMORY = "memory"
REMOTE = ("http", "https")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)", re.DOTALL)
_PASSWORDS = (
    (re.compile(r"(//[^/@]*?:)[^/]*@"), r"\1***@"),
    (re.compile(r"([?&](?:ssl)?password=)[^&#]*"), r"\1***"),
)


@dataclass(frozen=True, slots=True, repr=False)
class LogUrl:
    """The URL of a log: `sqlite:///cueline.db`, `memory:` …, or the path of a SQLite file.

    The text of a `LogUrl` has no password, and is the path for a SQLite file.
    """

    scheme: str
    rest: str
    """The part after the scheme and colon; for SQLite the path. It may hold a password."""
    token: str = field(default="", compare=False)
    """The token for the server of the log; no text of the `LogUrl` has it."""

    @classmethod
    def of(cls, name: "LogName") -> "LogUrl":
        """Return the `LogUrl` of *name*, which is a URL or a path.

        After `sqlite:///` comes the path unchanged: an absolute one has four slashes. A
        file name that looks like a URL is written with `./` before it.

        Raises:
            ConfigError: *name* is no text, or has `sqlite:` without three slashes.
        """
        if isinstance(name, LogUrl):
            return name
        if not isinstance(name, str | os.PathLike):
            raise ConfigError(repr(name), "a log is a path or a URL, such as 'cueline.db'")
        text = os.fspath(name)
        found = _URL.fullmatch(text) if isinstance(name, str) else None
        if found is None:
            return cls(SQLITE, str(Path(text)))
        scheme, rest = found[1].lower(), found[2]
        if scheme == SQLITE:
            if not rest.startswith("///"):
                raise ConfigError(text, "write `sqlite:///` and the path, or the path alone")
            rest = str(Path(rest.removeprefix("///")))
        return cls(scheme, rest)

    @property
    def is_remote(self) -> bool:
        """Whether the log is reached through a `cueline serve`."""
        return self.scheme in REMOTE

    def absolute(self) -> "LogUrl":
        """Return the log's name for use in any working directory."""
        return self.within(Path.cwd())

    def within(self, folder: Path) -> "LogUrl":
        """Return the log's name with a relative path resolved against *folder*."""
        return LogUrl(SQLITE, str(folder / self.rest)) if self.scheme == SQLITE else self

    def __str__(self) -> str:
        if self.scheme == SQLITE:
            return self.rest
        text = f"{self.scheme}:{self.rest}"
        for password, hidden in _PASSWORDS:
            text = password.sub(hidden, text)
        return text

    def __repr__(self) -> str:
        return f"LogUrl({str(self)!r})"


LogName = LogUrl | str | os.PathLike[str]
"""The type of a log's name in the API."""
