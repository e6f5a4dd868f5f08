"""The extension `io.modelcontextprotocol/tasks` (SEP-2663): a wait for a session, as a task.

The log is the store of the tasks. The id of a task is a session and a version, sealed; the first
end or idle time of the session after the version is the result of the task.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.mcpserver.server import require_client_extension
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from cueline.client.client import Client
from cueline.client.document import document
from cueline.client.first_rest import first_rest
from cueline.client.keys import master_key
from cueline.client.wishes import wish
from cueline.deciders.session import TERMINAL
from cueline.errors import RejectedError, UnknownSessionError
from cueline.events.inbox import StopAsked
from cueline.gateway.mcp_wait import (
    Context,
    answer_question,
    answerable,
    elicitation_of,
    questions_of,
)

EXTENSION: Final = "io.modelcontextprotocol/tasks"
POLL_MS: Final = 2000
"""The suggested time between two questions of a client, in milliseconds."""
TTL_MS: Final = 365 * 86_400_000
"""The time after which a client may forget a task; the log does not."""
_RESTS: Final = {*map(str, TERMINAL), "idle"}


class TaskParams(types.RequestParams):
    """The parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str


class TaskUpdateParams(TaskParams):
    """The parameters of `tasks/update`."""

    input_responses: dict[str, Any]


class CreateTaskResult(types.Result, extra="allow"):
    """The answer to a call that goes on as a task; the other fields are those of the task."""

    result_type: str = "task"


async def task_for(context: Context, client: Client, session: str) -> CreateTaskResult | None:
    """Return the task of a wait for *session*; None for a session at rest, or a client without."""
    declared = context.session.client_capabilities
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS or declared is None:
        return None
    if EXTENSION not in (declared.extensions or {}):
        return None
    stream = await client.find(session)
    details = await client.show(stream)
    if details.status in _RESTS:
        return None
    name = master_key().seal(json.dumps([stream, details.version]).encode(), _purpose(client))
    return CreateTaskResult(**await _task(client, name, stream, details.version))


def add_tasks(server: Server[Any], client_of: Callable[[Context], Client]) -> None:
    """Let *server* answer the requests of the extension."""

    async def get(context: Context, params: TaskParams) -> dict[str, Any]:
        client = _client(context)
        return await _task(client, params.task_id, *await _of(client, params.task_id))

    async def update(context: Context, params: TaskUpdateParams) -> dict[str, Any]:
        client = _client(context)
        stream, _ = await _of(client, params.task_id)
        for name, response in params.input_responses.items():
            with suppress(ValidationError):  # what answers no question is left out
                said = types.ElicitResult.model_validate(response)
                await answer_question(client, stream, name, said)
        return {}

    async def cancel(context: Context, params: TaskParams) -> dict[str, Any]:
        client = _client(context)
        stream, after = await _of(client, params.task_id)
        if await first_rest(client, stream, after) is None:
            with suppress(RejectedError):  # it ends already
                await wish(client, stream, StopAsked(reason="its task was cancelled"))
        return {}

    def _client(context: Context) -> Client:
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", context.method)
        require_client_extension(context, EXTENSION)
        assert context.request is not None
        asked = (context.params or {}).get("taskId")
        if context.request.headers.get("mcp-name", asked) != asked:
            why = "mcp-name header does not match the request body's 'taskId' parameter"
            raise MCPError(types.HEADER_MISMATCH, why)
        return client_of(context)

    server.add_request_handler("tasks/get", TaskParams, get)
    server.add_request_handler("tasks/update", TaskUpdateParams, update)
    server.add_request_handler("tasks/cancel", TaskParams, cancel)


async def _of(client: Client, name: str) -> tuple[str, int]:
    """Return the session and the version of a task that the caller may see."""
    try:
        plain = master_key().unseal(name, _purpose(client))
        stream, version = json.loads(plain)
        return await client.find(stream), version
    except (ValueError, UnknownSessionError) as error:
        raise MCPError(types.INVALID_PARAMS, "Failed to retrieve task: Task not found") from error


async def _task(client: Client, name: str, stream: str, version: int) -> dict[str, Any]:
    details = await client.show(stream)
    shown = document(details)
    told = {
        "taskId": name,
        "status": "working",
        "statusMessage": f"{details.id}: {details.status}",
        "createdAt": shown["created_at"],
        "lastUpdatedAt": shown["updated_at"],
        "ttlMs": TTL_MS,
        "pollIntervalMs": POLL_MS,
    }
    if (result := await first_rest(client, stream, version)) is None:
        questions = answerable(client, await questions_of(client, stream))
        if not questions:
            return told
        asked = {each.id: elicitation_of(each) for each in questions}
        plain = {name: each.model_dump(mode="json", by_alias=True) for name, each in asked.items()}
        return told | {"status": "input_required", "inputRequests": plain}
    if result.status == "stopped":
        return told | {"status": "cancelled", "statusMessage": f"{details.id}: stopped"}
    content = {"id": details.id, "status": result.status, "rests": True, "text": result.text}
    block = {"type": "text", "text": result.text}
    answer = {
        "content": [block],
        "structuredContent": content,
        "isError": result.status == "failed",
    }
    return told | {"status": "completed", "result": answer}


def _purpose(client: Client) -> str:
    return f"task\0{client.log.id}\0{client.log.tenant}\0{client.log.user}"
