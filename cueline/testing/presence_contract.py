"""The contract that every presence board has to pass."""

# ruff: noqa: SIM300 - a test's name is the fact; what is expected stands first

from dataclasses import replace
from datetime import timedelta

import pytest

from cueline.clock import Clock
from cueline.events.store import Presence, PresenceBoard, to_us
from cueline.testing.event_store_example import SetClock

HOST = Presence(
    incarnation="host-1.a",
    role="host",
    machine="größer",
    boot_id="b",
    pid=7,
    process_started=2**53 + 1,
    pid_namespace="pid:[4026531836]",
    address="127.0.0.1:4711",
    token="7f3a",  # noqa: S106 - of nobody
)
RUNNER = replace(HOST, incarnation="runner-1.b", role="runner", pid=8)


class PresenceContract:
    """Subclass it, provide a `board` fixture, and run pytest with `asyncio_mode = "auto"`."""

    @pytest.fixture
    def clock(self) -> SetClock:
        """Return the clock from which the board takes the time."""
        return SetClock()

    @pytest.fixture
    def board(self, clock: Clock) -> PresenceBoard:
        """Return an empty board."""
        raise NotImplementedError

    async def test_nobody_is_there_at_first(self, board: PresenceBoard) -> None:
        assert [] == list(await board.all())

    async def test_who_beats_is_there_with_the_time_of_the_beat(
        self, board: PresenceBoard, clock: SetClock
    ) -> None:
        await board.beat(RUNNER)
        await board.beat(replace(HOST, beat_us=1))

        now = to_us(clock.now())
        assert [replace(HOST, beat_us=now), replace(RUNNER, beat_us=now)] == sorted(
            await board.all(), key=lambda presence: presence.incarnation
        )

    async def test_the_last_beat_counts(self, board: PresenceBoard, clock: SetClock) -> None:
        await board.beat(HOST)
        clock.move(timedelta(seconds=2))
        await board.beat(HOST)

        assert [to_us(clock.now())] == [presence.beat_us for presence in await board.all()]

    async def test_who_is_silent_stays_until_it_leaves(
        self, board: PresenceBoard, clock: SetClock
    ) -> None:
        await board.beat(HOST)
        await board.beat(RUNNER)
        clock.move(timedelta(days=1))

        assert 2 == len(await board.all())
        await board.leave(HOST.incarnation)
        assert [RUNNER.incarnation] == [presence.incarnation for presence in await board.all()]

    async def test_leaving_twice_is_leaving_once(self, board: PresenceBoard) -> None:
        await board.leave(HOST.incarnation)
        await board.beat(HOST)
        await board.leave(HOST.incarnation)
        await board.leave(HOST.incarnation)

        assert [] == list(await board.all())
