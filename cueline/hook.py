"""Reaches people: runs a command, or calls a URL, with what there is to tell."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from contextlib import suppress

from cueline.errors import CuelineError
from cueline.events.agent import AgentSpec, Hook

SECONDS = 10.0
"""How long a hook may take: whoever waits for a person holds nothing (I12)."""


async def run_hook(
    agent: AgentSpec, hook: Hook, news: bytes, environ: Mapping[str, str]
) -> str | None:
    """Run *hook* with *news*, and return why nobody was reached; None when somebody was.

    A command sees the environment without the agent's secrets.
    """
    hidden = {*agent.secrets, agent.key_variable}
    visible = {name: value for name, value in environ.items() if name not in hidden}
    try:
        async with asyncio.timeout(SECONDS):
            if hook.url is not None:
                return await _call(hook.url, news)
            return await _run(hook.command, news, visible)
    except TimeoutError:
        return f"it took longer than {SECONDS:g} s"
    except (OSError, ValueError, CuelineError) as error:
        return f"{type(error).__name__}: {error}"


async def _run(command: tuple[str, ...], news: bytes, environ: Mapping[str, str]) -> str | None:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, env=dict(environ)
    )
    try:
        with suppress(BrokenPipeError, ConnectionResetError):
            await process.communicate(news)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return None if process.returncode == 0 else f"it ended with {process.returncode}"


async def _call(url: str, news: bytes) -> str | None:
    import httpx  # noqa: PLC0415 - seldom needed, and slow to import

    async with httpx.AsyncClient(timeout=SECONDS) as client:
        try:
            answer = await client.post(
                url, content=news, headers={"Content-Type": "application/json"}
            )
        except httpx.HTTPError as error:
            return f"{type(error).__name__}: {error}"
    return None if answer.is_success else f"it answered {answer.status_code}"
