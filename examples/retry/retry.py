"""Start a failed agent once more if a second try is harmless; else tell a person.

    python examples/retry/retry.py

cueline starts no failed session again by itself: only the caller knows whether that is
harmless. `crawl` fails at its first try, and may be repeated; `pay` fails, and may not.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import JsonValue

from cueline import Policy, Procedure, Result, Runtime, open_runtime

FAIL_ONCE = "test -e tried && echo crawled || { touch tried; echo unreachable >&2; exit 1; }"
FAIL = "echo x >> payments; echo 'no answer' >&2; exit 1"
IDEMPOTENT = {"crawl"}


async def retry_if_idempotent(
    runtime: Runtime,
    agent: Procedure,
    parameters: Mapping[str, JsonValue],
    *,
    key: str,
    is_idempotent: Callable[[str], bool],
    notify_user: Callable[[str], object],
) -> Result:
    """Run *agent*, once more if it fails and that is harmless; else tell a person.

    Each try is started under a key of its own: if this program dies and is run again, it
    finds the tries that it has started.
    """
    first = await runtime.start(agent, parameters=parameters, key=f"{key}/1")
    result = await first.result()
    if result.status == "failed" and is_idempotent(agent.name):
        again = await runtime.start(agent, parameters=parameters, key=f"{key}/2")
        result = await again.result()
    if result.status == "failed":
        notify_user(f"Task failed: {result.text}")
    return result


def procedure(name: str, command: str, folder: Path) -> Procedure:
    """Return the agent that runs *command* in *folder*."""
    return Procedure(
        name=name,
        command=("sh", "-c", command),
        workspace=folder,
        policy=Policy(approval=("off",)),
        parameters_schema={"type": "object"},
    )


async def run_both(folder: Path) -> int:
    """Run both agents, and print their results; return the exit code."""
    work = folder / "work"
    work.mkdir()
    async with open_runtime(folder / "log" / "log.db", on="inline") as runtime:
        for name, command in (("crawl", FAIL_ONCE), ("pay", FAIL)):
            result = await retry_if_idempotent(
                runtime,
                procedure(name, command, work),
                {"url": "https://example.org"},
                key=f"{name} of today",
                is_idempotent=IDEMPOTENT.__contains__,
                notify_user=lambda said: sys.stdout.write(f"to you: {said}\n"),
            )
            sys.stdout.write(f"{name}: {result.status}\n")
    paid = (work / "payments").read_text().count("x")
    sys.stdout.write(f"pay ran {paid} time\n")
    return 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        sys.exit(asyncio.run(run_both(Path(place))))
