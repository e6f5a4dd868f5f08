"""A fence against orders of former dispatchers."""

from cueline.errors import StaleOrderError
from cueline.events.stream import stream_name

DISPATCHER = stream_name("dispatcher", "main")


class EpochFence:
    """Accepts the highest epoch seen so far, and refuses lower ones."""

    def __init__(self, incarnation: str) -> None:
        self._incarnation = incarnation
        self._highest = 0

    def check(self, epoch: int) -> None:
        """Raise if a later dispatcher than that of *epoch* has sent an order.

        Raises:
            StaleOrderError: stop; another dispatcher has taken over.
        """
        if epoch < self._highest:
            raise StaleOrderError(self._incarnation, DISPATCHER, epoch, self._highest)
        self._highest = epoch
