"""Agents that are driven as a user has them driven, and say what the test writes out."""

import asyncio

import cueline
from cueline.actors.inbox import ask_start
from cueline.actors.presence import Presence
from cueline.actors.stream_notifier import StreamNotifier
from cueline.agents.preflight import agent_to_record
from cueline.events.inbox import StartAsked
from cueline.runtime.inline import inline
from cueline.runtime.open_log import OpenLog
from cueline.stores import MemoryPresence, MemoryStore
from cueline.stores.backend import backend_of
from cueline.testing.clock import FakeClock
from cueline.testing.wait import await_until

HELD = []
"""Grows by one with each call that is held."""


def scripted(script, *tools, **fields):
    """Return an agent that has *tools*, and says and asks what is in *script*."""
    return cueline.Agent(
        **{"name": "scripted", "provider": "scripted", "model": "script", **fields},
        parameters={"script": script},
        tools=[*tools],
    )


@cueline.tool
async def hold() -> str:
    """Never come back."""
    HELD.append(1)
    await asyncio.Event().wait()
    return ""


def holder(**policy):
    """Return an agent that never comes back from its one call."""
    script = 'reply = [{ calls = [{ name = "hold", arguments = {} }] }, { text = "Done." }]'
    HELD.clear()
    return scripted(script, hold, policy=cueline.Policy(in_doubt="tell", **policy))


HELLO = scripted('reply = [{ text = "Good evening." }]')


def memory_log(folder):
    """Return a log that is nowhere but in memory, and whose clock the test moves."""
    clock = FakeClock()
    store, board = MemoryStore(clock), MemoryPresence(clock)
    return OpenLog(
        backend=backend_of(folder / "log.db"),
        store=store,
        notifier=StreamNotifier(store),
        board=board,
        clock=clock,
    )


def no_trouble(name, error):
    """Hear of trouble that a test does not expect."""
    raise AssertionError(f"{name}: {error}")


async def ask(log, agent=HELLO):
    """Have somebody ask for session `one` whom nobody hears."""
    asked = StartAsked(agent=agent_to_record(agent), goal="Go", asked_at=log.clock.now())
    return await ask_start(log.journal(), "one", asked)


async def left_in_a_call(log) -> Presence:
    """Have a process go away in the middle of a call of session `one`; return what it was."""
    async with inline(log, scope=None, on_trouble=no_trouble) as former:
        await former.place([await ask(log, holder())])
        await await_until(lambda: HELD)
    return former.presence
