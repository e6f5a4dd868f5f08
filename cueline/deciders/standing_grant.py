"""Grants for the rest of a session."""

from msgspec import Struct

from cueline.events.session import Demand


class StandingGrant(Struct, frozen=True):
    """A person's grant for the rest of the session."""

    tool: str
    """The tool's digest: a changed tool needs a new grant."""
    within: tuple[str, ...]
    """Globs of paths; for a tool without paths, the digest of its arguments."""
    by: str
    demand: Demand | None = None
    """The approvers' rule of the granted call; a call with another rule is not covered."""
