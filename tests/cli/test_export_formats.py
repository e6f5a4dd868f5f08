"""A session in the forms of other tools: one flat document, and CloudEvents."""

import json
import os
from dataclasses import replace
from decimal import Decimal

from cloudevents.core.formats.json import JSONFormat

from cueline.client.export import CallRow
from cueline.client.export_formats import flat_of
from cueline.client.rows import STATUSES
from cueline.events.session import SessionFailed
from tests.cli.test_damage import FLIP
from tests.cli.test_exporting import exported_whole
from tests.session_example import agent, saying, started


def test_a_flat_document_has_all_that_is_known(finished):
    """000-031, 000-032, 000-036 to 000-040, 000-043 to 000-047, C39."""
    file = finished.folder / "sessions" / "one.json"
    done = finished("export", "one", "--format", "flat", "--to", str(file))

    flat = json.loads(file.read_text())
    _, assistant, tool, answer = flat["messages"]
    (call,) = flat["toolCallHistory"]
    assert (0, "") == (done.exit_code, done.stdout)
    assert ("one", "clerk", "scripted", "completed") == tuple(
        flat[name] for name in ("id", "role", "provider", "status")
    )
    assert flat["started"] < flat["lastUpdated"]
    assert ["user", "assistant", "tool", "assistant"] == [m["role"] for m in flat["messages"]]
    assert ("I will look.", "There is nothing.") == (assistant["content"], answer["content"])
    assert [(tool["toolCallId"], "list_files")] == [
        (each["id"], each["name"]) for each in assistant["toolCalls"]
    ]
    assert ("list_files", "returned", tool["content"]) == (
        call["tool"],
        call["status"],
        call["result"],
    )
    assert ({"input": 250, "output": 30}, 2) == (flat["tokensUsed"], flat["turnCount"])
    assert {"version": len(finished.types("one")), "turn": 2} == flat["position"]
    assert not flat.keys() & {"taskId", "chainId", "parentSessionId", "maxCost", "error"}


async def test_a_flat_document_has_the_arguments_that_a_person_left(tmp_path):
    whole = await exported_whole(tmp_path, started(), saying())
    asked = {"effect": "1.0", "tool": "find", "arguments": {"q": "a"}}
    call = CallRow(**asked, edit={}, requested_at=whole.started_at)

    (flat,) = flat_of(replace(whole, tool_calls=(call,)))["toolCallHistory"]

    assert {} == flat["arguments"]


async def test_a_flat_document_says_what_it_belongs_to_and_how_it_failed(tmp_path):
    # 000-041, 000-042, 000-048, 000-049
    spec = agent(max_cost=Decimal(2))
    first = started(spec).model_copy(
        update={"labels": {"task": "7", "chain": "3"}, "parent": "session-default/mother"}
    )
    failed = SessionFailed(kind="server", message="It is down.", recoverable=True)

    flat = flat_of(await exported_whole(tmp_path, first, saying(), failed))

    assert ("7", "3", "mother") == (flat["taskId"], flat["chainId"], flat["parentSessionId"])
    assert ("failed", 2.0) == (flat["status"], flat["maxCost"])
    assert flat["error"]["recoverable"]
    assert "It is down." in flat["error"]["message"]


async def test_a_flat_document_knows_four_statuses(tmp_path):  # 000-040, C35
    whole = await exported_whole(tmp_path, started(), saying())
    known = {name: flat_of(replace(whole, status=name))["status"] for name in STATUSES}

    assert {"running", "paused", "completed", "failed"} == {*known.values()}
    assert ("running", "paused", "failed") == tuple(
        known[name] for name in ("stopping", "waiting", "stopped")
    )


def test_a_file_that_cannot_be_written_keeps_what_it_had(finished):  # C38
    (finished.folder / "kept.json").write_text("former")
    (finished.folder / "kept").mkdir()
    assert 2 == finished("export", "one", "--to", "").exit_code
    refused = finished("export", "one", "--to", "kept")
    done = finished("export", "one", "--to", "kept.json")

    assert (2, 0) == (refused.exit_code, done.exit_code)
    assert "error: kept: it cannot be written: Is a directory" in refused.stderr
    assert "one" == json.loads((finished.folder / "kept.json").read_text())["id"]
    assert [] == list(finished.folder.glob(".kept*"))


def test_a_pipe_or_a_device_is_not_replaced_by_a_file(finished):
    os.mkfifo(finished.folder / "pipe")

    refused = finished("export", "one", "--to", "pipe")

    assert (2, True) == (refused.exit_code, (finished.folder / "pipe").is_fifo())
    assert "error: pipe: it is no regular file; name a file" in refused.stderr


def test_each_event_is_a_cloud_event_by_the_kit_of_its_makers(finished):
    lines = finished("export", "one", "--format", "cloudevents").stdout.splitlines()
    facts = finished("export", "one", "--format", "events").stdout.splitlines()

    events = [JSONFormat().read(None, line) for line in lines]
    wanted = [json.loads(line) for line in facts]
    assert [f"cueline.{kind}" for kind in finished.types("one")] == [e.get_type() for e in events]
    assert [each["fact"] for each in wanted] == [e.get_data() for e in events]
    assert [str(each["position"]) for each in wanted] == [e.get_id() for e in events]
    assert {"session-default/one"} == {e.get_subject() for e in events}
    assert 1 == len({e.get_source() for e in events})
    assert [each["recorded_at"] for each in wanted] == [json.loads(line)["time"] for line in lines]


def test_the_events_before_damage_are_cloud_events(finished):
    finished.change(FLIP)
    done = finished("export", "one", "--format", "cloudevents")

    assert 1 == done.exit_code
    kinds = [json.loads(line)["type"] for line in done.stdout.splitlines()]
    assert [f"cueline.{kind}" for kind in finished.types("one")][:8] == kinds
