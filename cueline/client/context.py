"""What a client without a place of its own knows of the sessions of its log."""

from collections.abc import Coroutine
from dataclasses import dataclass

from cueline.environment import who
from cueline.errors import CuelineError
from cueline.up_record import recovers
from cueline.wiring import Log


@dataclass(frozen=True, slots=True)
class NoPlace:
    """Drives nothing: sessions go on where a running `cueline up` or another process has them.

    See `Home` for what each method says.
    """

    log: Log

    @property
    def user(self) -> str:
        """See `Home`."""
        return who()

    @property
    def drives(self) -> bool:
        """See `Home`."""
        return False

    def trouble(self, stream: str) -> CuelineError | None:  # noqa: ARG002 - no host reports here
        """See `Home`."""
        return None

    def tries_again(self, stream: str) -> None:
        """See `Home`."""

    def takes_up(self, stream: str) -> bool:  # noqa: ARG002 - an `up` takes up all of them
        """See `Home`."""
        return recovers(self.log.url)

    def has(self, incarnation: str | None) -> bool:  # noqa: ARG002 - no host is its own
        """See `Home`."""
        return False

    def settled(self, stream: str) -> Coroutine[object, object, None] | None:  # noqa: ARG002 - as above
        """See `Home`."""
        return None

    async def take_up(self, stream: str, parent: str | None = None) -> None:
        """Do nothing: what was recorded counts when the session is next driven."""
