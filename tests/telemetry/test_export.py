"""Spans of sessions, as a back-end of OpenTelemetry gets them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

from cueline.client.telemetry import cursor_of, exporting, span_export
from cueline.config.settings import TelemetrySettings
from cueline.errors import ConfigError, RejectedError, TelemetryError
from cueline.telemetry import conventions
from cueline.telemetry.export import GATHER_SECONDS, RETRY_SECONDS
from cueline.testing.clock import FakeClock
from cueline.testing.wait import await_until
from tests.scripted import HELLO
from tests.telemetry.conftest import LEAD
from tests.telemetry.receiver import attributes

WORK = "invoke_agent scripted"


async def test_a_tree_of_sessions_is_one_trace(runtime, send, receiver):
    await (await runtime.start(LEAD, "Go", id="one")).result()

    receipt = await send(receiver)

    by_id = {each.span_id: each for each in receiver.spans}
    below = [
        (each.name, by_id[each.parent_span_id].name if each.parent_span_id else None)
        for each in receiver.spans
    ]
    assert len(below) == receipt.spans == len(receiver.sent)
    assert 1 == len({each.trace_id for each in receiver.spans})
    assert sorted(below, key=str) == [
        ("chat script", "invoke_agent clerk"),
        ("chat script", "invoke_agent clerk"),
        ("chat script", "invoke_agent lead"),
        ("chat script", "invoke_agent lead"),
        ("execute_tool clerk", "invoke_agent lead"),
        ("execute_tool look", "invoke_agent clerk"),
        ("execute_tool look", "invoke_agent clerk"),
        ("invoke_agent clerk", "execute_tool clerk"),
        ("invoke_agent lead", None),
    ]
    for each in receiver.spans:
        above = by_id.get(each.parent_span_id, each)
        assert above.start_time_unix_nano <= each.start_time_unix_nano
        assert each.start_time_unix_nano <= each.end_time_unix_nano <= above.end_time_unix_nano


async def test_the_tokens_of_two_back_ends_are_those_of_the_ledger(runtime, send, receiver, other):
    await (await runtime.start(LEAD, "Go")).result()
    await send(receiver)
    await (await runtime.start(LEAD, "Go")).result()

    # Replayed, and filled from the beginning: neither has a span twice.
    await send(receiver)
    again = await send(receiver)
    await send(other)

    spent = (await runtime.costs()).total
    assert 0 == again.spans
    assert len(receiver.sent) == len(receiver.spans) == len(other.sent)
    for each in (receiver, other):
        assert spent.sent_tokens == each.total(conventions.INPUT_TOKENS) == 2 * 264
        assert spent.output_tokens == each.total(conventions.OUTPUT_TOKENS) == 2 * 37
        assert spent.cached_tokens == each.total(conventions.CACHE_READ) == 2 * 30
    assert {each.SerializeToString() for each in receiver.spans} == {
        each.SerializeToString() for each in other.spans
    }


async def test_spans_have_what_was_said_only_if_somebody_asks(runtime, send, receiver, other):
    await (await runtime.start(LEAD, "Please")).result()

    await send(receiver)
    await send(other, content=True)

    said = b"".join(receiver.bodies)
    assert [] == [text for text in (b"Please", b"Seen.", b"secret place") if text in said]
    looked, failed = sorted(other.named("execute_tool look"), key=lambda each: each.status.code)
    assert ({"path": "a secret place"}, "contents of a secret place") == (
        json.loads(attributes(looked)[conventions.ARGUMENTS]),
        attributes(looked)[conventions.RESULT],
    )
    assert "tool_error" == attributes(failed)[conventions.ERROR_TYPE] == failed.status.message
    (work,) = other.named("invoke_agent lead")
    asked = json.loads(attributes(work)[conventions.INPUT_MESSAGES])
    assert [{"role": "user", "parts": [{"type": "text", "content": "Please"}]}] == asked


async def test_what_a_killed_export_sent_is_sent_again_with_the_same_ids(
    runtime, log, send, receiver
):
    await (await runtime.start(LEAD, "Go")).result()
    words = ["telemetry", "export", "--to", receiver.url, "--log", str(log)]
    exporting = await asyncio.create_subprocess_exec(sys.executable, "-m", "cueline.cli", *words)
    # It has sent the spans, and has not moved its cursor.
    receiver.before_answer = lambda: os.kill(exporting.pid, signal.SIGKILL)
    assert -signal.SIGKILL == await exporting.wait()
    receiver.before_answer = lambda: None
    once = [each.SerializeToString() for each in receiver.sent]

    await send(receiver)

    assert once
    assert once * 2 == [each.SerializeToString() for each in receiver.sent]
    assert (await runtime.costs()).total.sent_tokens == receiver.total(conventions.INPUT_TOKENS)


async def test_the_cursor_stays_where_it_is_until_the_back_end_has_the_spans(
    runtime, send, receiver
):
    await (await runtime.start(HELLO, "Go")).result()
    receiver.statuses = [400]

    with pytest.raises(TelemetryError, match=f"{receiver.url}: .*400"):
        await send(receiver)
    receipt = await send(receiver)

    assert 2 == receipt.spans == len(receiver.sent)


async def test_no_export_begins_behind_the_end_of_the_log(runtime, send, receiver):
    await (await runtime.start(HELLO, "Go")).result()
    last = await runtime.log.store.last_position()

    with pytest.raises(RejectedError, match=f"the log ends at event {last}: the later events"):
        await send(receiver, start=last + 1)
    receipt = await send(receiver)

    assert 2 == receipt.spans


async def test_a_back_end_without_room_is_told_apart_from_one_that_refuses(
    runtime, send, receiver, monkeypatch
):
    await (await runtime.start(HELLO, "Go")).result()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")
    receiver.statuses = [503] * 9

    with pytest.raises(TelemetryError, match="cannot be reached, or is too busy; see that it runs"):
        await send(receiver)


async def test_an_export_goes_on_in_the_middle_of_a_session(runtime, send, receiver, other):
    session = await runtime.start(HELLO, "Go", open=True)
    await session.result()
    await send(receiver)
    await send(other, start=await runtime.log.store.last_position())
    await session.send("And now?")
    await session.result()
    await send(receiver)
    await send(other)

    assert [2, 2] == [len(receiver.named(f"{name}")) for name in ("chat script", WORK)]
    assert {each.SerializeToString() for each in other.spans} == {
        each.SerializeToString() for each in receiver.spans[2:]
    }


async def test_of_two_exports_by_one_cursor_one_stops(runtime, receiver):
    first, second = (span_export(runtime.log, receiver.url) for _ in range(2))
    await first.begin()
    await second.begin()
    await (await runtime.start(HELLO, "Go")).result()

    await first.catch_up()

    with pytest.raises(RejectedError, match="another process exports"):
        await second.catch_up()
    assert len(receiver.sent) == 2 * len(receiver.spans)


async def test_a_fork_is_a_trace_with_a_link_to_the_session_it_continues(runtime, send, receiver):
    await (await runtime.start(HELLO, "Go", id="one", open=True)).result()
    idle = (await runtime.log.store.head("session-default/one")).version
    await (await runtime.fork("one", at=idle, goal="Again", id="two")).result()
    await send(receiver)

    forked, first = sorted(receiver.named(WORK), key=lambda each: not each.links)
    (link,) = forked.links
    assert (first.trace_id, first.span_id) == (link.trace_id, link.span_id)
    assert first.trace_id != forked.trace_id


def test_the_names_are_those_of_the_conventions():
    theirs = {each for each in vars(gen_ai_attributes).values() if isinstance(each, str)}
    ours = {each for each in vars(conventions).values() if str(each).startswith("gen_ai.")}

    assert ours
    assert set() == ours - theirs


async def test_a_server_with_an_endpoint_exports_by_itself(runtime, receiver):
    clock, told = FakeClock(), []
    log = replace(runtime.log, clock=clock)
    receiver.statuses = [400]
    settings = TelemetrySettings(endpoint=receiver.url)
    await (await runtime.start(HELLO, "Go")).result()

    async with exporting(log, settings, lambda *trouble: told.append(trouble)):
        await await_until(lambda: clock.next_at)
        await clock.advance(RETRY_SECONDS + 1)
        await await_until(lambda: len(receiver.sent) == 2)
        await (await runtime.start(HELLO, "Go")).result()
        await await_until(lambda: clock.next_at)
        await clock.advance(GATHER_SECONDS)
        await await_until(lambda: len(receiver.sent) == 4)

    ((what, error),) = told
    assert ("exporting spans", True) == (what, isinstance(error, TelemetryError))


async def test_an_export_that_is_ended_does_not_try_on(runtime, receiver, log):
    busy = asyncio.Event()
    loop = asyncio.get_running_loop()
    receiver.before_answer = lambda: loop.call_soon_threadsafe(busy.set)
    receiver.statuses = [503] * 9
    await (await runtime.start(HELLO, "Go")).result()

    async with exporting(runtime.log, TelemetrySettings(endpoint=receiver.url), print):
        await busy.wait()
    await loop.shutdown_default_executor()

    assert 8 <= len(receiver.statuses)


@pytest.mark.parametrize("url", ["http://ada:key@host/v1", "localhost:4318", "http://"])
async def test_a_back_end_needs_a_url_without_a_password(runtime, url):
    with pytest.raises(ConfigError) as refused:
        span_export(runtime.log, url)

    assert "key" not in str(refused.value)
    assert "host-v1" == cursor_of("https://host/v1?key=1")


async def test_without_the_extra_the_error_names_it(runtime, monkeypatch):
    monkeypatch.delitem(sys.modules, "cueline.telemetry.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)

    with pytest.raises(ConfigError, match=r"opentelemetry.*pip install 'cueline\[otel\]'"):
        span_export(runtime.log, "http://localhost:4318/v1/traces")


def test_nothing_of_opentelemetry_is_loaded_before_an_export():
    loads = "import sys, cueline.cli.telemetry, cueline.cli.serve, cueline.client.telemetry"
    said = f"{loads}; print([m for m in sys.modules if m.startswith('opentelemetry')])"

    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)

    assert "[]" == done.stdout.strip()


async def test_the_standard_variables_name_the_service(runtime, send, receiver, other, monkeypatch):
    await (await runtime.start(HELLO, "Go")).result()

    await send(receiver)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "notes")
    await send(other)

    assert [{"cueline"}, {"notes"}] == [each.services for each in (receiver, other)]
