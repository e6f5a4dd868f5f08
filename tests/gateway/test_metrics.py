"""The metrics for Prometheus, and the dashboard that shows them."""

import json
import re
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pytest

from cueline.actors.fleet_log import FleetLog
from cueline.actors.presence import presence_of
from cueline.actors.sandbox_life import sandbox_of
from cueline.actors.sandbox_slots import SLOTS_STREAM
from cueline.deciders.fleet import TakeFleet
from cueline.events.breaker import BreakerHeld, BreakerOpened
from cueline.events.fleet import FleetTaken, HostJoined, WorkerGroup
from cueline.events.journal import FactWrite
from cueline.events.sandbox import (
    SandboxAsked,
    SandboxDone,
    SandboxSpec,
    SlotAsked,
    SlotGranted,
)
from cueline.events.store import ANY
from cueline.gateway.metrics import HELP, MEDIA_TYPE
from cueline.testing.clock import NOON
from tests.gateway.conftest import served
from tests.gateway.test_api import PAYS, pay
from tests.gateway.test_people import as_
from tests.scripted import HELLO, scripted

FAILS = '[[reply]]\nfail = { kind = "invalid_request" }\n'
ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy/grafana/cueline.json"
GUIDE = ROOT / "docs/guides/http.md"
_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
_SAMPLE = re.compile(rf"({_NAME})(?:{{({_LABEL}(?:,{_LABEL})*)}})? (-?[0-9.]+(?:[eE][-+]?\d+)?)")
_UNESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def parsed(text):
    """Return the samples of a text in the format 0.0.4, by name and labels, and all types."""
    assert text.endswith("\n")
    samples, types, helped = {}, {}, []
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# HELP "):
            name, about = re.fullmatch(rf"# HELP ({_NAME}) ([^\\\n]+)", line).groups()
            helped.append(name)
            assert about
        elif line.startswith("# TYPE "):
            name, kind = re.fullmatch(rf"# TYPE ({_NAME}) (counter|gauge)", line).groups()
            assert name not in types
            assert helped[-1] == name
            types[name] = kind
        else:
            name, labels, *_, value = _SAMPLE.fullmatch(line).groups()
            assert name == [*types][-1], "the samples of a metric follow its type"
            pairs = [
                (key, re.sub(r"\\.", lambda found: _UNESCAPED[found[0]], each))
                for key, each in re.findall(_LABEL, labels or "")
            ]
            assert len(pairs) == len(dict(pairs))
            key = (name, *sorted(pairs))
            assert key not in samples
            samples[key] = Decimal(value)
    assert helped == list(types)
    return samples, types


async def scraped(http):
    """Return the samples of the server."""
    said = await http.get("/metrics")
    assert 200 == said.status_code, said.text
    assert MEDIA_TYPE == said.headers["content-type"]
    return parsed(said.text)[0]


async def record(runtime, stream, *facts):
    write = FactWrite(stream=stream, steps=[facts], expected_version=ANY, actor="system:test")
    await runtime.log.journal().append([write], key=uuid4().hex)


def counted(samples):
    """Return the samples other than 0, and without the size of the log."""
    return {
        key: value
        for key, value in samples.items()
        if value and key != ("cueline_log_events_total",)
    }


async def test_each_metric_has_a_help_a_type_and_a_name_with_its_unit(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(HELLO, "Go")).result()
        samples, types = parsed((await http.get("/metrics")).text)

    assert {*HELP} == {*types}
    assert {name for name in types if name.endswith("_total")} == {
        name for name, kind in types.items() if kind == "counter"
    }
    labels = {label for _, *pairs in samples for label, _ in pairs}
    assert {"driven", "model", "kind", "outcome", "question", "status", "state"} == labels


async def test_usage_is_that_of_the_costs(log):
    async with served(log) as (runtime, http):
        for name in ("m1", "m2", "m1"):
            agent = scripted('reply = [{ text = "Good evening." }]', model=name)
            await (await runtime.start(agent, "Go")).result()
        samples = await scraped(http)
        found = await runtime.costs("model")
        position = await runtime.log.store.last_position()

    assert 2 == len(found.rows)
    for row in found.rows:
        model = ("model", row.name)
        assert row.calls == samples["cueline_model_calls_total", model]
        assert row.unpriced == samples["cueline_unpriced_model_calls_total", model]
        assert row.cost == samples["cueline_cost_usd_total", model]
        kinds = ("input", "cache_read", "cache_write")
        sent = [samples["cueline_tokens_total", ("kind", kind), model] for kind in kinds]
        assert [row.cached_tokens, row.written_tokens] == sent[1:]
        assert row.sent_tokens == sum(sent) > 0
        assert row.output_tokens == samples["cueline_tokens_total", ("kind", "output"), model] > 0
    assert 3 == found.total.sessions == samples["cueline_sessions_with_usage_total",]
    assert position == samples["cueline_log_events_total",]
    assert 0 == samples["cueline_log_damaged",]


async def test_a_question_is_counted_until_it_is_answered(log):
    deadline = ("cueline_next_question_deadline_timestamp_seconds",)
    asked = ("cueline_questions", ("question", "may_it_run"))
    async with served(log) as (runtime, http):
        await (await runtime.start(scripted(PAYS, pay), "Go", id="one")).result()
        before = await scraped(http)
        (row,) = await runtime.pending()
        await runtime.deny(row.id)
        await runtime.session("one").result()
        after = await scraped(http)

    assert (1, 0) == (before[asked], after[asked])
    assert row.deadline_at.timestamp() == float(before[deadline])
    assert deadline not in after


