"""MCP servers that die at random under many sessions."""

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

import cueline
from cueline.events.session import ToolFailed, ToolInDoubt, ToolReturned, ToolStarted, calls_of

SERVER = str(Path(__file__).with_name("server.py"))


def agent(folder, name, servers, turns):
    """Return an agent that notes its turns by its servers, one after another."""
    workspace = folder / name
    workspace.mkdir()
    replies = [
        f'{{ calls = [{{ name = "s{turn % servers}__note", '
        f'arguments = {{ path = "notes", text = "{turn}" }} }}] }}'
        for turn in range(turns)
    ]
    return cueline.Agent(
        name=name,
        provider="scripted",
        model="notes",
        parameters={"script": f'reply = [{", ".join(replies)}, {{ text = "Done." }}]'},
        workspace=workspace,
        mcp={f"s{n}": {"command": [sys.executable, SERVER], "ask": []} for n in range(servers)},
        policy={"in_doubt": "tell", "approval": "off"},
        limits={"max_turns": turns + 1},
        tool_retry={"max_retries": 20, "base_seconds": 0.2, "cap_seconds": 5},
    )


def one_server(luck):
    """Return a living process of a server, chosen by *luck*; empty if there is none."""
    living = [
        each
        for each in psutil.Process().children(recursive=True)
        if SERVER in _words(each) and "guardian.py" not in str(_words(each))
    ]
    return [luck.choice(living)] if living else []


def _words(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []


async def kill_servers(session, luck, share):
    """Kill a random server at the start of that *share* of the session's calls; count them."""
    deaths = 0
    async for _, event in session.events():
        if not isinstance(event, ToolStarted) or luck.random() > share:
            continue
        for each in await asyncio.to_thread(one_server, luck):
            with suppress(ProcessLookupError):
                os.kill(each.pid, signal.SIGKILL)
                deaths += 1
    return deaths


@pytest.mark.parametrize(
    ("sessions", "servers", "turns"),
    [
        pytest.param(2, 2, 10, id="sample"),
        pytest.param(20, 3, 120, id="five minutes", marks=pytest.mark.long),
    ],
)
async def test_servers_that_die_at_random_leave_no_session_stuck_and_repeat_nothing(
    tmp_path, figures, sessions, servers, turns
):
    names = [f"n{number}" for number in range(sessions)]
    async with cueline.open_runtime(tmp_path / "log.db", on="inline") as runtime:
        started = [
            await runtime.start(agent(tmp_path, name, servers, turns), "Note.", id=name)
            for name in names
        ]
        luck = random.Random(1)
        killing = asyncio.gather(*(kill_servers(each, luck, 0.2) for each in started))
        ended = await asyncio.gather(*(each.result() for each in started))
        deaths = sum(await killing)
        facts = {each.id: [event async for _, event in each.events()] for each in started}

    stuck = [
        facts[name][-1]
        for name, each in zip(names, ended, strict=True)
        if each.status != "completed"
    ]
    assert [] == stuck
    doubts = failed = 0
    for name in names:
        asked = {
            k: v for f in facts[name] if f.type == "ModelReplied" for k, v in calls_of(f).items()
        }
        assert {f"s{n}__note" for n in range(servers)} == {each.name for each in asked.values()}
        noted = Counter((tmp_path / name / "notes").read_text().split())
        assert {1} == {*noted.values()}, f"{name} repeated a call"
        returned = {f.effect for f in facts[name] if isinstance(f, ToolReturned)}
        for effect in returned:
            assert noted[asked[effect].arguments["text"]] == 1, "a call returned and did not happen"
        doubts += sum(isinstance(f, ToolInDoubt) for f in facts[name])
        failed += sum(isinstance(f, ToolFailed) for f in facts[name])
    figures(f"{deaths} deaths of servers, {doubts} calls in doubt, {failed} tried again")
    assert deaths > 0
