"""The environment variables of this process, which may be secrets, and its user."""

import os
from collections.abc import Iterator, Mapping
from getpass import getuser


class Environment(Mapping[str, str]):
    """The environment variables of this process; no `repr` shows a value (I11)."""

    __slots__ = ()

    def __getitem__(self, name: str) -> str:
        """Return the value of a variable."""
        return os.environ[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of set variables."""
        return iter(os.environ)

    def __len__(self) -> int:
        """Return the number of set variables."""
        return len(os.environ)

    def __repr__(self) -> str:
        return f"Environment({len(self)} variables)"


HERE = Environment()


def user_name() -> str:
    """Return the name of this process's user on this machine."""
    try:
        return getuser()
    except (OSError, KeyError):
        return str(os.getuid())
