"""A session on a cluster has a sandbox, which no death of an actor leaves behind."""

import os
import signal

from cueline.cluster.singletons import SandboxPoolActor
from cueline.events.session import ApprovalRequested, SandboxAttached
from cueline.sandboxes.local import LocalBackend
from cueline.testing.wait import await_until

SCRIPT = """
[[reply]]
calls = [{ name = "run_command", arguments = { command = "echo kept > made" } }]

[[reply]]
calls = [{ name = "write_file", arguments = { path = "other", content = "x" } }]

[[reply]]
calls = [{ name = "run_command", arguments = { command = "cat made" } }]

[[reply]]
text = "Done."
"""
WRITES = {"name": "writes", "answer": "ask", "tools": ["write_file"]}


def mine(world):
    """Return the states of the sandboxes of this log, whoever else has some."""
    found = LocalBackend().find({"cueline-log": world.log.id})
    return [each.state for each in found]


async def test_a_sandbox_stops_while_its_session_waits_and_outlives_the_pool(world_of):
    """003-074, I12; SIGKILL of the pool while the session waits."""
    async with world_of() as world:
        await world.ask(
            SCRIPT,
            1,
            tools=["builtin:run_command", "builtin:write_file"],
            sandbox="local",
            policy={"approval": ["off"], "rules": [WRITES]},
        )
        async with world.driven():
            await await_until(lambda: ["stopped"] == mine(world))
            os.kill(await world.pid_of(SandboxPoolActor.role), signal.SIGKILL)
            asked = await world.fact(ApprovalRequested)
            await world.session.approve(asked)

            assert "Done." == await world.result()
            facts = await world.facts()
            assert [1, 1] == [each.number for each in facts if isinstance(each, SandboxAttached)]
            await await_until(lambda: [] == mine(world))
