"""A session that another program starts is a part of the trace of that program."""

import json

import pytest
from opentelemetry.sdk.trace import TracerProvider
from typer.testing import CliRunner

import cueline
from cueline.cli import app
from cueline.events.trace import ids_in, valid_traceparent
from cueline.telemetry import conventions
from tests.gateway.conftest import TOKEN, served
from tests.gateway.test_remote_runners import blueprint, body, relaying
from tests.mcp_client.conftest import PROBE
from tests.scripted import HELLO, scripted
from tests.telemetry.conftest import LEAD
from tests.telemetry.receiver import attributes

CALLER = f"00-{'ab' * 16}-{'cd' * 8}-01"


def of_caller(spans, name):
    """Whether all spans are in the caller's trace, the one with that name below its span."""
    (first,) = [each for each in spans if each.name == name]
    assert {"ab" * 16} == {each.trace_id.hex() for each in spans}
    return "cd" * 8 == first.parent_span_id.hex()


async def test_a_program_starts_a_tree_below_its_current_span(runtime, send, receiver):
    with TracerProvider().get_tracer("mine").start_as_current_span("request") as span:
        await (await runtime.start(LEAD, "Go")).result()
    await send(receiver)

    (first,) = receiver.named("invoke_agent lead")
    assert {span.context.trace_id.to_bytes(16)} == {each.trace_id for each in receiver.spans}
    assert span.context.span_id.to_bytes(8) == first.parent_span_id


def test_a_command_starts_a_session_below_the_span_in_the_environment(
    tmp_path, monkeypatch, receiver
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACEPARENT", CALLER)
    (tmp_path / "script.toml").write_text('[[reply]]\ntext = "Good evening."\n')
    (tmp_path / "agent.toml").write_text(
        'name = "clerk"\nprovider = "scripted"\nmodel = "script.toml"\n'
    )

    for words in (
        ["run", "Go", "--agent", "agent.toml", "--inline", "--log", "log.db"],
        ["telemetry", "export", "--to", receiver.url, "--log", "log.db", "--json"],
    ):
        done = CliRunner().invoke(app, words)
        assert 0 == done.exit_code, done.output

    assert 2 == json.loads(done.stdout)["spans"]
    assert of_caller(receiver.spans, "invoke_agent clerk")


async def test_a_request_over_http_starts_a_run_below_the_span_of_its_header(log):
    runner = body(blueprints=[blueprint()])
    async with relaying(log) as (runtime, http, _):
        await http.post("/v1/runners", json=runner)
        for header in (CALLER, "nonsense"):
            asked = {"blueprint": "crawler", "goal": "Go"}
            said = await http.post("/v1/runs", json=asked, headers={"traceparent": header})
            assert 200 == said.status_code, said.text
            inbox = runtime.log.journal().read(f"inbox-default/{said.json()['session']}")
            (started,) = [fact async for _, fact in inbox]
            assert valid_traceparent(header) == started.traceparent


async def test_a_client_of_a_server_names_its_current_span(log, monkeypatch):
    monkeypatch.setenv("CUELINE_TOKEN", TOKEN)
    async with (
        served(log) as (runtime, http),
        cueline.connect(str(http.base_url)) as client,
    ):
        with TracerProvider().get_tracer("mine").start_as_current_span("request") as span:
            session = await client.start(HELLO, "Go")
        inbox = runtime.log.journal().read(f"inbox-default/{session.id}")
        (started,) = [fact async for _, fact in inbox]

    about = span.get_span_context()
    assert f"00-{about.trace_id:032x}-{about.span_id:016x}-01" == started.traceparent


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        f"00-{'0' * 32}-{'cd' * 8}-01",
        f"00-{'ab' * 16}-{'0' * 16}-01",
        f"ff-{'ab' * 16}-{'cd' * 8}-01",
        f"00-{'AB' * 16}-{'cd' * 8}-01",
        f"{CALLER}\n",
    ],
)
def test_an_invalid_traceparent_counts_as_none(text):
    assert "" == valid_traceparent(text)


def test_a_traceparent_of_a_later_version_counts_by_its_ids():
    later = f"01{CALLER[2:]}-{'more' * 1000}"

    assert ("ab" * 16, "cd" * 8) == ids_in(later)
    assert f"01{CALLER[2:]}" == valid_traceparent(later)


async def test_the_call_of_an_mcp_server_names_its_span(runtime, send, receiver):
    script = 'reply = [{ calls = [{ name = "probe__trace", arguments = {} }] }, { text = "Done." }]'
    agent = scripted(script, mcp={"probe": PROBE}, policy=cueline.Policy(auto_approve=True))
    await (await runtime.start(agent, "Go")).result()

    await send(receiver, content=True)

    (call,) = receiver.named("execute_tool probe__trace")
    expected = f"00-{call.trace_id.hex()}-{call.span_id.hex()}-01"
    assert expected == attributes(call)[conventions.RESULT]
