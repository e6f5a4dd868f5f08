"""Drives the sessions of a log, each with a sandbox of its own, to their end or until it is killed.

python -m tests.sandboxes.killed LOG WORKSPACE BACKEND
"""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import cueline
from cueline.actors.sandbox_port import LOG_LABEL
from cueline.client.runtime import Runtime
from cueline.runtime.inline import inline
from cueline.runtime.open_log import open_log
from cueline.testing.wait import await_until
from cueline.tools.sandbox import sandbox_backend
from tests.sandboxes.podman import IMAGE
from tests.scripted import scripted

SESSIONS = 10
SLOTS = 6
SCRIPT = (
    '[[reply]]\ncalls = [{ name = "run_command", arguments = '
    '{ command = "echo done >> made; sleep 0.2" } }]\n' * 3 + '[[reply]]\ntext = "Done."\n'
)


def worker(workspace: Path, backend: str) -> cueline.Agent:
    policy = cueline.Policy(approval=("off",), in_doubt="tell")
    box = {"backend": backend, "image": IMAGE if backend == "container" else ""}
    return scripted(SCRIPT, "run_command", workspace=workspace, sandbox=box, policy=policy)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def drive(path: Path, workspace: Path, backend: str) -> None:
    async with open_log(path) as opened:
        log = replace(opened, sandbox_slots=SLOTS)
        async with inline(log, scope=None) as here:
            runtime = Runtime(log, here)
            known = {each.id: each for each in await runtime.sessions()}
            for number in range(SESSIONS):
                name = f"s{number}"
                if name not in known:
                    await runtime.start(worker(workspace, backend), "Go.", id=name)
                elif known[name].status == "paused":
                    await runtime.resume(name)  # its calls met three deaths
            say("ready")
            for number in range(SESSIONS):
                result = await runtime.session(f"s{number}").result()
                say(f"s{number} {result.status}")
            found = sandbox_backend(backend).find
            await await_until(lambda: not found({LOG_LABEL: log.id}), within=60)


if __name__ == "__main__":
    asyncio.run(drive(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
