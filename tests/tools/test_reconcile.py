"""Asking a tool what became of a call whose outcome is not known."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from cueline.actors.tool import Finding
from cueline.errors import ToolFailedError
from cueline.tools.tool import load

KEY = "session-default/1/1.0"


def reconcilable(name):
    return load(f"{Path(__file__).parent}/reconcilable.py:{name}")


@pytest.mark.parametrize("name", ["known", "known_by_sync"])
async def test_a_sync_reconcile_is_asked_with_the_key_in_a_worker(executor, order, name):
    finding = await executor.reconcile(order(reconcilable(name)))

    told = json.loads(finding.output)
    assert ("happened", KEY) == (finding.outcome, told["key"])
    assert os.getpid() != int(told["pid"])


async def test_an_async_reconcile_of_an_async_tool_is_asked_in_the_loop(executor, order):
    assert Finding("happened", f"{KEY} in {os.getpid()}") == await executor.reconcile(
        order(reconcilable("known_in_loop"))
    )


async def test_an_async_reconcile_of_a_sync_tool_is_asked_in_a_worker(executor, order):
    finding = await executor.reconcile(order(reconcilable("known_by_async")))

    assert finding.output.startswith(f"{KEY} in ")
    assert not finding.output.endswith(str(os.getpid()))


@pytest.mark.parametrize(
    ("name", "outcome"), [("undone", "did_not_happen"), ("doubtful", "unknown")]
)
async def test_a_word_is_a_finding(executor, order, name, outcome):
    assert Finding(outcome) == await executor.reconcile(order(reconcilable(name)))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("confused", "reconcile returned 'perhaps session-default/1/1.0', but not one of happened"),
        ("failing", "ConnectionError: session-default/1/1.0"),
        ("undeclared", "undeclared declares no reconcile"),
    ],
)
async def test_what_is_no_finding_is_a_failure(executor, order, name, reason):
    with pytest.raises(ToolFailedError, match=reason):
        await executor.reconcile(order(reconcilable(name)))


async def test_a_tool_that_is_gone_cannot_say(executor, order):
    spec = reconcilable("known").spec().model_copy(update={"target": "no.such:tool"})

    with pytest.raises(ToolFailedError, match="ModuleNotFoundError"):
        await executor.reconcile(replace(order(reconcilable("known")), tool=spec))