async def test_sessions_and_calls_are_counted_by_how_they_ended(log):
    ended, calls = "cueline_ended_sessions_total", "cueline_tool_calls_total"
    async with served(log) as (runtime, http):
        for name in ("one", "two"):
            await (await runtime.start(scripted(PAYS, pay), "Go", id=name)).result()
        for row, verdict in zip(
            await runtime.pending(), (runtime.approve, runtime.deny), strict=True
        ):
            await verdict(row.id)
            await runtime.session(row.session).result()
        await (await runtime.start(scripted(FAILS), "Go")).result()
        await (await runtime.start(scripted(PAYS, pay), "Go", id="three")).result()
        found = await scraped(http)

    def of(name, label):
        return {key[1][1]: int(each) for key, each in found.items() if key[0] == name and each}

    assert {"completed": 2, "failed": 1} == of(ended, "outcome")
    assert {"returned": 1, "skipped": 1} == of(calls, "outcome")
    assert {"completed": 2, "failed": 1, "waiting": 1} == of("cueline_sessions", "status")
    assert 0 < found["cueline_oldest_question_seconds",] < 60


async def test_the_fleet_is_counted_by_kind(log):
    async with served(log) as (runtime, http):
        here = presence_of("host")
        await runtime.log.board.beat(here)
        place = {"node": "n1", "machine": "m1", "pid": 42, "epoch": 1, "at": NOON}
        group = WorkerGroup(kind="host")
        await FleetLog(runtime.log.journal()).record(
            [
                TakeFleet(FleetTaken(epoch=1, up="up-1", at=NOON)),
                HostJoined(incarnation=here.incarnation, group=group, **place),
            ],
            "system:dispatcher",
        )
        await runtime.scale(hosts=2, runners=(1, 4))
        found = counted(await scraped(http))

    assert {
        ("cueline_workers", ("kind", "host"), ("status", "online")): 1,
        ("cueline_workers_wanted", ("kind", "host")): 2,
        ("cueline_workers_wanted", ("kind", "runner")): 1,
    } == found


async def test_sandboxes_are_counted_by_state(log):
    spec, one = SandboxSpec(backend="container"), "session-default/one"
    async with served(log) as (runtime, http):
        now = runtime.log.clock.now()
        begun = SandboxAsked(act="create", session=one, spec=spec, at=now)
        done = SandboxDone(act="create", place="c0ffee", at=now)
        asks = [
            SlotAsked(session=each, spec=spec, number=1, slots=1, at=now - timedelta(seconds=60))
            for each in (one, "session-default/two")
        ]
        await record(runtime, SLOTS_STREAM, *asks, SlotGranted(session=one))
        await record(runtime, sandbox_of(one, 1), begun, done)
        found = counted(await scraped(http))

    assert 60 <= found.pop(("cueline_sandbox_queue_oldest_seconds",)) < 120
    assert {
        ("cueline_sandboxes", ("state", "started")): 1,
        ("cueline_sandbox_slots",): 1,
        ("cueline_sandbox_slots_used",): 1,
        ("cueline_sandbox_queue_sessions",): 1,
    } == found


async def test_breakers_are_counted_by_state(log):
    async with served(log) as (runtime, http):
        now = runtime.log.clock.now()
        later = now + timedelta(hours=1)
        await record(
            runtime, "breaker-default/a", BreakerOpened(at=now, until=later, kind="timeout")
        )
        await record(
            runtime, "breaker-default/b", BreakerHeld(at=now, until=later, kind="overloaded")
        )
        found = counted(await scraped(http))

    assert {("cueline_breakers", ("state", each)): 1 for each in ("open", "held")} == found


async def test_counters_are_the_same_in_another_process_with_new_read_models(log):
    async with served(log) as (runtime, http):
        await (await runtime.start(HELLO, "Go")).result()
        before = await scraped(http)
    read_models = [*log.parent.glob("*views*")]
    for each in read_models:
        each.unlink()
    async with served(log) as (_, http):
        after = await scraped(http)

    assert read_models
    assert before == after


async def test_only_who_may_read_the_whole_log_gets_metrics(log):
    async with served(log) as (runtime, http):
        said = [(await http.get("/metrics", headers={"Authorization": ""})).status_code]
        for rights in (
            {"scopes": ["read"]},
            {"scopes": ["read"], "tenant": "acme"},
            {"scopes": ["runner"]},
        ):
            async with await as_(runtime, http, **rights) as asked:
                answer = await asked.get("/metrics")
                said.append(answer.status_code)
                assert ("cueline_" in answer.text) == (answer.status_code == 200)

    assert [401, 200, 403, 403] == said


async def test_a_label_may_have_any_text(log):
    name = 'a"b\\n{c},\n'
    async with served(log) as (runtime, http):
        agent = scripted('reply = [{ text = "Good evening." }]', model=name)
        await (await runtime.start(agent, "Go")).result()
        samples = await scraped(http)

    assert 1 == samples["cueline_model_calls_total", ("model", f"scripted/{name}")]


def test_the_guide_describes_each_metric():
    _, _, section = GUIDE.read_text().partition("## Metrics\n")

    assert {*HELP} == {*re.findall(r"cueline_\w+", section)}


def expressions(part):
    """Yield the queries in a part of the dashboard."""
    if isinstance(part, dict):
        yield from (part["expr"],) if "expr" in part else ()
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from expressions(each)


def test_the_dashboard_shows_each_metric_and_no_other():
    queries = list(expressions(json.loads(DASHBOARD.read_text())))

    assert {*HELP} == {name for each in queries for name in re.findall(r"cueline_\w+", each)}


@pytest.mark.parametrize("name", [name for name in HELP if name.endswith("_total")])
def test_the_dashboard_shows_a_counter_by_its_increase(name):
    shown = [each for each in expressions(json.loads(DASHBOARD.read_text())) if name in each]

    assert all(re.search(rf"(rate|increase)\({name}\b", each) for each in shown)
