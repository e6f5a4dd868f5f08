"""The fence against a dispatcher of the past."""

from cueline.errors import StaleOrderError
from cueline.events.stream import stream_name

DISPATCHER = stream_name("dispatcher", "main")


class EpochFence:
    """Obeys the highest epoch that it has seen, and refuses lower ones."""

    def __init__(self, incarnation: str) -> None:
        self._incarnation = incarnation
        self._highest = 0

    def check(self, epoch: int) -> None:
        """Refuse the order of a dispatcher that another has succeeded.

        Raises:
            StaleOrderError: stop; another dispatcher has taken over.
        """
        if epoch < self._highest:
            raise StaleOrderError(self._incarnation, DISPATCHER, epoch, self._highest)
        self._highest = epoch
