"""Calls that become tasks of a real server, over stdio and HTTP; it is killed in between."""

import json
import sys
from contextlib import suppress

import psutil
import pytest
from msgspec.structs import replace

from cueline.actors.tool_port import GivenInput, TaskOrder, ToolQuestion, ToolTask
from cueline.errors import ToolFailedError
from cueline.events.agent_parts import McpServer
from tests.mcp_client.conftest import HERE
from tests.mcp_client.test_http import at, served

SERVER = [sys.executable, str(HERE / "task_server.py")]
FORM = {
    "method": "elicitation/create",
    "params": {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}},
}


@pytest.fixture
def build(order, tmp_path):
    """Order the tool that becomes a task."""
    return order("probe__build", McpServer(command=(*SERVER, str(tmp_path))), what="a bridge")


def poll(build, given=None, *, cancel=False):
    return replace(build, task=TaskOrder("job-7", cancel), given=given)


def becomes(folder, status, **more):
    told = {"taskId": "job-7", "status": status} | more
    (folder / "task.json").write_text(json.dumps(told))


def ledger(folder):
    return (folder / "ledger.txt").read_text().splitlines()


async def test_a_call_becomes_a_task_and_its_result_comes_with_a_poll(executor, build, tmp_path):
    assert ToolTask("job-7", 0.01) == await executor.call(build)
    assert ToolTask("job-7", 0.01) == await executor.call(poll(build))

    becomes(tmp_path, "working", ttlMs=5000)
    assert ToolTask("job-7", 0.0, 5.0) == await executor.call(poll(build))
    becomes(tmp_path, "completed", result={"content": [{"type": "text", "text": "built"}]})
    assert b"built" == (await executor.call(poll(build))).content

    assert ["build a bridge"] == ledger(tmp_path)


async def test_over_http_each_request_names_the_task(executor, order, tmp_path, unused_tcp_port):
    with served([*SERVER, str(tmp_path)], unused_tcp_port):
        build = order("probe__build", at(unused_tcp_port), what="a bridge")
        assert isinstance(await executor.call(build), ToolTask)
        with pytest.raises(ToolFailedError, match="its task is cancelled"):
            await executor.call(poll(build, cancel=True))

    with pytest.raises(ToolFailedError, match="not_started"):
        await executor.call(poll(build))


async def test_the_task_outlives_its_server(executor, build, tmp_path):
    await executor.call(build)
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it died with one before it
            child.kill()
    becomes(tmp_path, "completed", result={"content": [{"type": "text", "text": "built"}]})

    kinds = []
    for _ in range(2):  # the first poll may be sent to the dead server
        try:
            kinds.append((await executor.call(poll(build))).content)
        except ToolFailedError as error:
            kinds.append(error.kind)

    assert kinds in ([b"built"] * 2, ["not_started", b"built"])
    assert ["build a bridge"] == ledger(tmp_path)


BAD = [
    ("failed", {"error": {"code": -32603, "message": "no steel"}}, "tool_error", "no steel"),
    ("failed", {"statusMessage": "no steel"}, "tool_error", "no steel"),
    ("cancelled", {}, "tool_error", "its task is cancelled"),
    ("completed", {"result": {"content": 7}}, "tool_error", "it may have had effects"),
    ("completed", {"result": {"content": [], "isError": True}}, "tool_error", "it failed"),
    ("paused", {}, "not_started", "cannot be used"),
    ("completed", {"taskId": "other"}, "lost", "Task not found"),
]


async def test_a_task_that_ends_badly(executor, build, tmp_path):
    for status, more, kind, message in BAD:
        becomes(tmp_path, status, **more)

        with pytest.raises(ToolFailedError) as raised:
            await executor.call(poll(build))

        assert kind == raised.value.kind, status
        assert message in raised.value.message


async def test_a_task_asks_and_gets_the_answer_only_while_it_asks(executor, build, tmp_path):
    becomes(tmp_path, "input_required", inputRequests={"sure": FORM})
    asked = await executor.call(poll(build))
    assert isinstance(asked, ToolQuestion)
    assert [("sure", "Sure?")] == [(each.key, each.message) for each in asked.requests]

    given = GivenInput("", {"sure": {"yes": True}})
    assert isinstance(await executor.call(poll(build, given)), ToolTask)
    assert b"built" == (await executor.call(poll(build, given))).content

    answer = '{"sure": {"action": "accept", "content": {"yes": true}}}'
    assert [f"answer {answer}"] == ledger(tmp_path)


async def test_a_task_that_asks_for_more_gets_what_is_known_and_asks_for_the_rest(
    executor, build, tmp_path
):
    becomes(tmp_path, "input_required", inputRequests={"sure": FORM, "really": FORM})

    asked = await executor.call(poll(build, GivenInput("", {"sure": False})))

    assert ["really"] == [each.key for each in asked.requests]
    assert ['answer {"sure": {"action": "decline"}}'] == ledger(tmp_path)


async def test_a_task_that_is_not_needed_any_more_is_cancelled(executor, build, tmp_path):
    await executor.call(build)

    with pytest.raises(ToolFailedError, match="its task is cancelled"):
        await executor.call(poll(build, cancel=True))

    assert ["build a bridge", "cancel job-7"] == ledger(tmp_path)
