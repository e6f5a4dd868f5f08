"""What a person or program may do, as its token says."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

SCOPES: Final = {
    "read": "read sessions, costs and the log",
    "send": "start sessions of blueprints, send messages, pause, stop and raise limits",
    "approve": "decide on calls; `approve:TOOL` only on calls of that tool",
    "runner": "run the calls of tools on another machine; it does not include `read`",
    "admin": "everything, also to scale, to start any agent, and to issue tokens",
}
"""The scopes, and what each allows. Each of them but `runner` includes `read`."""


@dataclass(frozen=True, slots=True)
class Person:
    """Who asks, and what they may do."""

    name: str
    tenant: str | None = None
    """The tenant whose sessions they reach; None: the whole log."""
    scopes: frozenset[str] = frozenset({"admin"})

    def may(self, scope: str, subject: str = "") -> bool:
        """Whether the person has *scope*, for an approval about the tool *subject*."""
        if "admin" in self.scopes or scope in self.scopes:
            return True
        if scope == "read":
            return bool(self.scopes - {"runner"})
        named = (each.partition(":") for each in self.scopes)
        return any(first == scope and fnmatchcase(subject, what) for first, _, what in named)


def wrong_scope(scopes: Iterable[str]) -> str | None:
    """Return the first of *scopes* that does not exist; None if all exist."""
    for each in scopes:
        name, colon, what = each.partition(":")
        if name not in SCOPES or (colon and (name != "approve" or not what)):
            return each
    return None
