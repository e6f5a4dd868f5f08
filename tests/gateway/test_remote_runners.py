"""Runners outside of the cluster: their registration, and their calls over HTTP."""

import asyncio
import os
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Event

import pytest

from cueline import tool
from cueline.actors.runner import CallName, digest_of_order
from cueline.actors.runner_desk import RunnerRequest
from cueline.actors.runner_relay import RunnerRelay
from cueline.actors.tool_port import ToolOrder
from cueline.agents.preflight import agent_to_record
from cueline.client.document import document
from cueline.client.remote_runners import process_here
from cueline.clock import SystemClock, boot_seconds
from cueline.errors import BlueprintConflictError, LogUnavailableError, StaleOrderError
from cueline.events.fleet import FLEET_STREAM
from cueline.events.log_url import LogUrl
from cueline.gateway.remote_server import HttpServer
from cueline.runtime.runner_process import RunnerOffer, RunnerProcess
from cueline.testing.wait import await_answer, await_until
from tests.gateway.conftest import TOKEN, served
from tests.gateway.test_people import as_
from tests.scripted import scripted

FIRST, SECOND = "runner-000000000001", "runner-000000000002"
PROCESS = asdict(process_here())
SAID = '[[reply]]\ntext = "Done."\n'


@tool
def write_line(path: str, wait_for: str = "") -> str:
    """Write a line to a file, and wait until another file exists."""
    with Path(path).open("a") as file:
        file.write(f"{os.getpid()}\n")
    while wait_for and not Path(wait_for).exists():
        Event().wait(0.01)
    return "written"


def blueprint(name="crawler"):
    spec = agent_to_record(scripted(SAID, write_line)).model_copy(update={"name": name})
    return spec.model_dump(mode="json")


def body(runner=FIRST, name="box", **more):
    return {"name": name, "runner": runner, "process": PROCESS, **more}


@asynccontextmanager
async def relaying(log, **settings):
    relay = RunnerRelay(boot_seconds)
    async with served(log, relay=relay, **settings) as (runtime, http):
        yield runtime, http, relay


@pytest.fixture(autouse=True)
def token(monkeypatch):
    monkeypatch.setenv("CUELINE_TOKEN", TOKEN)


# 001-028 to 001-034, 001-037, D23
async def test_the_second_runner_of_a_blueprint_gets_the_conflict_and_leaves_no_trace(log):
    async with relaying(log) as (runtime, http, _):
        first = await http.post("/v1/runners", json=body(blueprints=[blueprint()]))
        offered = [blueprint("other"), blueprint()]
        second = await http.post("/v1/runners", json=body(SECOND, "two", blueprints=offered))
        rows = await runtime.runners()
        there = {each.incarnation for each in await runtime.log.board.all()}
        found = await runtime.blueprints()

    assert FIRST == first.json()["runner"]
    assert (409, "application/json") == (second.status_code, second.headers["content-type"])
    assert {
        "error": "agent_name_collision",
        "message": f"Agent 'crawler' is already registered by runner '{FIRST}'",
        "agent_name": "crawler",
        "existing_runner_id": FIRST,
    } == second.json()
    assert [(FIRST, "box", ("crawler",))] == [
        (each.incarnation, each.name, each.blueprints) for each in rows
    ]
    assert SECOND not in there
    assert ["crawler"] == [each.name for each in found]


async def test_the_client_of_a_runner_gets_the_conflict_as_its_error(log):
    async with relaying(log) as (_, http, _):
        await http.post("/v1/runners", json=body(blueprints=[blueprint()]))
        async with connected(http) as server:
            asked = body(SECOND, "two", blueprints=[blueprint()])
            with pytest.raises(BlueprintConflictError, match=FIRST):
                await server.call("register_runner", asked)


# 001-036, C30
async def test_a_registration_that_comes_twice_replaces_the_first(log):
    async with relaying(log) as (runtime, http, _):
        await http.post("/v1/runners", json=body(blueprints=[blueprint(), blueprint("old")]))
        again = await http.post("/v1/runners", json=body(blueprints=[blueprint()]))
        (row,) = await runtime.runners()

    assert (200, ("crawler",)) == (again.status_code, row.blueprints)


