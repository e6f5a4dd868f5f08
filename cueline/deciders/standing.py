"""What people allowed for the rest of a session."""

from msgspec import Struct

from cueline.events.session import Demand


class StandingGrant(Struct, frozen=True):
    """What a person allowed for the rest of the session."""

    tool: str
    """The tool's digest: another version is another tool."""
    within: tuple[str, ...]
    """Globs of paths; of a tool that names no paths, the digest of its arguments."""
    by: str
    demand: Demand | None = None
    """Of the call that they allowed; another demand is not theirs to meet."""
