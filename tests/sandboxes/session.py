"""A session whose commands and file tools work in a sandbox of any back-end."""

import cueline
from cueline.client.runtime import open_runtime
from cueline.events.session import ToolReturned
from cueline.testing.wait import await_until
from cueline.tools.sandbox import sandbox_backend
from tests.scripted import scripted

SCRIPT = """
[[reply]]
calls = [{ name = "run_command", arguments = { command = "echo one > made; echo $GREETING" } }]
[[reply]]
calls = [{ name = "edit_file", arguments = { path = "made", old = "one", new = "two" } }]
[[reply]]
calls = [{ name = "run_command", arguments = { command = "cat made" } }]
[[reply]]
text = "Done."
"""


async def works_in(backend, folder, **more):
    """Run a session to its end, and see its outputs, and that nothing is left."""
    sandbox_backend.cache_clear()
    work = folder / "work"
    work.mkdir(exist_ok=True)
    agent = scripted(
        SCRIPT,
        "run_command",
        "edit_file",
        workspace=work,
        sandbox={"backend": backend, "environment": {"GREETING": "hello"}, **more},
        policy=cueline.Policy(approval=("off",)),
    )
    async with open_runtime(str(folder / "log.db"), on="inline") as runtime:
        session = await runtime.start(agent, "Go.")
        result = await session.result()
        facts = [each.event async for each in session.events()]
        find = sandbox_backend(backend).find
        await await_until(lambda: {"gone"}.issuperset(each.state for each in find({})), within=30)

    assert ("completed", "Done.") == (result.status, result.text), facts[-1]
    outputs = [fact.output for fact in facts if isinstance(fact, ToolReturned)]
    assert "hello" in outputs[0]
    assert "two" in outputs[2]
