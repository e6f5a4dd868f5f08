"""Notifies people with a hook: runs a command, or calls a URL, with JSON."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL
from collections.abc import Collection, Mapping
from contextlib import suppress
from tempfile import TemporaryFile

from cueline.errors import ConfigError, CuelineError
from cueline.events.agent import Hook, url_variable

SECONDS = 10.0
"""The time limit of a hook in seconds."""


async def run_hook(
    hook: Hook, news: bytes, environ: Mapping[str, str], *, hidden: Collection[str]
) -> str | None:
    """Run *hook* with *news*; return the error, or None if it succeeded.

    The command gets the environment without the *hidden* variables.
    """
    visible = {name: value for name, value in environ.items() if name not in hidden}
    try:
        async with asyncio.timeout(SECONDS):
            if hook.url is not None:
                return await _call(_url_of(hook, environ), news)
            return await _run(hook.command, news, visible)
    except TimeoutError:
        return f"it took longer than {SECONDS:g} s"
    except (OSError, ValueError, CuelineError) as error:
        return f"{type(error).__name__}: {error}"


def _url_of(hook: Hook, environ: Mapping[str, str]) -> str:
    """Return the URL of *hook*.

    Raises:
        ConfigError: the variable with the URL is not set here.
    """
    name = url_variable(hook)
    if name is None:
        return hook.url or ""
    if not environ.get(name):
        raise ConfigError(name, "the variable with the hook's URL is not set")
    return environ[name]


async def _run(command: tuple[str, ...], news: bytes, environ: Mapping[str, str]) -> str | None:
    with TemporaryFile() as told:  # not a pipe: the hook may leave it unread
        told.write(news)
        told.seek(0)
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=told,
            stdout=DEVNULL,
            stderr=DEVNULL,
            env=dict(environ),
            start_new_session=True,  # its own group: killed as a whole, not reached by Ctrl-C
        )
    try:
        await process.wait()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):  # it ended just now
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return None if process.returncode == 0 else f"it ended with {process.returncode}"


async def _call(url: str, news: bytes) -> str | None:
    import httpx2  # noqa: PLC0415 - seldom needed, and slow to import

    async with httpx2.AsyncClient(timeout=SECONDS) as client:
        heads = {"Content-Type": "application/json"}
        try:
            # The status is the answer; the body may have no end.
            async with client.stream("POST", url, content=news, headers=heads) as answer:
                return None if answer.is_success else f"it answered {answer.status_code}"
        except httpx2.HTTPError as error:
            return f"{type(error).__name__}: {error}"
        except httpx2.InvalidURL:
            return (
                "InvalidURL: it cannot be called"  # the cause quotes the URL, perhaps secret (I11)
            )
