"""Live events: a client that was cut off at any event gets exactly the events that it missed."""

import asyncio
import json

import pytest
from typer.testing import CliRunner

from cueline.cli import app
from cueline.gateway.api import app_of
from cueline.testing.wait import await_until
from tests.gateway.conftest import served
from tests.gateway.test_api import PAYS, TALKS, pay
from tests.scripted import scripted


async def received(http, path, *, after=None, most=None):
    """Return the events of a stream, as (id, name, data); leave it after *most* events."""
    headers, found, each = {} if after is None else {"Last-Event-ID": str(after)}, [], {}
    async with http.stream("GET", path, headers=headers) as answer:
        assert "text/event-stream; charset=utf-8" == answer.headers["content-type"]
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if name:
                each[name] = value
            elif "data" in each:
                found.append((each.get("id"), each.get("event"), json.loads(each["data"])))
                each = {}
                if len(found) == most:
                    return found
    return found


# 001-018, 002-016, D24
async def test_who_was_cut_off_at_any_event_gets_the_rest_once_and_in_order(log):
    async with served(log) as (runtime, http):
        session = await runtime.start(scripted(PAYS, pay), "Go", id="one")
        await session.result()
        (asked,) = await runtime.pending()
        await session.approve(asked.id)
        await session.result()
        path = "/v1/sessions/one/events"
        whole = [each for each in await received(http, path) if each[0]]

        for at in range(1, len(whole)):
            first = await received(http, path, most=at)
            rest = await received(http, path, after=first[-1][0])
            assert whole == first + rest

    positions = [int(at) for at, _, _ in whole]
    names = [name for _, name, _ in whole]
    assert sorted(set(positions)) == positions
    assert ["done"] == [name for name in names if name in {"done", "error"}] == names[-1:]
    assert {"tool_call", "tool_result", "awaiting_confirmation", "message"} <= set(names)


async def test_the_events_of_all_sessions_are_followed_from_any_position(log):
    async with served(log) as (runtime, http):
        for name in ("one", "two"):
            await (await runtime.start(TALKS, "Go", id=name)).result()
        count = len((await runtime.history("one")).events) + len(
            (await runtime.history("two")).events
        )
        whole = await received(http, "/v1/events", most=count)

        for at in range(1, count):
            first = await received(http, "/v1/events", most=at)
            rest = await received(http, "/v1/events", after=first[-1][0], most=count - at)
            assert whole == first + rest

    assert {"session-default/one", "session-default/two"} == {
        each["stream"] for _, _, each in whole
    }


async def test_a_reply_arrives_before_its_event_in_pieces_without_an_id(log):
    async with served(log) as (runtime, http):
        session = await runtime.start(TALKS, "Go", id="one", open=True)
        await session.result()
        async with http.stream("GET", "/v1/sessions/one/events") as answer:
            lines = answer.aiter_lines()
            async for line in lines:
                if line == "event: message":
                    break
            await session.send("And?")
            seen = []
            async for line in lines:
                if line.startswith(("event:", "id:")):
                    seen.append(line)
                if line == "event: text_delta":
                    break

    assert "event: text_delta" == seen[-1]


async def test_a_reader_that_left_leaves_nothing_behind(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(TALKS, "Go", id="one", open=True)).result()
        await received(http, "/v1/events", most=1)  # the first one starts a watch for the end
        before = len(asyncio.all_tasks())
        for path in ("/v1/events", "/v1/sessions/one/events") * 5:
            await received(http, path, most=1)

        await await_until(lambda: len(asyncio.all_tasks()) <= before)


# C44
def test_the_same_events_come_over_http_in_python_and_from_the_command(log):
    async def read():
        async with served(log) as (runtime, http):
            session = await runtime.start(TALKS, "Go", id="one")
            await session.result()
            sent = await received(http, "/v1/sessions/one/events")
            versions = [version async for version, _ in session.events()]
            return [each["version"] for at, _, each in sent if at], versions

    sent, read_here = asyncio.run(read())
    printed = CliRunner().invoke(app, ["tail", "one", "-n", "99", "--json", "--log", str(log)])

    assert read_here == sent
    assert read_here == [json.loads(line)["version"] for line in printed.stdout.splitlines()]


# 002-018
@pytest.mark.parametrize("path", ["/v1/events", "/mcp", "/login", "/"])
async def test_a_websocket_is_refused(log, path):
    told = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        told.append(message["type"])

    async with served(log) as (runtime, _):
        scope = {"type": "websocket", "path": path, "root_path": "", "headers": []}
        await app_of(runtime, token=None)(scope, receive, send)

    assert ["websocket.close"] == told


async def test_events_of_an_unknown_session_are_a_problem(log):
    async with served(log) as (_, http):
        said = await http.get("/v1/sessions/nothing/events")

    assert (404, "UnknownSessionError") == (said.status_code, said.json()["type"])
