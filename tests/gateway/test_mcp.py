"""The MCP endpoint, as the client of the official SDK and as plain HTTP use it."""

from contextlib import asynccontextmanager
from types import MappingProxyType

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult
from starlette.applications import Starlette
from starlette.routing import Mount

import cueline
from cueline.client.tokens import issue_token
from cueline.gateway import app
from cueline.gateway.mcp import TOOLS
from cueline.testing.wait import await_until
from tests.gateway.conftest import TOKEN, served
from tests.scripted import HELD, HELLO, holder, scripted

TALKS = scripted('reply = [{ text = "Good evening." }, { text = "Good night." }]')
PAID = []
PAYS = """
reply = [{ calls = [{ name = "pay", arguments = { amount = 3 } }] }, { text = "Done." }]
"""
VERSION, TASKS = "2026-07-28", "io.modelcontextprotocol/tasks"


@cueline.tool(sensitive=True)
async def pay(amount: int) -> str:
    """Pay an amount."""
    PAID.append(amount)
    return f"paid {amount}"


@asynccontextmanager
async def connected(http, mode="auto", token=TOKEN, **options):
    """Yield a client of the SDK that is connected to the server of *http*."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as own:
        transport = streamable_http_client(f"{http.base_url}/mcp", http_client=own)
        async with Client(transport, mode=mode, **options) as client:
            yield client


async def asked(client, tool, **arguments):
    """Return the structured content of a successful call."""
    said = await client.call_tool(tool, arguments)
    assert not said.is_error, said.content
    return said.structured_content


async def posted(
    http, method, capabilities=MappingProxyType({"extensions": {TASKS: {}}}), **params
):
    """Return the answer to a request of the current revision that is made by hand."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {**capabilities},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    headers = {
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": method,
        "Mcp-Name": params.get("name") or params.get("taskId", ""),
        "Accept": "application/json, text/event-stream",
    }
    said = (await http.post("/mcp", json=body, headers=headers)).json()
    return said.get("result") or said["error"]


# C43, 002-012
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_session_is_read_and_sent_a_message(log, mode):
    async with served(log) as (runtime, http), connected(http, mode) as client:
        await (await runtime.start(TALKS, "Go", id="one", open=True)).result()

        tools = [each.name for each in (await client.list_tools()).tools]
        listed = await asked(client, "list")
        # 002-034
        proposed = await asked(client, "send", session="one", text="And?")
        unread = (await runtime.show("one")).unread
        first = await asked(client, "commit_proposal", proposal=proposed["id"])
        waited = await asked(client, "wait", session="one")
        again = await asked(client, "commit_proposal", proposal=proposed["id"])
        lines = await asked(client, "transcript", session="one")

    assert list(TOOLS) == tools
    assert ["one"] == [each["id"] for each in listed["rows"]]
    assert ("send one a note: And?", 0) == (proposed["summary"], unread)
    assert ("Good night.", True) == (waited["text"], waited["rests"])
    assert {**first, "recorded": False} == again
    assert "And?" in str(lines)


async def test_a_refusal_is_a_result_that_says_what_to_do(log):
    async with served(log) as (runtime, http), connected(http) as client:
        await (await runtime.start(HELLO, "Go", id="one", open=True)).result()
        unknown = await client.call_tool("show", {"session": "none"})
        wrong = await client.call_tool("send", {"session": "one", "texts": "And?"})
        forged = await client.call_tool("commit_proposal", {"proposal": "abc"})
        with pytest.raises(MCPError, match="Unknown tool: dance"):
            await client.call_tool("dance", {})

    assert "UnknownSessionError" == unknown.structured_content["error"]
    assert "text: Field required" == wrong.content[0].text
    assert "proposal_invalid" == forged.structured_content["code"]
    assert all(each.is_error for each in (unknown, wrong, forged))


async def test_a_wait_ends_after_its_time_with_the_progress(log):
    async with served(log) as (runtime, http), connected(http) as client:
        await runtime.start(holder(), "Go", id="one")
        await await_until(lambda: HELD)
        waited = await asked(client, "wait", session="one", seconds=0.01)

        assert (False, "running", 1) == (waited["rests"], waited["status"], waited["turns"])


async def test_a_call_is_approved_by_a_proposal(log):
    PAID.clear()
    async with served(log) as (runtime, http), connected(http) as client:
        session = await runtime.start(scripted(PAYS, pay), "Go", id="one")
        waited = await asked(client, "wait", session="one")
        (question,) = waited["questions"]
        proposed = await asked(client, "approve", approval=question["id"], note="fine")
        paid = [*PAID]
        await asked(client, "commit_proposal", proposal=proposed["id"])
        result = await session.result()

    assert ("waiting", []) == (waited["status"], paid)
    assert ([3], "Done.") == (PAID, result.text)


