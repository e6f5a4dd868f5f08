"""What a client without a place of its own knows of the sessions of its log."""

from collections.abc import Coroutine
from dataclasses import dataclass

from cueline.environment import user_name
from cueline.errors import CuelineError
from cueline.up_record import recovers
from cueline.wiring import OpenLog


@dataclass(frozen=True, slots=True)
class NoRuntimeContext:
    """Drives nothing: sessions go on where a running `cueline up` or another process has them.

    See `RuntimeContext` for what each method says.
    """

    log: OpenLog

    @property
    def user(self) -> str:
        """See `RuntimeContext`."""
        return user_name()

    @property
    def drives(self) -> bool:
        """See `RuntimeContext`."""
        return False

    def trouble(self, stream: str) -> CuelineError | None:  # noqa: ARG002 - no host reports here
        """See `RuntimeContext`."""
        return None

    def tries_again(self, stream: str) -> None:
        """See `RuntimeContext`."""

    def takes_up(self, stream: str) -> bool:  # noqa: ARG002 - an `up` takes up all of them
        """See `RuntimeContext`."""
        return recovers(self.log.url)

    def has(self, incarnation: str | None) -> bool:  # noqa: ARG002 - no host is its own
        """See `RuntimeContext`."""
        return False

    def settled(self, stream: str) -> Coroutine[object, object, None] | None:  # noqa: ARG002 - as above
        """See `RuntimeContext`."""
        return None

    async def take_up(self, stream: str, parent: str | None = None) -> None:
        """Do nothing: what was recorded counts when the session is next driven."""
