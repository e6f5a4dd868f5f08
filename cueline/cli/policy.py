"""`cueline policy`: check a policy for contradictions; judge recorded calls by it."""

from pathlib import Path
from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.failure import Exit
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, moment
from cueline.client.document import document
from cueline.client.policies import JudgedCall, PolicyBacktest, PolicyCheck, check_policy
from cueline.console.table import print_table
from cueline.console.text import arguments, count, json_of, visible

_GROUP = """Check a policy, or judge recorded calls by it.

\b
Examples:
  cueline policy check agent.toml
  cueline policy backtest stricter.toml --since 30d
"""

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="An agent file, or a policy alone.")
]


group = typer.Typer(help=_GROUP, no_args_is_help=True)


@group.command("check", short_help="Check a policy for contradictions.")
def check(file: FileArgument, *, as_json: JsonOption = False) -> None:
    """Check a policy for contradictions, and print each with its key and the reason.

    FILE is an agent file, or a file with only the keys of its [policy]. The exit
    code is 1 if there is a fault.

    \b
    Example:
      cueline policy check agent.toml
    """
    found = check_policy(file)
    if found.unchecked:
        tools = ", ".join(found.unchecked)
        told = f"the names of these tools are known only when their code runs: {tools}"
        typer.echo(visible(f"{file}: {told}; `tools` of rules was not checked"), err=True)
    if as_json:
        problems = [{"file": str(file), **each._asdict()} for each in found.problems]
        typer.echo(json_of(document(problems), indent=2))
    elif found.problems:
        for each in found.problems:
            typer.echo(visible(f"{file}: {each}"), err=True)
    else:
        _print_rules(found)
    raise typer.Exit(Exit.FAILED if found.problems else Exit.DONE)


def _print_rules(found: PolicyCheck) -> None:
    told = f"{count(len(found.rules), 'rule')}, the strongest that fits counts"
    typer.echo(visible(f"{found.file}: nothing is wrong with it; {told}"))
    width = max((len(rule.name) for rule in found.rules), default=0)
    for rule in found.rules:
        names = sorted(rule.model_fields_set - {"name", "answer"})
        said = rule.model_dump(mode="json")
        by = ", ".join(f"{name} = {json_of(said[name])}" for name in names)
        typer.echo(visible(f"  {rule.answer:6}  {rule.name:{width}}  {by}".rstrip()))


@group.command("backtest", short_help="Judge recorded calls by a policy.")
def backtest(
    file: FileArgument,
    *,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only from then on: 30d, 12h, 2026-01-31.")
    ] = None,
    calls: Annotated[
        bool, typer.Option("--calls", help="List the calls with another answer.")
    ] = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Judge recorded calls by another policy, and change nothing.

    It counts the calls that the policy would have denied, asked about or allowed, by
    rule, with the recorded answers, and adds the estimated costs of calls that ran and
    now would not. With --calls it lists the calls one by one.

    \b
    Examples:
      cueline policy backtest stricter.toml --since 30d
      cueline policy backtest agent.toml --calls --json
    """
    after = moment("--since", since)
    found = open_log.ask(log, lambda reader: reader.backtest(file, since=after))
    otherwise = [each for each in found.calls if each.otherwise]
    if not calls and as_json:
        typer.echo(json_of(document(found.sums), indent=2))
    elif not calls:
        _print_sums(found)
    elif as_json:
        for each in otherwise:
            typer.echo(json_of(document(each)))
    else:
        _print_calls(otherwise)


def _print_sums(found: PolicyBacktest) -> None:
    if not found.sums:
        typer.echo("no calls of tools were found")
        return
    head = ("would be", "by rule", "tool", "was", "calls", "ran", "estimated $")
    names = ("answer", "rule", "tool", "before", "calls", "ran", "stopped_cost")
    rows = [tuple(str(getattr(each, name)) for name in names) for each in found.sums]
    print_table(head, rows)
    held = found.stopped_cost
    typer.echo(f"calls that ran unasked, and would not have: ${held} by the tools' own estimates")


def _print_calls(otherwise: list[JudgedCall]) -> None:
    if not otherwise:
        typer.echo("no call would have gone otherwise")
    for each in otherwise:
        line = f"{each.before} -> {each.answer} ({each.rule})"
        call = f"{each.tool} {arguments(each.arguments, 80)}"
        typer.echo(f"{each.session} {each.effect}  {line}  {call}")