# 002-009: the client's own model is not this log's to pay, and what it asks for waits for a yes.
async def test_what_a_client_reads_and_asks_for_costs_nothing(log):
    async with served(log) as (runtime, http), connected(http) as client:
        await (await runtime.start(TALKS, "Go", id="one", open=True)).result()
        before = (await runtime.costs(), await runtime.log.store.last_position())
        await asked(client, "show", session="one")
        await asked(client, "send", session="one", text="And?")

        assert before == (await runtime.costs(), await runtime.log.store.last_position())


async def test_the_user_of_the_client_is_asked_about_a_call(log):
    PAID.clear()
    questions = []

    async def answer(_, params):
        questions.append(params.message)
        return ElicitResult(action="accept", content={"decision": "allow", "note": "fine"})

    async with served(log) as (runtime, http):
        await runtime.start(scripted(PAYS, pay), "Go", id="one")
        async with connected(http, elicitation_callback=answer) as client:
            waited = await asked(client, "wait", session="one")
        (decided,) = [fact async for _, fact in runtime.log.journal().read("inbox-default/one", 1)]

    assert ("Done.", [3]) == (waited["text"], PAID)
    assert 1 == len(questions)
    assert "pay(amount=3)" in questions[0]
    assert ("grant", "mcp", "fine") == (decided.verdict, decided.channel, decided.note)


async def test_the_answer_to_a_question_counts_once_also_in_another_process(log):
    PAID.clear()
    call = {"name": "wait", "arguments": {"session": "one"}, "capabilities": {"elicitation": {}}}
    async with served(log) as (runtime, http):
        await runtime.start(scripted(PAYS, pay), "Go", id="one")
        first = await posted(http, "tools/call", **call)
    (name,) = first["inputRequests"]
    answers = {name: {"action": "accept", "content": {"decision": "allow"}}}
    again = {**call, "inputResponses": answers, "requestState": first["requestState"]}
    async with served(log) as (runtime, http):
        await runtime.resume("one")
        done = await posted(http, "tools/call", **again)
        repeated = await posted(http, "tools/call", **again)
        other = await posted(http, "tools/call", **{**again, "arguments": {"session": "on"}})

    assert "input_required" == first["resultType"]
    assert ["Done.", "Done."] == [each["structuredContent"]["text"] for each in (done, repeated)]
    assert [3] == PAID
    assert "Invalid or expired requestState" == other["message"]


async def test_what_is_sent_back_counts_from_the_same_person_only(log):
    wait = {"name": "wait", "arguments": {"session": "one"}}
    async with served(log) as (runtime, http):
        await (await runtime.start(scripted(PAYS, pay), "Go", id="one")).result()
        said = []
        for name in ("ada", "lin"):
            token = (await issue_token(runtime, name, scopes=["send", "approve"])).text
            http.headers["Authorization"] = f"Bearer {token}"
            if name == "ada":
                elicits = {"elicitation": {}}
                question = await posted(http, "tools/call", elicits, **wait)
                task = await posted(http, "tools/call", **wait)
            state = {"requestState": question["requestState"], "inputResponses": {}}
            said.append(await posted(http, "tools/call", elicits, **wait, **state))
            said.append(await posted(http, "tasks/get", taskId=task["taskId"]))

    assert ["complete", "complete"] == [each["resultType"] for each in said[:2]]
    assert [-32602, -32602] == [each["code"] for each in said[2:]]


async def test_a_user_who_declines_is_not_asked_again_by_the_same_call(log):
    PAID.clear()

    async def decline(*_):
        return ElicitResult(action="decline")

    async with served(log) as (runtime, http):
        await runtime.start(scripted(PAYS, pay), "Go", id="one")
        async with connected(http, elicitation_callback=decline) as client:
            waited = await asked(client, "wait", session="one")

    assert ("waiting", 1, []) == (waited["status"], len(waited["questions"]), PAID)


async def test_who_may_not_decide_is_not_asked(log):
    async def answer(*_):
        raise AssertionError

    async with served(log) as (runtime, http):
        await runtime.start(scripted(PAYS, pay), "Go", id="one")
        token = (await issue_token(runtime, "ada", scopes=["send", "approve:refund"])).text
        async with connected(http, token=token, elicitation_callback=answer) as client:
            waited = await asked(client, "wait", session="one")

    assert ("waiting", 1) == (waited["status"], len(waited["questions"]))


async def test_a_wait_is_a_task_whose_answer_comes_from_the_log(log):
    PAID.clear()
    async with served(log) as (runtime, http):
        session = await runtime.start(scripted(PAYS, pay), "Go", id="one")
        wait = {"name": "wait", "arguments": {"session": "one"}}
        task = await posted(http, "tools/call", **wait)
        named = {"taskId": task["taskId"]}
        await session.result()
        asks = await posted(http, "tasks/get", **named)
        (name,) = asks["inputRequests"]
        answers = {name: {"action": "accept", "content": {"decision": "allow"}}}
        done = await posted(http, "tasks/update", **named, inputResponses=answers)
        await session.result()
        ended = await posted(http, "tasks/get", **named)
        plain = await posted(http, "tools/call", **wait)

    assert "task" == task["resultType"]
    assert "input_required" == asks["status"]
    assert "elicitation/create" == asks["inputRequests"][name]["method"]
    assert "complete" == done["resultType"]
    assert ("completed", "Done.") == (ended["status"], ended["result"]["content"][0]["text"])
    assert "Done." == plain["structuredContent"]["text"]


