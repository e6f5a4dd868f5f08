"""`cueline tools` and `cueline tool call`: an agent's tools, and one call by hand."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from cueline.agents.agent import Agent
from cueline.agents.agent_file import NAME as BUILT_IN
from cueline.cli import open_log
from cueline.cli.failure import Exit
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, pairs_of, takes
from cueline.cli.run import start_and_watch
from cueline.cli.run_options import RunOptions, takes_run_options
from cueline.cli.settings_context import settings_context_of
from cueline.cli.start_options import AgentOption, AgentOptions, agent_options_of
from cueline.client.document import document
from cueline.client.rerun import recorded_agent
from cueline.client.start import StartOptions, start_request
from cueline.client.tools import (
    ToolCheck,
    ToolRow,
    agent_of_one_call,
    login_check,
    tool_changes,
    tool_checks,
    tool_rows,
)
from cueline.console.progress import progress
from cueline.console.table import print_table
from cueline.console.text import count, json_of, visible

_MAY_RUN_TWICE = {
    "nothing": "no",
    "read_only": "yes, it only reads",
    "idempotent": "yes, by its key",
    "reconcile": "no, it can be asked",
}
_GROUP = """Call a tool by hand.

\b
Example:
  cueline tool call read_file path=README.md
"""


def tools(
    ctx: typer.Context,
    session: Annotated[
        str | None, typer.Argument(metavar="SESSION", help="With --diff: the session.")
    ] = None,
    *,
    agent: AgentOption = None,
    check: Annotated[
        bool, typer.Option("--check", help="Load each tool, and connect to each MCP server.")
    ] = False,
    diff: Annotated[
        bool,
        typer.Option("--diff", help="Show the tools of SESSION that are described otherwise now."),
    ] = False,
    login: Annotated[
        str, typer.Option("--login", metavar="NAME", help="Log in to the MCP server NAME by OAuth.")
    ] = "",
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """List the tools of an agent: what a call may do, whether it asks, and where it runs.

    With --check, each tool is loaded and each MCP server is asked; the exit code is 1 if
    one cannot be used. With --diff, the tools of a session are compared with what its MCP
    servers say now; the exit code is 1 if one has changed, and `cueline resume
    --accept-changed-tools` accepts it. With --login, an address is printed at which you
    log in with a browser of this machine; the login is stored encrypted beside the keys
    of providers. --json has the schema of each tool.

    \b
    Examples:
      cueline tools
      cueline tools --agent agent.toml --check
      cueline tools 7f3a --diff
      cueline tools --agent agent.toml --login github
    """
    if diff:
        raise typer.Exit(_compare(log, session, as_json=as_json))
    if session is not None:
        raise typer.BadParameter("SESSION goes with --diff; an agent is named by --agent")
    read = settings_context_of(ctx).read_agent(agent or Path(BUILT_IN)).agent
    if login:
        shown = partial(typer.echo, err=True)
        raise typer.Exit(_report([login_check(read, login, shown)], as_json=as_json))
    if check:
        raise typer.Exit(_check(read, as_json=as_json))
    with progress("asking the MCP servers" if read.mcp_servers() else ""):
        rows = tool_rows(read)
    open_log.print_answer(rows, _print, as_json=as_json, empty="it has no tools")


def _print(rows: tuple[ToolRow, ...]) -> None:
    cells = [
        (
            visible(each.name),
            _MAY_RUN_TWICE[each.declared],
            "yes" if each.asks else "no",
            visible(each.runs),
            visible(each.description.partition("\n")[0]),
        )
        for each in rows
    ]
    print_table(("tool", "may run twice", "asks", "runs in", "does"), cells)
    for each in rows:
        if each.gap:
            typer.echo(visible(f"{each.name}: {each.gap}"))


def _check(agent: Agent, *, as_json: bool) -> Exit:
    found: list[ToolCheck] = []
    with progress("checking the tools") as checked:
        for each in tool_checks(agent):
            found.append(each)
            checked()
    return _report(found, as_json=as_json)


def _report(found: list[ToolCheck], *, as_json: bool) -> Exit:
    if as_json:
        typer.echo(json_of(document(tuple(found)), indent=2))
    for each in () if as_json else found:
        told = each.problem or count(each.tools, "tool")
        mark = "✗" if each.problem else "✓"
        typer.echo(visible(f"{mark} {each.name}: {told} ({each.seconds:.1f} s)"))
    return Exit.FAILED if any(each.problem for each in found) else Exit.DONE


def _compare(log: LogOption, session: str | None, *, as_json: bool) -> Exit:
    if session is None:
        raise typer.BadParameter("--diff needs SESSION, whose tools are compared")
    with progress("asking the MCP servers"):
        history = open_log.run(open_log.history(log, session))
        found = tool_changes(recorded_agent(history))
    if as_json:
        typer.echo(json_of(document(found), indent=2))
    for each in () if as_json else found:
        typer.echo(visible(f"{each.name}:\n{each.difference}"))
    if not found and not as_json:
        typer.echo("no tool has changed")
    return Exit.FAILED if found else Exit.DONE


group = typer.Typer(help=_GROUP, no_args_is_help=True)


@group.callback()
def _of_one() -> None:
    """Keep the group a group, though it has one command."""


@group.command("call", short_help="Call one tool of an agent, gated and recorded.")
@takes_run_options
@takes(agent_options_of)
def call(
    who: AgentOptions,
    options: RunOptions,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A tool of `cueline tools`.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE…", help="The arguments of the call.")
    ] = None,
) -> None:
    """Call one tool of an agent, in a session of its own, and show what it returns.

    The call is gated by the agent's policy and recorded like a call of a model.

    \b
    Examples:
      cueline tool call read_file path=README.md
      cueline tool call github__get_issue number=7 --agent agent.toml
    """
    agent, sources = who.read(options, needs_model=False)
    with progress("asking the MCP servers" if agent.mcp_servers() else ""):
        alone = agent_of_one_call(agent, name, pairs_of("KEY=VALUE", "KEY=VALUE", arguments))
        request = start_request(
            alone,
            StartOptions(),
            now=datetime.now(UTC),
            attached=options.attended,
            sources=sources,
        )
    raise typer.Exit(open_log.run(start_and_watch(request, options)))
