"""Calls that go on as tasks of their server: the extension `io.modelcontextprotocol/tasks`.

The server alone decides that a call becomes a task. It is then asked for the task in polls, of
which each may be repeated, by any process.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from mcp import MCPError
from mcp.client.extension import ClientExtension, ResultClaim
from mcp_types import (
    INVALID_PARAMS,
    CallToolResult,
    ElicitResult,
    InputRequiredResult,
    Request,
    Result,
)
from pydantic import Field, ValidationError

from cueline.actors.tool_port import TaskOrder, ToolTask
from cueline.errors import ToolFailedError
from cueline.tools.mcp.connection import McpConnection


class TaskRequest(Request[dict[str, Any], str]):
    """A request about a task."""

    name_param = "taskId"


class TaskState(Result):
    """The state of a task."""

    task_id: str
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    status_message: str | None = None
    ttl_ms: float | None = None
    poll_interval_ms: float | None = None

    @property
    def task(self) -> ToolTask:
        """The task in the form of the port."""
        ttl = None if self.ttl_ms is None else self.ttl_ms / 1000
        return ToolTask(self.task_id, (self.poll_interval_ms or 0.0) / 1000, ttl)


class CreatedTask(TaskState):
    """The answer to a call that became a task."""

    result_type: Literal["task"] = "task"


class FoundTask(TaskState):
    """The answer to `tasks/get`."""

    result: Any = None
    error: dict[str, Any] | None = None
    input_requests: dict[str, Any] = Field(default_factory=dict)


class Tasks(ClientExtension):
    """Says to servers that a call may become a task."""

    identifier = "io.modelcontextprotocol/tasks"

    def claims(self) -> Sequence[ResultClaim[Any]]:  # noqa: D102 - of the SDK
        return [ResultClaim(result_type="task", model=CreatedTask, resolve=_unresolved)]


async def _unresolved(created: CreatedTask, context: object) -> CallToolResult:
    raise AssertionError(f"{created.task_id} is polled, and not waited for: {context}")


async def polled(
    connection: McpConnection, task: TaskOrder, answers: Mapping[str, ElicitResult]
) -> CallToolResult | InputRequiredResult | ToolTask:
    """Return the outcome of a task, what it asks for beyond *answers*, or the task itself.

    The *answers* go to a task that asks for them.

    Raises:
        ToolFailedError: `tool_error`: the task failed or was cancelled; `lost`: the server does not
            know it any more; any other kind: the server did not answer, so ask again.
    """
    about = {"taskId": task.handle}
    try:
        if task.cancel:
            with suppress(MCPError):  # it need not be able to
                await connection.ask(TaskRequest(method="tasks/cancel", params=about), Result)
        found = await connection.ask(TaskRequest(method="tasks/get", params=about), FoundTask)
        given = {key: answers[key] for key in found.input_requests if key in answers}
        if given:
            params = about | {"inputResponses": given}
            await connection.ask(TaskRequest(method="tasks/update", params=params), Result)
    except MCPError as error:
        if error.error.code != INVALID_PARAMS:
            raise connection.unreached(error) from error
        why = f"MCP server {connection.name} does not know the task of the call any more"
        raise ToolFailedError("lost", f"{why}: {error.error.message}") from error
    left = {key: each for key, each in found.input_requests.items() if key not in given}
    try:
        match found.status:
            case "completed":
                return CallToolResult.model_validate(found.result, by_name=False)
            case "input_required" if left:
                asked = {"resultType": "input_required", "inputRequests": left}
                return InputRequiredResult.model_validate(asked, by_name=False)
            case "failed" | "cancelled":
                said = found.error.get("message") if found.error else found.status_message
                raise ToolFailedError("tool_error", str(said or f"its task is {found.status}"))
    except ValidationError as error:
        why = f"MCP server {connection.name} returned an invalid result of a task: {error}"
        raise ToolFailedError("tool_error", f"{why}; it may have had effects") from error
    return found.task
