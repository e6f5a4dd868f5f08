"""An MCP server whose tool goes on as a task: `task_server.py FOLDER [PORT]`.

The task outlives the server: it is the file `task.json` in FOLDER, which a test changes. Each call,
answer and cancellation is a line of `ledger.txt` there.
"""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

EXTENSION = "io.modelcontextprotocol/tasks"
FOLDER = Path(sys.argv[1])
TASK, LEDGER = FOLDER / "task.json", FOLDER / "ledger.txt"
TIMES = {
    "createdAt": "2026-01-01T00:00:00Z",
    "lastUpdatedAt": "2026-01-01T00:00:00Z",
    "ttlMs": None,
}
BUILD = types.Tool(
    name="build",
    description="Build something, which takes long.",
    input_schema={"type": "object", "properties": {"what": {"type": "string"}}},
)
Context = ServerRequestContext[Any, Any]


class TaskParams(types.RequestParams):
    """The parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str


class TaskUpdateParams(TaskParams):
    """The parameters of `tasks/update`."""

    input_responses: dict[str, Any]


class CreateTaskResult(types.Result, extra="allow"):
    """The answer to a call that goes on as a task."""

    result_type: str = "task"


def note(*said: object) -> None:
    with LEDGER.open("a") as ledger:
        ledger.write(" ".join(map(str, said)) + "\n")


def state(name: str) -> dict[str, Any]:
    """Return the task, as the test left it."""
    told = json.loads(TASK.read_text()) if TASK.exists() else {}
    if told.get("taskId") != name:
        raise MCPError(types.INVALID_PARAMS, "Failed to retrieve task: Task not found")
    return TIMES | told


async def tools(context: Context, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[BUILD])


async def call(context: Context, params: types.CallToolRequestParams) -> Any:
    declared = context.session.client_capabilities
    assert declared is not None
    assert EXTENSION in (declared.extensions or {}), "the client takes tasks"
    note("build", (params.arguments or {})["what"])
    TASK.write_text(json.dumps({"taskId": "job-7", "status": "working", "pollIntervalMs": 10}))
    return CreateTaskResult(**state("job-7"))


async def get(context: Context, params: TaskParams) -> dict[str, Any]:
    if context.request is not None:
        assert params.task_id == context.request.headers["mcp-name"]
    return state(params.task_id)


async def update(context: Context, params: TaskUpdateParams) -> dict[str, Any]:
    note("answer", json.dumps(params.input_responses, sort_keys=True))
    done = {"content": [{"type": "text", "text": "built"}]}
    now = {"taskId": params.task_id, "status": "completed", "result": done}
    TASK.write_text(json.dumps(now))
    return {}


async def cancel(context: Context, params: TaskParams) -> dict[str, Any]:
    note("cancel", params.task_id)
    TASK.write_text(json.dumps({"taskId": params.task_id, "status": "cancelled"}))
    return {}


app: Server[Any] = Server("builder", on_list_tools=tools, on_call_tool=call)
app.extensions[EXTENSION] = {}
app.add_request_handler("tasks/get", TaskParams, get)
app.add_request_handler("tasks/update", TaskUpdateParams, update)
app.add_request_handler("tasks/cancel", TaskParams, cancel)


async def over_stdio() -> None:
    async with stdio_server() as (read, write):
        await app.run(read, write, app.create_initialization_options())


if __name__ == "__main__":
    if len(sys.argv) > 2:
        uvicorn.run(app.streamable_http_app(), port=int(sys.argv[2]), log_level="error")
    else:
        anyio.run(over_stdio)
