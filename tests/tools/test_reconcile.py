"""Asking a tool what became of a call whose outcome is not known."""

import json
import os

import pytest
from msgspec.structs import replace

from cueline.actors.tool_port import ReconcileFinding
from cueline.errors import ToolFailedError

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = "session-default/1/1.0"


@pytest.mark.parametrize("name", ["known", "known_by_sync"])
async def test_a_sync_reconcile_is_asked_with_the_key_in_a_worker(warm_executor, order, name):
    finding = await warm_executor.reconcile(order(f"reconcilable:{name}"))

    told = json.loads(finding.output)
    assert ("happened", KEY) == (finding.outcome, told["key"])
    assert os.getpid() != int(told["pid"])


async def test_an_async_reconcile_of_an_async_tool_is_asked_in_the_loop(warm_executor, order):
    assert ReconcileFinding("happened", f"{KEY} in {os.getpid()}") == await warm_executor.reconcile(
        order("reconcilable:known_in_loop")
    )


async def test_an_async_reconcile_of_a_sync_tool_is_asked_in_a_worker(warm_executor, order):
    finding = await warm_executor.reconcile(order("reconcilable:known_by_async"))

    assert finding.output.startswith(f"{KEY} in ")
    assert not finding.output.endswith(str(os.getpid()))


@pytest.mark.parametrize(
    ("name", "outcome"), [("undone", "did_not_happen"), ("doubtful", "unknown")]
)
async def test_a_word_is_a_finding(warm_executor, order, name, outcome):
    assert ReconcileFinding(outcome) == await warm_executor.reconcile(order(f"reconcilable:{name}"))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("confused", "reconcile returned 'perhaps session-default/1/1.0', but not one of happened"),
        ("failing", "ConnectionError: session-default/1/1.0"),
        ("undeclared", "undeclared declares no reconcile"),
    ],
)
async def test_what_is_no_finding_is_a_failure(warm_executor, order, name, reason, failure):
    with pytest.raises(ToolFailedError, match=reason):
        await warm_executor.reconcile(order(f"reconcilable:{name}"))


async def test_a_tool_that_is_gone_cannot_say(warm_executor, order):
    spec = order("reconcilable:known").tool.model_copy(update={"target": "no.such:tool"})

    with pytest.raises(ToolFailedError, match="No module named"):
        await warm_executor.reconcile(replace(order("reconcilable:known"), tool=spec))
