"""The MCP tool `wait`: waits for a session, and asks the user about its calls.

The question goes to the client as an elicitation. The answer comes with another call of the tool,
perhaps days later and to another process: the log has the question, and takes the first answer.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field
from starlette.requests import Request

from cueline.client.client import Client
from cueline.client.decide import PROGRAM
from cueline.client.document import document
from cueline.client.wishes import make_wish, wish
from cueline.errors import NotPendingError
from cueline.events.inbox import DecisionGiven
from cueline.events.input_request import InputRequest

Context = ServerRequestContext[Any, Request]
_FIELDS: Final = (
    "id",
    "status",
    "agent",
    "version",
    "turns",
    "tool_calls",
    "cost",
    "wait_cause",
    "deadline_at",
    "error",
)
_VERDICTS: Final = {"deny": "deny", "do_not_run": "deny"}


class WaitAsked(BaseModel, extra="forbid"):
    """The arguments of `wait`."""

    session: str = Field(description="The id of the session.")
    seconds: float = Field(30, gt=0, le=300, description="The longest wait; then call again.")


async def wait_for(
    context: Context, client: Client, params: types.CallToolRequestParams, asked: WaitAsked
) -> types.InputRequiredResult | dict[str, Any]:
    """Wait until a session rests or the time is over; return its progress, or a question.

    Raises:
        UnknownSessionError: there is no such session.
        SessionUndrivenError: no process drives it, so it would not go on.
    """
    stream = await client.find(asked.session)
    asks = _elicits(context)
    if (name := params.request_state) is not None:
        response = (params.input_responses or {}).get(name)
        asks = await answer_question(client, stream, name, response) and asks
    result = None
    try:
        async with asyncio.timeout(asked.seconds):
            result = await client.session(stream).result()
    except TimeoutError:
        pass
    questions = await questions_of(client, stream)
    if asks and (ours := answerable(client, questions)):
        first = ours[0]
        return types.InputRequiredResult(
            input_requests={first.id: elicitation_of(first)}, request_state=first.id
        )
    details = document(await client.show(stream))
    told = {name: details[name] for name in _FIELDS if details[name] is not None}
    told |= {"rests": result is not None, "text": "" if result is None else result.text}
    return told | {"questions": document(questions)} if questions else told


async def questions_of(client: Client, stream: str) -> list[Any]:
    """Return the open questions of a session and its descendants, the most urgent first."""
    details = await client.show(stream)
    if not details.descendants:
        return list(details.questions)
    ours = {details.id, *(each.id for each in details.tree)}
    return [each for each in await client.pending() if each.session in ours]


def answerable(client: Client, questions: Sequence[Any]) -> list[Any]:
    """Return the questions that nobody has answered, and that the caller may answer."""
    person = client.log.person
    return [
        each
        for each in questions
        if each.given is None and (person is None or person.may("approve", each.tool))
    ]


def elicitation_of(question: Any) -> types.ElicitRequest:
    """Return the request to the client to ask its user about a call."""
    if len(question.requests) == 1 and question.requests[0].get("parameters"):
        asked = InputRequest.model_validate(question.requests[0])
        form = types.ElicitRequestFormParams(
            message=f"{question.session}: {asked.message}", requested_schema=asked.parameters
        )
        return types.ElicitRequest(params=form)
    answers = [each.resolution for each in question.choices] or ["allow", "deny"]
    parts = [f"{question.session}: {question.summary}", question.rationale, question.preview]
    schema = {
        "type": "object",
        "properties": {
            "decision": {"type": "string", "enum": answers},
            "note": {"type": "string", "description": "A text for the agent."},
        },
        "required": ["decision"],
    }
    form = types.ElicitRequestFormParams(
        message="\n\n".join(filter(None, parts)), requested_schema=schema
    )
    return types.ElicitRequest(params=form)


async def answer_question(client: Client, stream: str, name: str, response: Any) -> bool:
    """Record the user's answer to the question *name*; return whether the user has answered.

    An earlier answer counts, and this one is left out. A question of another tree is none.
    """
    given: Mapping[str, Any] = getattr(response, "content", None) or {}
    if getattr(response, "action", "") != "accept":
        return False
    (asked,) = [each for each in await questions_of(client, stream) if each.id == name] or [None]
    if asked is None:
        return True
    if "decision" not in given and not asked.requests:
        return False
    decision = str(given.get("decision", ""))
    resolved = {"resolution": decision} if decision in ("happened", "run_again") else {}
    if asked.requests and not decision:
        resolved = {"result": json.dumps({asked.requests[0]["key"]: dict(given)})}
    verdict = _VERDICTS.get(decision, "grant")
    note = str(given.get("note") or "")
    said = make_wish(
        DecisionGiven, approval=name, digest=asked.digest, verdict=verdict, note=note, **resolved
    ).model_copy(update={"channel": PROGRAM})
    try:
        await wish(client, await client.find(asked.session), said)
    except NotPendingError:
        return True
    return True


def _elicits(context: Context) -> bool:
    """Whether the client can ask its user, and sends the answer with another call."""
    declared = context.session.client_capabilities
    forms = declared.elicitation if declared is not None else None
    modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    return modern and forms is not None and (forms.form is not None or forms.url is None)
