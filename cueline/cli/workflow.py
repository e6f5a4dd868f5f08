"""`cueline workflow`: check and show the steps of a workflow, and how far one came."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cueline.cli.failure import Exit
from cueline.cli.option import JsonOption, PlainOption
from cueline.console.text import count, json_of, visible

if TYPE_CHECKING:
    from cueline.client.workflow import WorkflowCheck

_GROUP = """Check and show workflows.

\b
Examples:
  cueline workflow check release.toml
  cueline workflow show release.toml
  cueline workflow show release.toml --svg release.svg
"""
_CHECK = """Say whether a workflow can run: each fault with its key and the fix.

It reads the file, the tools and the agents of the steps, and records nothing. It
exits with 2 when there is a fault.

\b
Example:
  cueline workflow check release.toml
"""
_SHOW = """Show the steps of a workflow by level: those of one level can run together.

\b
Examples:
  cueline workflow show release.toml
  cueline workflow show release.toml --svg release.svg
"""

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A workflow's TOML file.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help=_GROUP, no_args_is_help=True, rich_markup_mode=None)
    group.command("check", help=_CHECK, short_help="Say what is wrong with a workflow.")(check)
    group.command("show", help=_SHOW, short_help="Show the steps of a workflow.")(show)
    app.add_typer(group, name="workflow", short_help="Check and show workflows.")


def check(file: FileArgument, *, as_json: JsonOption = False) -> None:
    """Look for faults."""
    from cueline.client.workflow import check_workflow

    found = check_workflow(file)
    if as_json:
        typer.echo(json_of([{"file": str(file), **e._asdict()} for e in found.problems], indent=2))
        raise typer.Exit(Exit.REFUSED if found.problems else Exit.DONE)
    _refuse(found)
    assert found.agent is not None, "nothing is wrong with it"
    assert found.agent.plan is not None, "it is a workflow"
    steps = count(len(found.agent.plan.steps), "step")
    typer.echo(visible(f"{file}: nothing is wrong with its {steps}"))


def show(
    file: FileArgument,
    *,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Write a picture there.")
    ] = None,
    as_json: JsonOption = False,
    plain: PlainOption = False,
) -> None:
    """Show the steps."""
    from cueline.client.document import document
    from cueline.client.workflow import check_workflow
    from cueline.console.plan_graph import plan_lines, plan_svg
    from cueline.console.screen import Screen

    found = check_workflow(file)
    _refuse(found)
    assert found.agent is not None, "nothing is wrong with it"
    if svg is not None:
        svg.write_text(plan_svg(found.agent), encoding="utf-8")
        typer.echo(visible(f"wrote {svg}"), err=True)
    elif as_json:
        assert found.agent.plan is not None, "it is a workflow"
        typer.echo(json_of(document(found.agent.plan), indent=2))
    else:
        Screen(plain=plain).show(plan_lines(found.agent))


def _refuse(found: "WorkflowCheck") -> None:
    """Print what is wrong, and exit if anything is."""
    for each in found.problems:
        typer.echo(visible(f"{found.file}: {each}"), err=True)
    if found.problems:
        raise typer.Exit(Exit.REFUSED)