# D23
async def test_a_registered_runner_that_collides_keeps_what_it_had(log):
    async with relaying(log) as (runtime, http, _):
        await http.post("/v1/runners", json=body(blueprints=[blueprint("its")]))
        await http.post("/v1/runners", json=body(SECOND, "two", blueprints=[blueprint()]))
        wants = [blueprint("its"), blueprint()]
        refused = await http.post("/v1/runners", json=body(blueprints=wants))
        there = {each.incarnation for each in await runtime.log.board.all()}
        rows = {each.incarnation: each.blueprints for each in await runtime.runners()}

    assert 409 == refused.status_code
    assert {FIRST, SECOND} <= there
    assert {FIRST: ("its",), SECOND: ("crawler",)} == rows


@pytest.mark.parametrize(
    ("rights", "more", "status"),
    [
        ({"scopes": ["runner"]}, {}, 200),
        ({"scopes": ["send", "approve"]}, {}, 403),
        ({"scopes": ["runner"]}, {"blueprints": [blueprint()]}, 403),
        ({"scopes": ["admin"]}, {"blueprints": [blueprint()]}, 200),
        ({"scopes": ["runner"], "tenant": "acme"}, {}, 403),
        ({"scopes": ["runner"]}, {"name": "up"}, 422),
        ({"scopes": ["runner"]}, {"name": ""}, 422),
        ({"scopes": ["runner"]}, {"runner": "r1"}, 422),
        ({"scopes": ["runner"]}, {"process": {}}, 422),
        ({"scopes": ["runner"]}, {"resources": {"gpus": "many"}}, 422),
    ],
)
async def test_who_may_register_what(log, rights, more, status):
    async with relaying(log) as (runtime, http, _):
        async with await as_(runtime, http, **rights) as ada:
            told = await ada.post("/v1/runners", json=body() | more)
        rows = await runtime.runners()

    assert (status, int(status == 200)) == (told.status_code, len(rows))


async def test_without_a_token_nothing_is_registered(log):
    async with relaying(log) as (_, http, _):
        told = await http.post("/v1/runners", json=body(), headers={"Authorization": ""})

    assert 401 == told.status_code


async def test_a_runner_s_token_reads_nothing(log):
    paths = ("/v1/sessions", "/v1/audit", "/v1/runs", "/v1/events")
    async with (
        relaying(log) as (runtime, http, _),
        await as_(runtime, http, scopes=["runner"]) as ada,
    ):
        told = [await ada.get(path) for path in paths]

    assert [403] * 4 == [each.status_code for each in told]


async def test_a_server_without_up_says_what_a_runner_needs(log):
    async with served(log) as (_, http):
        told = await http.post("/v1/runners", json=body())

    assert 422 == told.status_code
    assert "cueline up --serve" in told.json()["detail"]


async def test_a_runner_of_somebody_else_is_out_of_reach(log):
    async with relaying(log) as (runtime, http, _):
        await http.post("/v1/runners", json=body())
        async with await as_(runtime, http, scopes=["runner"]) as lin:
            posts = {
                "requests": {"seconds": 0},
                "replies": {"relay": "", "replies": []},
                "heartbeat": {"process": PROCESS},
                "leave": {"done": True},
            }
            path = f"/v1/runners/{FIRST}"
            told = [await lin.post(f"{path}/{each}", json=it) for each, it in posts.items()]
            taken = await lin.post("/v1/runners", json=body())
        rows = await runtime.runners()

    assert [410] * 4 == [each.status_code for each in told]
    assert (409, 1) == (taken.status_code, len(rows))


@asynccontextmanager
async def connected(http):
    server = HttpServer(LogUrl.of(str(http.base_url)))
    server.use(SystemClock())
    try:
        yield server
    finally:
        await server.close()


class Started:
    """A runner of this process, whose way to the server can break."""

    def __init__(self, server):
        self.server = server
        self.said = []
        self.loses = set()
        """The requests whose answers are lost, once each."""
        self.is_cut_off = False
        self.process = RunnerProcess(self.ask, OFFER, self.said.append)

    async def ask(self, name, asked):
        if self.is_cut_off:
            raise LogUnavailableError("the server", "it is cut off")
        told = await self.server.call(name, document(asked))
        if name in self.loses:
            self.loses.remove(name)
            raise TimeoutError
        return told


OFFER = RunnerOffer(name="box", process=PROCESS, labels={}, resources={})


@asynccontextmanager
async def running(log, **settings):
    async with relaying(log, **settings) as (runtime, http, relay), connected(http) as server:
        started = Started(server)
        serving = asyncio.create_task(started.process.run())
        try:
            yield runtime, relay, started
        finally:
            started.process.leave()
            started.is_cut_off = True
            await asyncio.wait([serving], timeout=5)
            serving.cancel()
            await asyncio.wait([serving])


