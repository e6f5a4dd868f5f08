"""The HTTP API: the answers, refusals and receipts of the client, over a real server."""

import re
from contextlib import aclosing

import pytest
from typer.main import get_command

import cueline
from cueline.cli import app
from cueline.client.document import document
from cueline.deciders.session import TERMINAL
from cueline.gateway.routes import ROUTES
from tests.gateway.conftest import SAID, served
from tests.scripted import HELLO, scripted

PAID = []
TALKS = scripted('reply = [{ text = "Good evening." }, { text = "Good night." }]')
JSON = {"Content-Type": "application/json"}
PAYS = """
reply = [{ calls = [{ name = "pay", arguments = { amount = 3 } }] }, { text = "Done." }]
"""


@cueline.tool(sensitive=True)
async def pay(amount: int) -> str:
    """Pay an amount."""
    PAID.append(amount)
    return f"paid {amount}"


async def test_questions_are_answered_as_in_python(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(HELLO, "Go", id="one", open=True)).result()

        listed = (await http.get("/v1/sessions", params={"agent": "scripted"})).json()
        shown = (await http.get("/v1/sessions/one")).json()
        lines = (await http.get("/v1/sessions/on/transcript")).json()

        rows = document((await runtime.sessions()).rows)
        assert {"rows": rows, "more": False, "next": None} == listed
        assert document(await runtime.show("one")) == shown
        assert document((await runtime.transcript("one")).rows) == lines["rows"]
        assert [] == (await http.get("/v1/sessions", params={"agent": "other"})).json()["rows"]


async def test_each_question_about_the_log_has_an_answer(log):
    async with served(log) as (_, http):
        asked = [each for each in ROUTES if each.method == "GET" and "{" not in each.path]
        for each in asked:
            given = {"query": "SELECT 1"} if each.path == "/audit/sql" else {}
            said = await http.get(f"/v1{each.path}", params=given)
            assert 200 == said.status_code, (each.path, said.text)

        assert len(asked) >= 9


@pytest.mark.parametrize(("path", "key"), [("/v1/sessions", "id"), ("/v1/audit", "position")])
async def test_pages_follow_one_another_although_rows_are_added(log, path, key):
    async with served(log) as (runtime, http):
        for n in range(5):
            await (await runtime.start(HELLO, "Go", id=f"s{n}")).result()
        whole = [each[key] for each in (await http.get(path)).json()["rows"]]
        found, cursor = [], None
        while True:
            asked = {"limit": 2} | ({"cursor": cursor} if cursor else {})
            page = (await http.get(path, params=asked)).json()
            rows = [each[key] for each in page["rows"]]
            found = rows + found if key == "position" else found + rows
            if cursor is None:
                await (await runtime.start(HELLO, "Go", id="later")).result()
            cursor = page["next"]
            assert page["more"] == (cursor is not None)
            if cursor is None:
                break

    assert whole == found


async def test_a_message_with_a_key_is_recorded_once(log):
    async with served(log) as (runtime, http):
        session = await runtime.start(TALKS, "Go", id="one", open=True)
        await session.result()
        said = [
            await http.post(
                "/v1/sessions/one/messages", json={"text": "And?"}, headers={"Idempotency-Key": "k"}
            )
            for _ in range(2)
        ]
        other = await http.post(
            "/v1/sessions/one/messages", json={"text": "But?"}, headers={"Idempotency-Key": "k"}
        )
        sent = [fact.text async for _, fact in runtime.log.journal().read("inbox-default/one", 1)]

    assert [200, 200] == [each.status_code for each in said]
    assert said[0].json()["version"] == said[1].json()["version"]
    assert (409, "KeyReusedError") == (other.status_code, other.json()["type"])
    assert ["And?"] == sent


