"""`cueline acp`: the sessions of a log in an editor, by the Agent Client Protocol."""

import asyncio
import logging
import os
import stat
import sys
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from cueline.agents.preflight import check_log_is_out_of_reach
from cueline.cli import open_log
from cueline.cli.failure import print_redacted
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, takes
from cueline.cli.run_options import RunOptions
from cueline.cli.settings_context import settings_context_of
from cueline.cli.start_options import AgentOptions, agent_options_of, prepare
from cueline.cli.terminal import ending_signals, only_json_on_stdout
from cueline.cli.trust import check_trust
from cueline.client.client import Client, open_client
from cueline.client.runs import run_request
from cueline.client.runtime import runtime_on
from cueline.client.start import StartOptions, StartRequest
from cueline.errors import ConfigError, CuelineError
from cueline.events.stream import trouble_message

_LINE = 50 * 1024 * 1024
"""The most bytes of a message of an editor, which can have images."""


@takes(agent_options_of)
def acp(
    who: AgentOptions,
    ctx: typer.Context,
    *,
    blueprint: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="New sessions are runs of this blueprint."),
    ] = None,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,  # noqa: ARG001 - the protocol is JSON
) -> None:
    """Serve an editor on stdin and stdout, by the Agent Client Protocol.

    An editor starts this command, and ends it. Its sessions are those of the log: the editor
    can list, load and fork all of them, and loads a session also after a crash.
    New sessions have the built-in agent, or that of --agent or --blueprint, and work in the
    folder that the editor has open. They run in the running `cueline up` of the log, else in
    this process. Output that is not of the protocol goes to stderr; --json changes nothing.

    \b
    Examples:
      cueline acp
      cueline acp --agent clerk.toml --log ~/.local/share/cueline/editor.db
      cueline acp --blueprint reviewer
    """
    try:
        from acp import run_agent, stdio_streams

        from cueline.gateway.acp import EditorAgent
    except ModuleNotFoundError as error:
        why = f"{error.name} is missing: `pip install 'cueline[acp]'` installs it"
        raise ConfigError("acp", why) from error
    if blueprint is not None and who.file is not None:
        raise typer.BadParameter("--agent and --blueprint exclude each other")
    _check_pipes()
    outside = settings_context_of(ctx)
    check_trust(ctx, log, asks=False)
    options = RunOptions(log=log, attended=True, as_json=True, context=outside)

    def say(text: str) -> None:
        print_redacted(text, outside)

    def trouble(stream: str, error: CuelineError) -> None:
        say(trouble_message(stream, error))

    async def request(client: Client, folder: Path, start: StartOptions) -> StartRequest:
        if blueprint is not None:
            return await run_request(client, blueprint, replace(start, open=False))
        there = replace(who, workspace=who.workspace or folder)
        # In a thread, because it can look for a local model server in a loop of its own.
        asked = await asyncio.to_thread(prepare, there, start, options)
        check_log_is_out_of_reach(asked.asked.agent, log)
        return asked

    async def work() -> None:
        async with open_client(log, must_exist=False) as client:
            with_settings = client.log.with_settings(outside.settings)
            async with runtime_on(with_settings, on_trouble=trouble) as runtime:
                agent: Any = EditorAgent(runtime, partial(request, runtime), say)
                with redirect_stdout(os.fdopen(os.dup(out.fileno()), "w")):  # it will be closed
                    reader, writer = await stdio_streams(limit=_LINE)
                serving = asyncio.ensure_future(
                    run_agent(agent, writer, reader, use_unstable_protocol=True)
                )
                for number in ending_signals():
                    asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
                try:
                    with suppress(asyncio.CancelledError):
                        await serving
                finally:
                    await agent.close()

    logging.getLogger().addHandler(_LogHandler(say))
    with only_json_on_stdout() as out:
        _keep_stdin()
        open_log.run(work())


def _check_pipes() -> None:
    for stream in (sys.stdin, sys.stdout):
        mode = os.fstat(stream.fileno()).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            raise ConfigError(stream.name, "it is no pipe: an editor has to start this command")


def _keep_stdin() -> None:
    """Keep the editor's messages from the processes that this one starts."""
    sys.stdin = os.fdopen(os.dup(sys.stdin.fileno()))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


class _LogHandler(logging.Handler):
    """Prints the warnings and errors of libraries, without secrets."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        self._say(self.format(record))
