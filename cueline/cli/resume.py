"""`cueline resume`, `fork`, `rerun` and `undo`: continue a session, or start one from its past."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.failure import Exit
from cueline.cli.option import SessionArgument, TreeOption
from cueline.cli.run_options import ACCEPT, AcceptOption, RunOptions, takes_run_options
from cueline.cli.session_run import carry_on, run_session, seconds_to_answer
from cueline.cli.terminal import print_json
from cueline.cli.up_lookup import command, resume_command
from cueline.client.client import Client, open_client
from cueline.client.file_changes import undo_request
from cueline.client.fork import fork_request
from cueline.client.remote import RemoteRequest
from cueline.client.rerun import RerunDifference, RerunResult, rerun_request
from cueline.client.resume import ResumeRequest, resume_request
from cueline.client.session import Session
from cueline.client.session_by_name import over_tree
from cueline.console.screen import Screen
from cueline.console.text import count, json_of, one_line, visible


@takes_run_options
def resume(
    options: RunOptions,
    session: SessionArgument,
    *,
    tree: TreeOption = False,
    accept_changed_tools: AcceptOption = False,
) -> None:
    """Continue a session that crashed, was paused, or was interrupted.

    It continues from the log, with the recorded agent, and is shown live. A session
    that has ended is refused, and so is a session that a living process drives,
    unless it is paused: then that process continues it.
    With --tree all its descendants continue, too.

    \b
    Examples:
      cueline resume 7f3a
      cueline resume 7f3a --ray
      cueline resume 7f3a --without-secret SHOP_TOKEN
    """

    async def resumed() -> Exit:
        async with open_client(options.log) as client:

            async def request_of(each: str) -> ResumeRequest | RemoteRequest:
                return await resume_request(
                    client,
                    await client.find(each),
                    accept_changed_tools=accept_changed_tools,
                    accept_with=f"{resume_command(options.log, each)} {ACCEPT}",
                    without_secrets=options.without_secrets,
                )

            async def record(runtime: Client) -> Session:
                first, *_ = [await each.submit(runtime) for each in requests]
                return first

            requests = await over_tree(client, session, request_of, tree=tree)
            return await carry_on(client, requests[0].stream, options, record, show_past=False)

    raise typer.Exit(open_log.run(resumed()))


@takes_run_options
def fork(
    options: RunOptions,
    session: SessionArgument,
    *,
    at: Annotated[
        int, typer.Option(min=1, help="The last version of the shared past.", metavar="VERSION")
    ],
    goal: Annotated[str | None, typer.Option(metavar="TEXT", help="The goal of the fork.")] = None,
    name: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="The new session's id, instead of a random one."),
    ] = None,
    with_files: Annotated[
        bool, typer.Option("--with-files", help="Begin with the files of its sandbox then.")
    ] = False,
    accept_changed_tools: AcceptOption = False,
) -> None:
    """Start a session that shares another's past up to a version, and continues from there.

    The fork has none of the calls in flight. Its workspace is a copy, made now, in a
    folder beside the original; a message says so to the model. `cueline tail -n 50`
    shows the versions.

    \b
    Examples:
      cueline fork 7f3a --at 12 --goal "Try it without the cache"
      cueline fork 7f3a --at 12 --ray
    """

    async def forked() -> Exit:
        async with open_client(options.log) as client:
            request = await fork_request(
                client,
                await client.find(session),
                at=at,
                goal=goal,
                id=name,
                with_files=with_files,
                accept_changed_tools=accept_changed_tools,
                accept_with=f"{command(options.log, 'fork', session, '--at', str(at))} {ACCEPT}",
                without_secrets=options.without_secrets,
                attached=options.attended,
            )
            request = request.with_time_to_answer(seconds_to_answer(options))
            stream = client.log.session_stream(request.id)
            return await carry_on(client, stream, options, request.submit)

    raise typer.Exit(open_log.run(forked()))


@takes_run_options
def undo(
    options: RunOptions,
    session: SessionArgument,
    call: Annotated[
        str | None, typer.Argument(metavar="CALL", help="Only this call, such as 3.0.")
    ] = None,
) -> None:
    """Put back the files that a session changed, or one call of it.

    It is a new session with one call, which asks first, and shows the change. It is
    refused if a file has changed since, or if its content before is not recorded:
    `cueline show SESSION --diff` says so. To undo the undoing, undo that session.

    \b
    Examples:
      cueline undo 7f3a
      cueline undo 7f3a 3.0
    """

    async def undone() -> Exit:
        async with open_client(options.log) as client:
            found = await undo_request(
                client,
                await client.find(session),
                call=call,
                without_secrets=options.without_secrets,
                attached=options.attended,
            )
            if not options.attended and not options.as_json:
                typer.echo(visible(found.diff))
            stream = client.log.session_stream(found.start.id)
            return await carry_on(client, stream, options, found.start.submit)

    raise typer.Exit(open_log.run(undone()))


_MOST = 10
_WIDTH = 300


@takes_run_options
def rerun(
    options: RunOptions,
    session: SessionArgument,
    *,
    agent: Annotated[
        Path | None,
        typer.Option(
            "--agent", "-a", help="The agent's TOML file, instead of its own agent.", metavar="FILE"
        ),
    ] = None,
    run_tools: Annotated[
        bool,
        typer.Option(
            "--run-tools", help="Run calls that have no recorded result, if the rules allow them."
        ),
    ] = False,
    name: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="The rerun's id, instead of a random one."),
    ] = None,
) -> None:
    """Run a recorded session again, with changed tools, rules or instructions, at no cost.

    It is a new session. The model's replies, the people's messages and the results of
    the calls come from the log. Without --agent it uses the recorded agent. At the end
    it prints the differences; any difference gives exit code 1. A call without a
    recorded result ends it; --run-tools runs such calls, if the rules allow them.

    \b
    Examples:
      cueline rerun 7f3a
      cueline rerun 7f3a --agent stricter.toml
      cueline rerun 7f3a --agent agent.toml --run-tools
    """
    if options.detach:
        raise typer.BadParameter("--detach: a rerun is compared at its end; leave it out")
    read = None if agent is None else options.context.read_agent(agent).agent
    again = [*(() if agent is None else ("--agent", str(agent))), "--run-tools"]

    async def rerun_whole() -> RerunResult:
        async with open_client(options.log) as client:
            request = await rerun_request(
                client,
                await client.find(session),
                agent=read,
                run_tools=run_tools,
                id=name,
                without_secrets=options.without_secrets,
                attached=options.attended,
            )
            screen = Screen(quiet=options.as_json, plain=options.plain)
            record = request.submit
            stream = client.log.session_stream(request.id)
            await run_session(client, stream, options, record, screen=screen, show_past=True)
            return await client.rerun_result(request.id)

    result = open_log.run(rerun_whole())
    if options.as_json:
        print_json(json_of(result.to_json(), indent=None if options.json_stream else 2))
    else:
        typer.echo("\n".join(_lines(result, command(options.log, "rerun", session, *again))))
    raise typer.Exit(_exit_of_rerun(result))


def _exit_of_rerun(result: RerunResult) -> Exit:
    if result.unanswered is not None or result.differences:
        return Exit.FAILED
    return Exit.WAITING if result.status in ("waiting", "paused", "running") else Exit.DONE


def _lines(result: RerunResult, again: str) -> Iterator[str]:
    ran = f", {result.ran} ran" if result.ran else ""
    results = count(result.results, "result")
    yield (
        f"{result.session}: {result.turns} of {result.recorded_turns} recorded turns of "
        f"{result.recorded}; {results} from the recording{ran}"
    )
    for number, each in enumerate(result.differences[:_MOST]):
        yield f"{'the first difference' if number == 0 else 'then'}: {_place(each)}"
        yield f"  recorded: {one_line(each.recorded, _WIDTH)}"
        yield f"  now:      {one_line(each.now, _WIDTH)}"
    if (more := len(result.differences) - _MOST) > 0:
        yield f"and {more} more; --json lists them"
    if (call := result.unanswered) is not None:
        arguments = one_line(json_of(call.arguments), _WIDTH)
        yield f"stopped at turn {call.turn}: no recorded result of {call.tool} {arguments}"
        yield "run such calls, if the rules allow them, with"
        yield f"  {again}"
    elif not result.differences:
        yield "no difference"


def _place(found: RerunDifference) -> str:
    where = f"turn {found.turn}" if found.turn else "at the start"
    call = " ".join(part for part in (found.tool, found.effect) if part)
    return f"{where}, {found.what}{call and f' of {call}'}"
