"""The agents whose sessions are the tasks of the conformance suite."""

import asyncio
from contextlib import suppress

import cueline
from tests.scripted import scripted


@cueline.tool
async def compute(seconds: float) -> str:
    """Take some time."""
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), seconds)
    return "computed"


@cueline.tool(sensitive=True)
async def delete(name: str) -> str:
    """Delete a file."""
    return f"deleted {name}"


def calls(*asked):
    """Return a script that makes calls in one turn, and ends."""
    listed = ", ".join(f"{{ name = '{tool}', arguments = {given} }}" for tool, given in asked)
    return f'reply = [{{ calls = [{listed}] }}, {{ text = "Done." }}]'


def greets(name):
    """Return an agent that takes a second, and greets somebody."""
    script = calls(("compute", "{ seconds = 1 }")).replace("Done.", f"Hello, {name}!")
    return scripted(script, compute)


AGENTS = {
    "slow_compute": lambda seconds=1, **_: scripted(
        calls(("compute", f"{{ seconds = {seconds} }}")), compute
    ),
    "failing_job": lambda **_: scripted(
        "reply = [{ fail = { kind = 'invalid_request' } }]", compute
    ),
    "confirm_delete": lambda filename="a", **_: scripted(
        calls(("delete", f"{{ name = '{filename}' }}")), delete
    ),
}
"""The tools that start a session, and the agent of each."""
