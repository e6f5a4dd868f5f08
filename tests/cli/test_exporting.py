"""What an export says of each call."""

from decimal import Decimal

import pytest

from cueline.client.export import export_of
from cueline.client.history import read_history
from cueline.deciders.prompt import FORKED_AWAY
from cueline.events.codes import Cause
from cueline.events.journal import FactWrite
from cueline.events.message import Cost
from cueline.events.session import SessionFailed, ToolInDoubt, ToolReconciled
from cueline.events.store import ANY
from tests.scripted import memory_log
from tests.session_example import NOW, agent, broken, returned, running, saying, started

IN_DOUBT = ToolInDoubt(
    effect="1.0", attempt=1, cause=Cause(code="tool_failed", failure="lost", message="exit 137")
)
UNKNOWN = ToolReconciled(effect="1.0", outcome="unknown", by="tool")
NOT_RUN = ToolReconciled(effect="1.0", outcome="did_not_happen", by="ada")
TOLD = ToolReconciled(effect="1.0", outcome="unknown", by="policy", output="Nobody knows.")
RETRY = broken("1.0", "network").model_copy(update={"retry_at": NOW})


async def exported(folder, *facts):
    """Return what is exported of a call of which *facts* are recorded."""
    whole = await exported_whole(folder, started(), saying("shout"), running("1.0"), *facts)
    (call,) = whole.tool_calls
    return call


async def exported_whole(folder, *facts):
    """Return what is exported of a session of which *facts* are recorded."""
    log = memory_log(folder)
    write = FactWrite(stream="session-default/one", steps=[facts], expected_version=ANY)
    await log.journal().append([write], key="1")
    return export_of(await read_history(log, write.stream))


# 000-037, 000-038, 000-041, 000-042, 000-046, 000-048, 000-049
async def test_an_export_says_what_a_session_is_part_of_what_it_may_use_and_how_it_ended(tmp_path):
    setup = agent(max_cost=Decimal(2))
    sources = {"limits.max_cost": "flag --max-cost"}
    first = started(setup.model_copy(update={"limit_sources": sources})).model_copy(
        update={"labels": {"task": "7", "chain": "3"}, "parent": "session-default/mother"}
    )
    paid = saying().model_copy(update={"cost": Cost(usd=Decimal("0.25"), prices="of the agent")})
    failed = SessionFailed(kind="server", message="It is down.", recoverable=True)

    told = await exported_whole(tmp_path, first, paid, failed)

    assert ("example", "scripted", "m") == (told.agent, told.provider, told.model)
    assert ({"task": "7", "chain": "3"}, "mother") == (told.labels, told.parent)
    assert ("2", {"max_cost": "flag --max-cost"}) == (
        told.limits["max_cost"],
        told.limits["sources"],
    )
    assert Decimal("0.25") == told.metrics.cost
    assert ("failed", "It is down.", True) == (
        told.status,
        told.error.message,
        told.error.recoverable,
    )


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ([IN_DOUBT], "in doubt"),
        ([IN_DOUBT, UNKNOWN], "in doubt"),
        ([IN_DOUBT, NOT_RUN], "requested"),
        ([IN_DOUBT, TOLD], "reconciled"),
        ([RETRY], "retry"),
    ],
)
async def test_a_call_stands_as_its_facts_say(tmp_path, facts, status):
    assert status == (await exported(tmp_path, *facts)).status


async def test_what_is_said_of_a_call_is_of_its_last_status(tmp_path):
    call = await exported(tmp_path, RETRY, running("1.0", attempt=2), returned("1.0", attempt=2))

    assert ("returned", "done", 2) == (call.status, call.output, call.attempts)
    assert (None, None) == (call.kind, call.message)


def test_who_stopped_a_session_and_why_is_exported_as_it_is_listed(asking):
    asking("stop", "one", "--reason", "Enough.")
    asking("resume", "one", "--inline")

    error = asking.json("export", "one")["error"]

    (listed,) = asking.json("list")
    assert (listed["error_kind"], listed["error"]) == (error["kind"], error["message"])
    assert ("asked", "Enough.", "Enough.") == (error["kind"], error["message"], error["text"])


def test_an_edited_call_is_exported_as_it_was_asked_for_and_as_it_ran(asking):
    asking("approve", "one.1.0.1", "--edit", "path=other.txt")
    asking("resume", "one", "--inline")

    (call,) = asking.json("export", "one")["tool_calls"]
    assert {"path": "list.txt"} == call["arguments"]
    assert {"path": "other.txt"} == call["edit"]


def test_a_call_that_was_open_at_a_fork_was_not_run_there(asking):
    reply = asking.types("one").index("ModelReplied") + 1

    asking("fork", "one", "--at", str(reply), "--id", "two", "--inline")

    (call,) = asking.json("export", "two")["tool_calls"]
    assert ("skipped", FORKED_AWAY) == (call["status"], call["message"])
    (call,) = asking.json("export", "one")["tool_calls"]
    assert "requested" == call["status"]