async def registered(runtime, but=()):
    async def found():
        rows = await runtime.runners()
        return next((each.incarnation for each in rows if each.incarnation not in but), None)

    return await await_answer(found)


def order(runner, arguments, effect="1.0", epoch=1):
    (spec,) = agent_to_record(scripted(SAID, write_line)).tools
    asked = ToolOrder(
        session="session-default/7f3a",
        effect=effect,
        attempt=1,
        key=f"session-default/7f3a/{effect}",
        runner=runner,
        epoch=epoch,
        tool=spec,
        arguments=arguments,
        workspace=None,
        digest="",
    )
    return type(asked)(**{**_fields(asked), "digest": digest_of_order(asked)})


def _fields(asked):
    return {name: getattr(asked, name) for name in asked.__struct_fields__}


async def call(relay, runner, number, verb, about):
    relay.take(runner, "host-1", [RunnerRequest(number, verb, about)])
    return asyncio.create_task(answer(relay, runner, number))


async def answer(relay, runner, number):
    received = []
    while True:
        replies = await relay.replies(runner, "host-1", received, 30)
        received = [each.number for each in replies]
        for reply in replies:
            if reply.number == number:
                return reply.answer


async def test_a_call_runs_on_the_runner_once_although_each_answer_is_lost_once(log, tmp_path):
    path = tmp_path / "lines"
    async with running(log) as (runtime, relay, started):
        runner = await registered(runtime)
        started.loses = {"runner_requests", "runner_replies", "runner_heartbeat"}
        told = await (await call(relay, runner, 1, "execute", order(runner, {"path": str(path)})))
        name = CallName("session-default/7f3a", "session-default/7f3a/1.0", 1, runner, 1)
        outcome = await (await call(relay, runner, 2, "outcome", name))

    assert set() == started.loses
    assert b"written" == told.value.content == outcome.value.content
    assert 1 == len(path.read_text().splitlines())


# The fences of a runner in the cluster.
async def test_a_former_owner_is_refused(log, tmp_path):
    arguments = {"path": str(tmp_path / "lines")}
    async with running(log) as (runtime, relay, _):
        runner = await registered(runtime)
        await (await call(relay, runner, 1, "execute", order(runner, arguments, epoch=2)))
        told = await (await call(relay, runner, 2, "execute", order(runner, arguments, epoch=1)))

    assert isinstance(told.error, StaleOrderError)


async def test_one_that_leaves_finishes_its_calls_and_is_removed(log, tmp_path):
    path, go = tmp_path / "lines", tmp_path / "go"
    async with running(log) as (runtime, relay, started):
        runner = await registered(runtime)
        asked = order(runner, {"path": str(path), "wait_for": str(go)})
        told = await call(relay, runner, 1, "execute", asked)
        await await_until(path.exists)
        started.process.leave()

        async def leaves():
            return True if (await runtime.runners())[0].name == "" else None

        await await_answer(leaves)
        go.touch()
        done = await told
        relay.take(runner, "host-1", [RunnerRequest(2, "forget", name_of(asked))])

        async def gone():
            return None if await runtime.runners() else True

        await await_answer(gone)
        facts = [fact async for _, fact in runtime.log.journal().read(FLEET_STREAM)]

    assert b"written" == done.value.content
    assert [True] == [each.graceful for each in facts if each.type == "RunnerRemoved"]


def name_of(asked):
    return CallName(asked.session, asked.key, asked.attempt, asked.runner, asked.epoch)


async def test_one_that_was_cut_off_for_too_long_ends_its_calls_and_comes_back_as_another(
    log, tmp_path
):
    path = tmp_path / "lines"
    async with running(log, removal_seconds=2.0) as (runtime, relay, started):
        runner = await registered(runtime)
        asked = order(runner, {"path": str(path), "wait_for": str(tmp_path / "never")})
        await call(relay, runner, 1, "execute", asked)
        await await_until(path.exists)
        pid = int(path.read_text())
        started.is_cut_off = True
        await await_until(lambda: any("was away" in each for each in started.said))
        await await_until(lambda: not Path(f"/proc/{pid}").exists())
        started.is_cut_off = False
        another = await registered(runtime, but={runner})

    assert another != runner
