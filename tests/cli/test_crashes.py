"""Real processes that die, and messages that come close to the end (DESIGN 6)."""

import json
import signal
import subprocess
import sys

from cueline.testing.wait import PATIENCE_SECONDS

CUELINE = [sys.executable, "-m", "cueline"]
KILLER = '''
import os
import signal

from cueline import tool


@tool(idempotent=True)
async def crash() -> str:
    """Take down the process that it runs in."""
    os.kill(os.getpid(), signal.SIGKILL)
'''
CRASHES = """
[[reply]]
text = "I try."
calls = [{ name = "crash", arguments = {} }]

[[reply]]
text = "Never."
"""
THIRTY = """
import asyncio, os, signal
from cueline import Agent, open_runtime

async def main():
    agent = Agent.from_file("agent.toml")
    async with open_runtime(on="inline") as runtime:
        sessions = [await runtime.start(agent, "Go", id=f"c{n}") for n in range(30)]
        async for _ in sessions[-1].events():
            os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def typed(shell, *words):
    return subprocess.run(
        [*CUELINE, *words], cwd=shell.folder, check=False, capture_output=True, text=True
    )


def test_a_session_that_kills_its_host_three_times_waits_for_a_person(shell):
    (shell.folder / "killer.py").write_text(KILLER)
    agent = shell.agent(CRASHES, tools=("killer.py:crash",))

    died = [typed(shell, "run", "Go", "--agent", agent, "--inline", "--id", "one").returncode]
    died += [typed(shell, "resume", "one", "--inline").returncode for _ in range(2)]
    held = typed(shell, "resume", "one", "--inline")

    assert [-signal.SIGKILL] * 3 == died
    assert 3 == held.returncode, held.stderr
    assert "its host died 3 times in it" in held.stdout
    assert "paused" == shell.json("list")[0]["status"]
    other = shell("run", "Hi", "--agent", shell.agent(shell.hello), "--inline")
    assert other.exit_code == 0


def test_thirty_crashed_sessions_are_left_alone_by_a_run(shell):
    shell.agent(shell.slow, tools=("list_files",))
    died = subprocess.run([sys.executable, "-c", THIRTY], cwd=shell.folder, check=False)
    before = shell("audit", "--json").stdout

    mine = ("--agent", shell.agent(shell.hello), "--inline", "--id", "mine")
    done = typed(shell, "run", "Hi", *mine)

    assert (-signal.SIGKILL, 0) == (died.returncode, done.returncode)
    listed = [each for each in shell.json("list") if each["id"].startswith("c")]
    assert 30 == len(listed)
    after = shell("audit", "--json").stdout.removeprefix(before)
    assert not [line for line in after.splitlines() if '"session": "c' in line]
    assert not any(each["driven"] for each in listed if each["status"] == "running")


def test_every_message_around_the_moment_of_rest_leads_to_one_fact(shell):
    """I7: it is read by the run that is about to end, or waits for the next."""
    agent = shell.agent('[[reply]]\ntext = "."\n' * 60)
    process = shell.start("run", "Go", "--agent", agent, "--inline", "--id", "one", "--open")
    shell.wait_for("one", "ModelReplied")
    sent = 0
    while process.poll() is None and sent < 40:
        assert 0 == shell("send", "one", str(sent)).exit_code
        sent += 1
    process.wait(PATIENCE_SECONDS)
    while shell.json("list")[0]["unread"]:
        assert 0 == typed(shell, "resume", "one", "--inline").returncode

    facts = [
        json.loads(line)
        for line in shell("export", "one", "--format", "events").stdout.splitlines()
    ]
    read = [each["fact"]["inbox_version"] for each in facts if each["type"] == "MessageReceived"]
    assert [*range(2, sent + 2)] == read
