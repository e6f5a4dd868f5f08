"""The environment of this process, which holds secrets, and whose process it is."""

import os
from collections.abc import Iterator, Mapping
from getpass import getuser


class Environment(Mapping[str, str]):
    """The variables, which are looked up and never shown: no `repr` tells a value (I11)."""

    __slots__ = ()

    def __getitem__(self, name: str) -> str:
        """Return the value of a variable."""
        return os.environ[name]

    def __iter__(self) -> Iterator[str]:
        """Name the variables that are set."""
        return iter(os.environ)

    def __len__(self) -> int:
        """Count them."""
        return len(os.environ)

    def __repr__(self) -> str:
        return f"Environment({len(self)} variables)"


HERE = Environment()


def user_name() -> str:
    """Return the name of the person whose process this is, as this machine knows it."""
    try:
        return getuser()
    except (OSError, KeyError):
        return str(os.getuid())