async def test_a_call_is_allowed_once(log):
    PAID.clear()
    async with served(log) as (runtime, http):
        session = await runtime.start(scripted(PAYS, pay), "Go", id="one")
        await session.result()
        (asked,) = (await http.get("/v1/approvals")).json()["rows"]
        path = f"/v1/approvals/{asked['id']}/decision"

        wrong = await http.post(path, json={"verdict": "grant", "by": "somebody else"})
        first = await http.post(path, json={"verdict": "grant", "note": "fine"})
        assert "completed" == (await session.result()).status
        again = await http.post(path, json={"verdict": "deny"})

    assert (422, "by") == (wrong.status_code, wrong.json()["field"])
    assert (200, "grant") == (first.status_code, first.json()["verdict"])
    assert (409, "NotPendingError") == (again.status_code, again.json()["type"])
    assert [3] == PAID


async def test_a_session_is_paused_continued_and_stopped(log):
    async with served(log) as (runtime, http):
        session = await runtime.start(HELLO, "Go", id="one", open=True)
        await session.result()

        paused = await http.post("/v1/sessions/one/pause")
        resumed = await http.post("/v1/sessions/one/resume")
        stopped = await http.post("/v1/sessions/one/stop", json={"reason": "enough"})

        assert "PauseAsked" == paused.json()["message"]
        assert (200, "one") == (resumed.status_code, resumed.json()["session"])
        assert "StopAsked" == stopped.json()["message"]
        async with aclosing(session.follow()) as facts:
            async for _, _, state in facts:
                if state.status in TERMINAL:
                    break
        assert "stopped" == state.status


async def test_a_fork_is_started(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(TALKS, "Go", id="one")).result()
        said = await http.post("/v1/sessions/one/fork", json={"at": 2, "id": "two", "goal": "Go"})

        assert (200, "two") == (said.status_code, said.json()["session"]), said.text
        assert "completed" == (await runtime.session("two").result()).status


@pytest.mark.parametrize(
    ("asked", "status", "kind", "field"),
    [
        (("GET", "/v1/sessions/nothing", {}), 404, "UnknownSessionError", None),
        (("GET", "/v1/sessions", {"params": {"limit": "0"}}), 422, "ConfigError", "limit"),
        (("GET", "/v1/sessions", {"params": {"cursor": "x"}}), 422, "ConfigError", "cursor"),
        (("GET", "/v1/audit", {"params": {"cursor": "-1"}}), 422, "ConfigError", "cursor"),
        (("GET", "/v1/sessions", {"params": {"limit": "x"}}), 422, "InvalidInput", "limit"),
        (("GET", "/v1/sessions", {"params": {"labels": "x"}}), 422, "ConfigError", "labels"),
        (("GET", "/v1/sessions", {"params": {"status": "odd"}}), 422, "ConfigError", "status"),
        (("GET", "/v1/sessions", {"params": {"since": "0.5"}}), 422, "InvalidInput", "since"),
        (("GET", "/v1/audit", {"params": {"until": "2026-01-31T07:30"}}), 422, None, "until"),
        (("GET", "/v1/costs", {"params": {"by": "moon"}}), 422, "InvalidInput", "by"),
        (("POST", "/v1/sessions/a/messages", {"json": {}}), 422, "InvalidInput", "text"),
        (
            ("POST", "/v1/sessions/a/messages", {"json": {"text": "x", "turn": 1}}),
            422,
            None,
            "turn",
        ),
        (("POST", "/v1/sessions/a/messages", {"content": b"{"}), 422, "InvalidInput", None),
        (
            ("POST", "/v1/sessions/a/messages", {"content": b"\xff", "headers": JSON}),
            400,
            "about:blank",
            None,
        ),
        (("POST", "/v1/approvals/a.1/decision", {"json": {"verdict": "grant"}}), 409, None, None),
        (("POST", "/v1/runs", {"json": {"blueprint": "none"}}), 409, "RejectedError", None),
        (("GET", "/v1/nothing", {}), 404, "about:blank", None),
        (("DELETE", "/v1/sessions", {}), 405, "about:blank", None),
    ],
)
async def test_a_wrong_request_is_a_problem_that_names_the_field(log, asked, status, kind, field):
    method, path, how = asked
    async with served(log) as (runtime, http):
        said = await http.request(method, path, **how)
        told, position = said.json(), await runtime.log.store.last_position()

    assert (status, status) == (said.status_code, told["status"]), told
    assert "application/problem+json" == said.headers["content-type"]
    assert kind in (None, told["type"])
    assert field is None or field == told["field"]
    assert told["title"]
    assert told["detail"]
    assert 0 == position


