"""The contract that every store of events has to pass.

Subclass `EventStoreContract`, provide a `store` fixture, and run pytest with pytest-asyncio
and `asyncio_mode = "auto"`.
"""

import pytest

from cueline.clock import Clock
from cueline.events.store import EventStore
from cueline.testing.event_store_appends import AppendContract
from cueline.testing.event_store_blobs import BlobContract
from cueline.testing.event_store_emptying import EmptyingContract
from cueline.testing.event_store_epochs import EpochContract
from cueline.testing.event_store_example import SetClock
from cueline.testing.event_store_forks import ForkContract
from cueline.testing.event_store_keys import KeyContract
from cueline.testing.event_store_reads import ReadContract


class EventStoreContract(
    AppendContract,
    KeyContract,
    EpochContract,
    ReadContract,
    ForkContract,
    BlobContract,
    EmptyingContract,
):
    """Every rule of `cueline.events.store`, as a test."""

    @pytest.fixture
    def clock(self) -> SetClock:
        """Return the clock from which the store takes the time."""
        return SetClock()

    @pytest.fixture
    def store(self, clock: Clock) -> EventStore:
        """Return an empty store."""
        raise NotImplementedError
