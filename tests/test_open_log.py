"""An inline run beside a disk that fails for a while."""

from dataclasses import replace

import cueline
from cueline.errors import LogUnavailableError
from cueline.runtime.inline import inline
from cueline.runtime.open_log import open_log
from cueline.stores import MemoryPresence
from cueline.testing.clock import FakeClock
from tests.scripted import ask, left_in_a_call, memory_log, no_trouble, scripted

SCRIPT = 'reply = [{ calls = [{ name = "fill", arguments = {} }] }, { text = "Done." }]'
DISK = []
"""The connection that writes to the log: the tool takes its room."""


@cueline.tool(read_only=True)
async def fill() -> str:
    """Leave no room, and say something long."""
    (pages,) = DISK[0].execute("PRAGMA page_count").fetchone()
    DISK[0].execute(f"PRAGMA max_page_count = {pages}")
    return "x" * 15_000


AGENT = scripted(SCRIPT, fill)


class ForgetfulBoard(MemoryPresence):
    """Cannot be written at first."""

    def __init__(self, clock):
        super().__init__(clock)
        self.beats = 0

    async def beat(self, presence):
        self.beats += 1
        if self.beats == 2:
            raise LogUnavailableError("the board", "the disk is full")
        await super().beat(presence)


async def test_a_session_keeps_its_outcomes_until_there_is_room_and_goes_on(tmp_path):
    def make_room(name, error):
        told.append((name, type(error)))
        DISK[0].execute("PRAGMA max_page_count = 1000000")

    told = []
    path = tmp_path / "log.db"
    async with cueline.open_runtime(path, on="inline", on_trouble=make_room) as runtime:
        DISK[:] = [runtime.log.store._writer._db]
        session = await runtime.start(AGENT, "Fill the disk", id="one")
        result = await session.result()
        outputs = [f.output async for _, f in session.events() if f.type == "ToolReturned"]

    assert [("session-default/one", LogUnavailableError)] == told
    assert ("Done.", ["x" * 15_000]) == (result.text, outputs)


async def test_a_beat_that_fails_is_not_the_last(tmp_path):
    clock = FakeClock()
    async with open_log(tmp_path / "log.db") as log:
        board = ForgetfulBoard(clock)
        flaky = replace(log, board=board, clock=clock)
        async with inline(flaky, scope=set(), on_trouble=no_trouble):
            await clock.advance(3)
            await clock.advance(3)

            assert board.beats > 2


async def seconds_until(type_, log):
    """Let time pass until such a fact is there, and return how much."""
    for seconds in range(60):
        if type_ in [fact.type async for _, fact in log.journal().read("session-default/one")]:
            return seconds
        await log.clock.advance(1)
    raise AssertionError(f"no {type_}")


async def test_a_call_is_waited_for_until_the_process_that_has_it_ends(tmp_path):
    """I5, I14: a frozen process that was taken over from is not waited for once it is gone."""
    log = memory_log(tmp_path)
    frozen = await left_in_a_call(log)
    await log.board.beat(frozen)
    await log.clock.advance(11)
    async with inline(log, scope=None, on_trouble=no_trouble):
        await seconds_until("SessionWaiting", log)

        await log.board.leave(frozen.incarnation)

        assert 3 > await seconds_until("ToolInDoubt", log)
        assert 3 > await seconds_until("SessionCompleted", log)


async def test_who_cannot_look_for_work_says_so_once_and_looks_again(tmp_path):
    log, told = memory_log(tmp_path), []
    await ask(log)
    async with inline(log, scope=None, on_trouble=lambda *why: told.append(why)) as here:
        views = here.dispatcher._index._views.db
        views.execute("PRAGMA query_only = 1")
        await log.clock.advance(3)
        views.execute("PRAGMA query_only = 0")

        assert 3 > await seconds_until("SessionCompleted", log)

    assert [("looking for work", LogUnavailableError)] == [(what, type(why)) for what, why in told]
