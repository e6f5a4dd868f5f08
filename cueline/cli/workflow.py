"""`cueline workflow`: check and show the steps of a workflow, and the state of a session."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.failure import Exit
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, PlainOption, SessionArgument
from cueline.cli.up_lookup import command
from cueline.client.document import document
from cueline.client.history import History
from cueline.client.workflow import (
    WorkflowCheck,
    WorkflowState,
    check_workflow,
    state_document,
    write_state,
)
from cueline.console.plan_graph import plan_lines, plan_svg, step_lines
from cueline.console.screen import Screen
from cueline.console.text import Line, count, json_of, visible
from cueline.events.agent import AgentSpec
from cueline.events.agent_parts import Plan
from cueline.events.log_url import LogUrl

_GROUP = """Check and show workflows.

\b
Examples:
  cueline workflow check release.toml
  cueline workflow show release.toml
  cueline workflow show release.toml --svg release.svg
  cueline workflow state 7f3a -o state.json
"""


FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A workflow's TOML file.")]


group = typer.Typer(help=_GROUP, no_args_is_help=True)


@group.command("check", short_help="Say what is wrong with a workflow.")
def check(file: FileArgument, *, as_json: JsonOption = False) -> None:
    """Check whether a workflow can run, and print each fault with its key and the fix.

    It reads the file, the tools and the agents of the steps, and records nothing. The
    exit code is 2 if there is a fault.

    \b
    Example:
      cueline workflow check release.toml
    """
    found = check_workflow(file)
    if as_json:
        typer.echo(json_of([{"file": str(file), **e._asdict()} for e in found.problems], indent=2))
        raise typer.Exit(Exit.REFUSED if found.problems else Exit.DONE)
    _, plan = _faultless(found)
    steps = count(len(plan.steps), "step")
    typer.echo(visible(f"{file}: nothing is wrong with its {steps}"))


@group.command("show", short_help="Show the steps of a workflow.")
def show(
    file: FileArgument,
    *,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Write a picture there.")
    ] = None,
    as_json: JsonOption = False,
    plain: PlainOption = False,
) -> None:
    """Show the steps of a workflow by level; the steps of one level can run together.

    \b
    Examples:
      cueline workflow show release.toml
      cueline workflow show release.toml --svg release.svg
    """
    found = check_workflow(file)
    agent, plan = _faultless(found)
    if svg is not None:
        svg.write_text(plan_svg(agent), encoding="utf-8")
        typer.echo(visible(f"wrote {svg}"), err=True)
    elif as_json:
        typer.echo(json_of(document(plan), indent=2))
    else:
        Screen(plain=plain).show(plan_lines(agent))


@group.command("state", short_help="Show how far a workflow is.")
def state(
    session: SessionArgument,
    *,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the JSON there, whole or not."),
    ] = None,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
    plain: PlainOption = False,
) -> None:
    """Show the state of a workflow's session: each step with its status and its time.

    With --json or -o the output is one document with the results of all steps.

    \b
    Examples:
      cueline workflow state 7f3a
      cueline workflow state 7f3a -o state.json
    """

    async def read() -> WorkflowState:
        async with open_log.reader(log) as reader:
            return await reader.workflow_state(session)

    found = open_log.run(read())
    if output is not None:
        write_state(found, output)
        typer.echo(visible(f"wrote {output}"), err=True)
    elif as_json:
        typer.echo(state_document(found))
    else:
        head = f"{found.workflow} {found.workflow_id}: {found.status}"
        Screen(plain=plain).show([Line("said", head), *step_lines(found)])


def advice(found: WorkflowState, history: History, log: LogUrl) -> Iterator[str]:
    """Yield the next commands for failed steps of an ended session."""
    failed = [each for each in found.steps if each.status == "failed"]
    if not failed or not history.state.finished:
        return
    for each in failed:
        for child in each.children[-1:]:
            yield f"see what the agent of the step {each.name} did with"
            yield f"  {command(log, 'show', child)}"
    yield "correct the cause; then start it again, with the same parameters, by"
    if history.state.run is not None:
        yield f"  {command(log, 'retry', found.workflow_id)}"
        return
    file = f"{found.workflow}.toml"
    words = ["run", file if Path(file).is_file() else "FILE"]
    for name, value in found.parameters.items():
        words += ["-p", f"{name}={value if isinstance(value, str) else json_of(value)}"]
    yield f"  {command(log, *words)}"


def _faultless(found: WorkflowCheck) -> tuple[AgentSpec, Plan]:
    """Return the workflow and its plan; if the workflow has faults, print them and exit."""
    for each in found.problems:
        typer.echo(visible(f"{found.file}: {each}"), err=True)
    if found.problems:
        raise typer.Exit(Exit.REFUSED)
    assert found.agent is not None, "nothing is wrong with it"
    assert found.agent.plan is not None, "it is a workflow"
    return found.agent, found.agent.plan