@pytest.mark.parametrize("header", [None, "Bearer", "Bearer wrong", "Basic eDp5", "Bearer ü"])
async def test_nothing_is_told_without_the_token(log, header):
    async with served(log) as (_, http):
        headers = {"Authorization": b"" if header is None else header.encode()}
        for path in ("/v1/sessions", "/v1/openapi.json", "/v1/nothing"):
            said = await http.get(path, headers=headers)

            assert (401, "Bearer") == (said.status_code, said.headers["www-authenticate"])
            assert "Authorization" in said.json()["detail"]


# API4:2023 unrestricted resource consumption
async def test_a_body_that_is_too_large_is_refused_unread(log):
    async with served(log) as (_, http):
        said = await http.post("/v1/runs", content=b" " * (41 * 1024 * 1024))

    assert 413 == said.status_code


async def test_a_body_of_unknown_length_is_refused(log):
    async def pieces():
        yield b"{}"

    async with served(log) as (_, http):
        said = await http.post("/v1/runs", content=pieces(), headers=JSON)

    assert (411, "LengthRequired") == (said.status_code, said.json()["title"])


# API8:2023 security misconfiguration
async def test_a_bug_is_a_problem_without_its_text(log):
    async def fail(_):
        raise RuntimeError("a secret")

    SAID.clear()
    async with served(log) as (runtime, http):
        runtime.find = fail
        said = await http.get("/v1/sessions/one")

        assert 200 == (await http.get("/v1/sessions")).status_code

    assert (500, "application/problem+json") == (said.status_code, said.headers["content-type"])
    assert "a secret" not in said.text
    assert "RuntimeError: a secret" in "".join(SAID)  # `cueline serve` prints it without secrets


# 002-011
@pytest.mark.parametrize("route", ROUTES, ids=lambda each: f"{each.method} {each.path}")
def test_the_command_for_the_same_exists(route):
    words, command = route.command.split()[1:], get_command(app)
    typed = [*words]
    while words and words[0] in getattr(command, "commands", ()):
        command = command.commands[words.pop(0)]
        command = getattr(command, "loaded", command)

    options = {name for each in command.params for name in each.opts}
    assert {each for each in words if each.startswith("--")} <= options
    assert all(f"{{{name}}}" in route.path for name in re.findall(r"{(\w+)}", route.command))
    assert not typed or words != typed


async def test_the_description_has_each_parameter_and_field_with_its_text(log):
    async with served(log) as (_, http):
        told = (await http.get("/v1/openapi.json")).json()

    operations = [each for path in told["paths"].values() for each in path.values()]
    asked = [
        each for one in operations for each in one.get("parameters", ()) if each["in"] != "path"
    ]
    bodies = {name: each for name, each in told["components"]["schemas"].items() if "Body" in name}
    assert len(ROUTES) + 3 == len(operations)  # with the streams, and AG-UI
    assert [] == [each["name"] for each in asked if not each.get("description")]
    assert {"text", "lane", "attachments", "name"} == set(bodies["MessageSentBody"]["properties"])
    assert [] == [
        (name, field)
        for name, body in bodies.items()
        for field, each in body.get("properties", {}).items()
        if not each.get("description")
    ]
    assert len({each["operationId"] for each in operations}) == len(operations)