async def test_a_task_is_cancelled_by_the_end_of_its_session(log):
    async with served(log) as (runtime, http):
        session = await runtime.start(scripted(PAYS, pay), "Go", id="one")
        await session.result()
        wait = {"name": "wait", "arguments": {"session": "one"}}
        named = {"taskId": (await posted(http, "tools/call", **wait))["taskId"]}
        said = [await posted(http, "tasks/cancel", **named) for _ in range(2)]
        await session.result()
        ended = await posted(http, "tasks/get", **named)
        strange = await posted(http, "tasks/get", taskId="one")
        without = await posted(http, "tasks/get", {}, **named)

    assert ["complete"] * 2 == [each["resultType"] for each in said]
    assert "cancelled" == ended["status"]
    assert [-32602, -32021] == [each["code"] for each in (strange, without)]


# API6:2023 unrestricted access to sensitive business flows
# C17, 002-014
async def test_a_proposal_is_committed_by_its_person_with_the_scope(log):
    PAID.clear()
    async with served(log) as (runtime, http):
        session = await runtime.start(scripted(PAYS, pay), "Go", id="one")
        await session.result()
        (question,) = await runtime.pending()
        reads, decides, other = [
            (await issue_token(runtime, name, scopes=[scope])).text
            for name, scope in [("ada", "read"), ("ada", "approve:pay"), ("lin", "approve:pay")]
        ]
        async with connected(http, token=reads) as client:
            proposed = await asked(client, "approve", approval=question.id)
            refused = await client.call_tool("commit_proposal", {"proposal": proposed["id"]})
        async with connected(http, token=other) as client:
            foreign = await client.call_tool("commit_proposal", {"proposal": proposed["id"]})
        paid = [*PAID]
        async with connected(http, token=decides) as client:
            given = await asked(client, "commit_proposal", proposal=proposed["id"])
        await session.result()

    assert "approve:pay" == refused.structured_content["scope"]
    assert "proposal_invalid" == foreign.structured_content["code"]
    assert ("ada", [], [3]) == (given["by"], paid, PAID)


# C46
async def test_a_session_of_another_tenant_does_not_exist_for_a_tool(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(HELLO, "Go", id="one", open=True)).result()
        token = await issue_token(runtime, "ada", scopes=["send"], tenant="acme")
        async with connected(http, token=token.text) as client:
            listed = await asked(client, "list")
            tried = [
                await client.call_tool(tool, {"session": "default/one"})
                for tool in ("show", "wait", "pause", "stop")
            ]

    assert [] == listed["rows"]
    assert {"UnknownSessionError"} == {each.structured_content["error"] for each in tried}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:8642"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Authorization": "Bearer no"}, 401),
    ],
)
async def test_a_request_that_another_site_can_cause_is_refused(log, headers, status):
    async with served(log) as (_, http):
        said = await http.post("/mcp", json={}, headers=headers)

    assert status == said.status_code


async def test_a_proposal_is_made_and_committed_over_http(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(HELLO, "Go", id="one", open=True)).result()
        body = {"action": "pause", "arguments": {"session": "one"}}
        proposal = (await http.post("/v1/proposals", json=body)).json()
        path = f"/v1/proposals/{proposal['id']}"
        first = await http.post(f"{path}/commit")
        again = await http.post(f"{path}/commit")
        late = await http.post(f"{path}/reject")
        undo = (await http.post(f"{path}/undo")).json()
        rejected = await http.post(f"/v1/proposals/{undo['id']}/reject")
        over = await http.post(f"/v1/proposals/{undo['id']}/commit")

    assert {"paused": {"before": False, "after": True}} == proposal["changes"]
    assert [200, 200, 409] == [each.status_code for each in (first, again, late)]
    assert ("PauseAsked", False) == (again.json()["message"], again.json()["recorded"])
    assert ("resume", 200) == (undo["action"], rejected.status_code)
    assert (409, "proposal_invalid") == (over.status_code, over.json()["code"])


async def test_the_endpoint_is_mounted_below_a_path_of_another_app(log):
    ours = app(log, token=TOKEN, on="inline")
    transport = httpx2.ASGITransport(Starlette(routes=[Mount("/cueline", ours)]))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    try:
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://example.org/cueline", headers=headers
        ) as http:
            listed = await posted(http, "tools/list")
    finally:
        await ours.aclose()

    assert list(TOOLS) == [each["name"] for each in listed["tools"]]
