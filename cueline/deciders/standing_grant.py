"""The grants of people for all similar calls in the rest of a session."""

from msgspec import Struct

from cueline.events.session import Demand


class StandingGrant(Struct, frozen=True):
    """A person's grant for all calls of a tool within a scope, in the rest of the session."""

    tool: str
    """The digest of the tool; a changed tool needs a new grant."""
    within: tuple[str, ...]
    """The granted globs of paths; for a tool without paths, the digest of the arguments."""
    by: str
    demand: Demand | None = None
    """The approvers' rule of the granted call; a call with another rule is not covered."""
