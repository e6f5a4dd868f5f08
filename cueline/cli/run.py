"""`cueline run`: start a session, and watch it at the terminal."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from cueline.agents.preflight import check_answerable, check_log, check_log_is_out_of_reach
from cueline.cli import open_log
from cueline.cli.failure import Exit
from cueline.cli.option import takes
from cueline.cli.run_many import run_many
from cueline.cli.run_options import RunOptions, takes_run_options
from cueline.cli.session_run import carry_on
from cueline.cli.start_options import (
    AgentOptions,
    agent_options_of,
    prepare,
    session_options_of,
    warn_of_retirements,
)
from cueline.cli.terminal import text_or_stdin
from cueline.client.client import open_client
from cueline.client.start import StartOptions, StartRequest, check_id_is_free

_NO_GOAL = "say something: GOAL is missing"


@takes_run_options
@takes(agent_options_of)
@takes(session_options_of)
def run(
    start: StartOptions,
    who: AgentOptions,
    options: RunOptions,
    goal: Annotated[
        str | None,
        typer.Argument(
            metavar="GOAL",
            help="What the agent is to do; `-` reads it from stdin. Or the file of an agent "
            "that needs no goal: a workflow or procedure.",
        ),
    ] = None,
    *,
    many: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead of GOAL: a session for each line, as JSON."),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(metavar="N", min=1, help="With --many: so many run at a time.")
    ] = 50,
) -> None:
    """Start a session, and watch it until it ends, rests, or waits for a person.

    Without --agent the built-in agent runs, which works on the files of the current
    folder, and asks before it writes or runs a command. It uses the first provider
    with a key, else a server on this machine that needs none.

    The session goes to the running `cueline up` of the log, else to the Ray that
    --address or RAY_ADDRESS names; otherwise it runs in this process. All checks come
    before the first record. Without a terminal `run` does not ask: if the session
    waits for a person, it exits with 3 and prints the commands to approve. Ctrl-C once
    asks the session to pause, and prints how to continue; twice leaves at once, and no
    recorded event is lost.

    With --many, each line of a file is a goal as JSON text, or an object with `goal`
    or `parameters` and, if you like, `key` and `labels`. The same command again
    continues: no line is started twice. --key NAME starts all lines again.

    With --at the session is recorded now and starts at that time, if `cueline up` runs;
    --every starts another one after each such time. After missed times, one session
    starts late. `cueline list` shows the time; `cueline stop` of the waiting session
    ends it, and its series.

    \b
    Examples:
      cueline run "What is in this folder?"
      cueline run "Tidy the notes" --agent agent.toml --workspace notes
      cueline run "Let us tidy the notes" --agent agent.toml --open
      cueline run resize.toml -p path=cat.png -p width=200
      cueline run "Answer the mail" --agent clerk.toml --require-approval
      cueline run "Answer the mail" --agent clerk.toml --key mail-2026-05-04
      cueline run "Tidy the notes" --agent agent.toml --at 07:30 --every 1d
      cueline run --many tasks.jsonl --agent clerk.toml --concurrency 50
      cueline run "Index everything" --agent indexer.toml --detach --label team=search
    """
    start = replace(start, goal=goal, without_secrets=options.without_secrets)
    if many is not None:
        raise typer.Exit(run_many(many, who, start, options, concurrency=concurrency))
    if goal is not None and who.file is None and goal.endswith(".toml") and len(goal.split()) == 1:
        start, who = replace(start, goal=None), replace(who, file=Path(goal))
    elif goal is not None:
        start = replace(start, goal=text_or_stdin(goal))
    elif who.file is None:
        raise typer.BadParameter(_NO_GOAL)
    if start.at is not None or start.every is not None:
        options = _detached(options, "--every" if start.at is None else "--at")
    request = prepare(who, start, options)
    agent = request.asked.agent
    if start.goal is None and agent.plan is None and agent.parameters_schema is None:
        raise typer.BadParameter(_NO_GOAL)
    warn_of_retirements(request, options)
    raise typer.Exit(open_log.run(start_and_watch(request, options)))


async def start_and_watch(request: StartRequest, options: RunOptions) -> Exit:
    """Record the start, and run and show the session, unless it is detached.

    Raises:
        RejectedError: the id is taken.
        ConfigError: the agent may ask, and nobody could answer; or its tools reach the log.
        LogUnavailableError: the log cannot be used; nothing was recorded.
    """
    agent = request.asked.agent
    check_answerable(agent, options.log, attended=options.attended)
    check_log_is_out_of_reach(agent, options.log)
    async with open_client(options.log, must_exist=False) as client:
        if request.key is None:
            await check_id_is_free(client.log, request.id)
        stream = client.log.session_stream(request.id)
        return await carry_on(client, stream, options, request.submit)


def _detached(options: RunOptions, option: str) -> RunOptions:
    """Return *options* for a session that waits for its time after this command has ended.

    Raises:
        BadParameter: an option needs this command to run the session.
        LogUnavailableError: no other process could run it.
    """
    if options.on != "auto":
        raise typer.BadParameter(f"{option} and --{options.on} exclude each other")
    check_log(options.log, shared=True)
    return replace(options, detach=True, attended=False)
