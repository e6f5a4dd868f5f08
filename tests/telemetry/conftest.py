"""A log with a session, its child, and calls of tools; and back-ends for their spans."""

import pytest

import cueline
from cueline.client.runtime import open_runtime
from cueline.client.telemetry import span_export
from tests.scripted import scripted
from tests.telemetry.receiver import receiving


@cueline.tool(read_only=True)
async def look(path: str) -> str:
    """Look at a file."""
    if path == "missing":
        raise cueline.ToolFailedError("not_found", "there is no such file")
    return f"contents of {path}"


CHILD = scripted(
    """
[[reply]]
calls = [
    { name = "look", arguments = { path = "a secret place" } },
    { name = "look", arguments = { path = "missing" } },
]
usage = { input = 70, cache_read = 30, output = 20 }

[[reply]]
text = "Seen."
usage = { input = 130, cache_write = 20, output = 10 }
""",
    look,
    name="clerk",
)
LEAD = scripted(
    """
[[reply]]
calls = [{ name = "clerk", arguments = { goal = "look around" } }]
usage = { input = 5, output = 3 }

[[reply]]
text = "Thanks."
usage = { input = 9, output = 4 }
""",
    CHILD,
    name="lead",
)


@pytest.fixture
def receiver():
    with receiving() as made:
        yield made


@pytest.fixture
def other():
    with receiving() as made:
        yield made


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log.db"


@pytest.fixture
async def runtime(log):
    async with open_runtime(log, on="inline") as opened:
        yield opened


@pytest.fixture
def send(runtime):
    """Return what exports the spans of the log to a back-end, once."""

    async def export(receiver, start=None, **how):
        exporting = span_export(runtime.log, receiver.url, **how)
        await exporting.begin(start)
        return await exporting.catch_up()

    return export
