"""The facts of one tree of sessions: stream `tree-<tenant>/<root>`.

It has one event for each session below the root, so its version is their number.
"""

from typing import Literal

from cueline.events.fact import Fact


class DescendantAsked(Fact):
    """A session below the root was started, in the same append."""

    type: Literal["DescendantAsked"] = "DescendantAsked"
    session: str
    """Its stream."""
    parent: str
    """The parent session."""
