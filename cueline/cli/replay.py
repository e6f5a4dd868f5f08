"""`cueline replay`: rebuild a session's state from the log, and check its decisions."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from cueline.cli import open_log
from cueline.cli.failure import Exit
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, SessionArgument
from cueline.client.document import document
from cueline.client.history import History
from cueline.client.redecide import Check, check_of
from cueline.console.text import json_of, one_line


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
    # Decided again when the loop is over: Ctrl-C ends it at once.
    """Rebuild a session's state from the log, and print it.

    With --check, each step is decided again on the earlier state, and must give the
    recorded events; the first difference is shown, with exit code 1.

    \b
    Examples:
      cueline replay 7f3a --to 12
      cueline replay 7f3a --check
    """
    history = open_log.run(open_log.history(log, session, until=to, last=None if check else 0))
    if not check:
        _print_state(history, as_json=as_json)
        raise typer.Exit(open_log.exit_of_damage(history.damage))
    checked = check_of(history, cut=to is not None)
    open_log.print_answer(checked, lambda each: _print_check(history.id, each), as_json=as_json)
    code = open_log.exit_of_damage(checked.damage)
    raise typer.Exit(Exit.FAILED if checked.difference else code)


def _print_state(history: History, *, as_json: bool) -> None:
    state = {"version": history.version, **document(history.state)}
    if as_json:
        typer.echo(json_of(state, indent=2))
        return
    if history.state.setup is not None:
        agent = history.state.agent
        # Schemas of tools and scripts of models fill screens; --json has them.
        model = f"{agent.provider} {agent.model}"
        tools = [tool.name for tool in agent.tools]
        state["setup"] = {"agent": agent.name, "model": model, "tools": tools}
    typer.echo("\n".join(_tree(state)))


def _tree(value: Mapping[str, Any], indent: int = 0) -> Iterator[str]:
    """Return nested values line by line, without empty ones."""
    for key, item in value.items():
        if item in (None, "", [], {}):
            continue
        if isinstance(item, Mapping):
            yield f"{' ' * indent}{key}:"
            yield from _tree(item, indent + 2)
        elif isinstance(item, list) and isinstance(item[0], Mapping):
            for number, each in enumerate(item):
                yield f"{' ' * indent}{key}[{number}]:"
                yield from _tree(each, indent + 2)
        else:
            told = item if isinstance(item, str) else json_of(item)
            yield f"{' ' * indent}{key}: {one_line(told, 200)}"


def _print_check(id: str, checked: Check) -> None:  # noqa: A002 - the word of the log
    if checked.difference is None:
        typer.echo(f"{id}: {checked.steps} steps decided again, each as recorded")
    else:
        typer.echo(f"{id}@{checked.difference.version}: decided anew, this step differs")
        typer.echo(f"  recorded: {checked.difference.recorded}")
        typer.echo(f"  decided:  {checked.difference.decided}")
