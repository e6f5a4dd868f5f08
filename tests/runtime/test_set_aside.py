"""A session that could not be driven, and is tried again once that is mended."""

from contextlib import asynccontextmanager

import pytest

import cueline
from cueline.actors.inbox import post
from cueline.errors import CorruptEventError
from cueline.events.inbox import MessageSent, StopAsked
from cueline.runtime.inline import inline
from cueline.testing.wait import await_until
from tests.damage import swap
from tests.scripted import HELD, left_in_a_call, scripted

GREETER = scripted('reply = [{ text = "Good evening." }, { text = "Again." }]')


@asynccontextmanager
async def spoilt(path, told):
    """A runtime, and a session of it that rests and cannot be read any more."""
    async with cueline.open_runtime(
        path, on="inline", on_trouble=lambda *trouble: told.append(trouble)
    ) as here:
        session = await here.start(GREETER, "Hello", id="one", open=True)
        await session.result()
        swap(path, "ModelReplied", "evening", "morning")
        yield here, session.stream_name


# C9: what cannot be read is not tried every second, nor never again.
async def test_a_session_that_could_not_be_read_goes_on_when_it_is_resumed(tmp_path):
    path, told = tmp_path / "log.db", []
    async with spoilt(path, told) as (here, stream):
        await post(here.log.journal(), stream, MessageSent(lane="note", text="And?"))
        await await_until(lambda: told)
        with pytest.raises(CorruptEventError):
            await here.resume("one")
        swap(path, "ModelReplied", "morning", "evening")

        result = await (await here.resume("one")).result()

    assert ("idle", "Again.") == (result.status, result.text)
    assert [CorruptEventError] == [type(error) for _, error in told]


# A stop is no exception: it is driven to its end, though it takes no more messages.
async def test_a_session_that_could_not_be_read_is_stopped_when_it_is_resumed(tmp_path):
    path, told = tmp_path / "log.db", []
    async with spoilt(path, told) as (here, stream):
        await post(here.log.journal(), stream, StopAsked())
        await await_until(lambda: told)
        swap(path, "ModelReplied", "morning", "evening")

        assert "stopped" == (await (await here.resume("one")).result()).status


# I5: without the fact that it was started, the call would be started again.
async def test_a_call_whose_start_was_emptied_is_not_run_again(log):
    await left_in_a_call(log)
    events = log.store._tables.streams["session-default/one"].events
    events[:] = [
        each._replace(payload=None, salt=None) if each.type == "ToolStarted" else each
        for each in events
    ]
    told = []

    async with inline(log, scope=None, on_trouble=lambda *trouble: told.append(trouble)) as here:
        await here.place(["session-default/one"])
        await await_until(lambda: told or len(HELD) > 1)

    assert [1] == HELD
    assert ("session-default/one", CorruptEventError) == (told[0][0], type(told[0][1]))
