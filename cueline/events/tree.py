"""The facts of one tree of sessions: stream `tree-<tenant>/<root>`.

It tells of each session below the root; so its version is how many they are.
"""

from typing import Literal

from cueline.events.fact import Fact


class DescendantAsked(Fact):
    """A session was asked for below the root, in the same append."""

    type: Literal["DescendantAsked"] = "DescendantAsked"
    session: str
    """Its stream."""
    parent: str
    """The session that it is a child of."""
