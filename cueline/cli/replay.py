"""`cueline replay`: rebuild a session's state from the log, and check its decisions."""

from typing import TYPE_CHECKING, Annotated

import typer

from cueline.cli import opened
from cueline.cli.failure import Exit
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, SessionArgument
from cueline.console.text import json_of

if TYPE_CHECKING:
    from cueline.actors.followed import Followed
    from cueline.cli.checking import Difference

_HELP = """Rebuild a session's state from the log, and print it.

With --check, each step is decided again on the state before it, and must give
the events that were recorded; the first difference is named, with exit code 1.

\b
Examples:
  cueline replay 7f3a --to 12
  cueline replay 7f3a --check
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay", help=_HELP, short_help="Rebuild a session's state, and check it.")(replay)


def replay(
    session: SessionArgument,
    *,
    to: Annotated[
        int | None, typer.Option(min=1, help="Up to this version.", metavar="VERSION")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Decide each step again.")] = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Replay a session."""
    from cueline.cli.checking import first_difference
    from cueline.cli.reading import read_past
    from cueline.errors import RejectedError
    from cueline.events.stream import shown

    # Decided again when the loop is over: Ctrl-C ends it at once.
    followed, past, code = opened.run(read_past(log, session, to, last=None if check else 0))
    if to is not None and followed.version < to and code is Exit.DONE:
        raise RejectedError(shown(followed.stream), f"its last version is {followed.version}")
    if not check:
        _print_state(followed, as_json=as_json)
        raise typer.Exit(code)
    steps, difference = first_difference(followed.stream, past, whole=to is None)
    _print_check(followed, steps, difference, as_json=as_json)
    raise typer.Exit(Exit.FAILED if difference else code)


def _print_state(followed: "Followed", *, as_json: bool) -> None:
    from cueline.cli.document import plain, tree

    state = {"version": followed.version, **plain(followed.state)}
    if as_json:
        typer.echo(json_of(state, indent=2))
        return
    if followed.state.setup is not None:
        agent = followed.state.agent
        # Schemas of tools and scripts of models fill screens; --json has them.
        model = f"{agent.provider} {agent.model}"
        tools = [tool.name for tool in agent.tools]
        state["setup"] = {"agent": agent.name, "model": model, "tools": tools}
    typer.echo("\n".join(tree(state)))


def _print_check(
    followed: "Followed", steps: int, difference: "Difference | None", *, as_json: bool
) -> None:
    from cueline.events.stream import shown

    if as_json:
        found = None if difference is None else difference._asdict()
        document = {"version": followed.version, "steps": steps, "difference": found}
        typer.echo(json_of(document, indent=2))
    elif difference is None:
        typer.echo(f"{shown(followed.stream)}: {steps} steps decided again, each as recorded")
    else:
        typer.echo(
            f"{shown(followed.stream)}@{difference.version}: decided anew, this step differs"
        )
        typer.echo(f"  recorded: {difference.recorded}")
        typer.echo(f"  decided:  {difference.decided}")
