"""`cueline policy`: whether a policy means something, and what it would have done."""

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cueline.cli import opened
from cueline.cli.failure import Exit
from cueline.cli.moment import moment
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.console.text import arguments, count, json_of, visible
from cueline.errors import ConfigError
from cueline.events.log_url import LogUrl

if TYPE_CHECKING:
    from cueline.config.problem import Problem
    from cueline.deciders.backtest import Backtest, Finding
    from cueline.events.agent import Policy
    from cueline.events.store import RecordedEvent

_GROUP = """Check a policy, or try it on the past.

\b
Examples:
  cueline policy check agent.toml
  cueline policy backtest stricter.toml --since 30d
"""
_CHECK = """Say whether a policy can mean what it says: each fault with its key and the reason.

FILE is an agent file, or a file with the keys of its [policy] alone. It exits
with 1 when there is a fault.

\b
Example:
  cueline policy check agent.toml
"""
_BACKTEST = """Judge the calls of the past by another policy, and change nothing.

It lists how many calls would have been denied, asked about or allowed, by
which rule, what really became of them, and what calls that simply ran, and now
would not, were estimated to cost. With --calls it lists those calls one by one.

\b
Examples:
  cueline policy backtest stricter.toml --since 30d
  cueline policy backtest agent.toml --calls --json
"""

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="An agent file, or a policy alone.")
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help=_GROUP, no_args_is_help=True, rich_markup_mode=None)
    group.command("check", help=_CHECK, short_help="Say what is wrong with a policy.")(check)
    group.command("backtest", help=_BACKTEST, short_help="Try a policy on the past.")(backtest)
    app.add_typer(group, name="policy", short_help="Check a policy; try it on the past.")


def check(file: FileArgument, *, as_json: JsonOption = False) -> None:
    """Look for faults."""
    policy, found = read_policy(file)
    if as_json:
        typer.echo(json.dumps([{"file": str(file), **each._asdict()} for each in found], indent=2))
    elif found:
        for each in found:
            typer.echo(visible(f"{file}: {each}"), err=True)
    else:
        _print_rules(file, policy)
    raise typer.Exit(Exit.FAILED if found else Exit.DONE)


def read_policy(file: Path) -> tuple["Policy", list["Problem"]]:
    """Return the policy in *file*, and all that is wrong with it, by its key there."""
    from cueline.config.layer import read_table, read_toml
    from cueline.config.problem import Problem
    from cueline.deciders.policy_fault import faults
    from cueline.events.agent import Policy

    try:
        table = read_toml(file, "policy file")
    except ConfigError as error:
        return Policy(), [Problem("", error.reason)]
    alone = not {"provider", "policy"} & table.keys()
    layer, found = read_table({"policy": table if alone else table.get("policy", {})}, file)
    policy = Policy(**{key.removeprefix("policy."): each.value for key, each in layer.items()})
    if not found:
        found = [Problem(f"policy.{key}", reason) for key, reason in faults(policy)]
    if not found and "provider" in table:
        return _policy_of_agent(table, file)
    if alone:
        found = [Problem(each.key.removeprefix("policy."), each.reason) for each in found]
    return policy, found


def _policy_of_agent(table: dict[str, Any], file: Path) -> tuple["Policy", list["Problem"]]:
    """Return the policy as it holds for its agent, and what is wrong with it for the tools.

    A check runs no code of theirs; where a tool's name is known only by that, it says so.
    """
    from cueline.agent import agent_in
    from cueline.config.problem import Problem
    from cueline.deciders.policy_fault import faults
    from cueline.events.agent import Policy

    try:
        agent = agent_in(table, file).agent
        names = agent.tool_names()
    except ConfigError as error:
        return Policy(), [Problem("", error.reason)]
    if unknown := [tool for tool, name in names.items() if name is None]:
        told = f"the names of these tools are known only when their code runs: {', '.join(unknown)}"
        typer.echo(visible(f"{file}: {told}; `tools` of rules was not checked"), err=True)
    known = None if unknown else [name for name in names.values() if name is not None]
    found = [Problem(f"policy.{key}", reason) for key, reason in faults(agent.policy, known)]
    return agent.whole_policy, found


def _print_rules(file: Path, policy: "Policy") -> None:
    from cueline.deciders.policy import rules_of

    rules = rules_of(policy)
    told = f"{count(len(rules), 'rule')}, the strongest that fits counts"
    typer.echo(visible(f"{file}: nothing is wrong with it; {told}"))
    width = max((len(rule.name) for rule in rules), default=0)
    for rule in rules:
        names = sorted(rule.model_fields_set - {"name", "answer"})
        said = rule.model_dump(mode="json")
        by = ", ".join(f"{name} = {json_of(said[name])}" for name in names)
        typer.echo(f"  {rule.answer:6}  {rule.name:{width}}  {by}".rstrip())


def backtest(
    file: FileArgument,
    *,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only from then on: 30d, 12h, 2026-01-31."),
    ] = None,
    calls: Annotated[
        bool, typer.Option("--calls", help="List the calls that would have gone otherwise.")
    ] = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Judge the past."""
    from cueline.deciders.backtest import summed

    policy, problems = read_policy(file)
    if problems:
        raise ConfigError(str(file), str(problems[0]))
    found = list(opened.run(judged(log, policy, moment("--since", since))).findings)
    if calls:
        _tell_calls(found, as_json=as_json)
        return
    sums = [_document(each) for each in summed(found)]
    if as_json:
        typer.echo(json.dumps(sums, indent=2))
    else:
        _print_sums(sums)


async def judged(log: LogUrl, policy: "Policy", since: datetime | None) -> "Backtest":
    """Try *policy* on the past that a log holds; the calls since then count."""
    from cueline.cli.reading import journal_of
    from cueline.deciders.backtest import Backtest
    from cueline.events.store import to_us

    since_us = to_us(since) if since else 0
    test = Backtest(policy)
    async with opened.looking(log) as store:
        journal = journal_of(store)
        async for recorded in store.read_all(0, {"session"}):
            if _says_something(recorded):
                fact = await journal.told(recorded)
                test.add(recorded.stream, fact, counts=recorded.recorded_us >= since_us)  # type: ignore[arg-type]  # a session's stream holds these
    return test


def _says_something(recorded: "RecordedEvent") -> bool:
    """Whether an event is worth decoding; a reply without calls is not."""
    from cueline.deciders.backtest import NEEDED

    payload = recorded.payload
    if recorded.type not in NEEDED or payload is None:
        return False
    return recorded.type != "ModelReplied" or b'"calls":[{' in payload


def _document(each: Any) -> dict[str, Any]:
    return {
        "answer": each.answer,
        "rule": each.rule,
        "tool": each.tool,
        "before": each.before,
        "calls": each.calls,
        "ran": each.ran,
        "stopped_usd": str(each.stopped_usd),
    }


def _print_sums(sums: list[dict[str, Any]]) -> None:
    from decimal import Decimal

    from cueline.console.table import print_table

    if not sums:
        typer.echo("no calls of tools were found")
        return
    head = ("would be", "by rule", "tool", "was", "calls", "ran", "estimated $")
    names = ("answer", "rule", "tool", "before", "calls", "ran", "stopped_usd")
    print_table(head, [tuple(str(each[name]) for name in names) for each in sums])
    held = sum((Decimal(each["stopped_usd"]) for each in sums), Decimal(0))
    typer.echo(f"calls that ran unasked, and would not have: ${held} by the tools' own estimates")


def _tell_calls(found: list["Finding"], *, as_json: bool) -> None:
    from cueline.events.stream import shown

    changed = {
        "allowed": ("ask", "deny"),
        "asked": ("allow", "notify", "deny"),
        "denied": ("allow", "notify", "ask"),
    }
    otherwise = [each for each in found if each.judged.answer in changed[each.before]]
    if not otherwise and not as_json:
        typer.echo("no call would have gone otherwise")
    for each in otherwise:
        if as_json:
            told = {
                "session": shown(each.session),
                "effect": each.effect,
                "tool": each.call.name,
                "arguments": each.call.arguments,
                "before": each.before,
                "answer": each.judged.answer,
                "rule": each.judged.rule,
                "ran": each.ran,
            }
            typer.echo(json_of(told))
        else:
            line = f"{each.before} -> {each.judged.answer} ({each.judged.rule})"
            call = f"{each.call.name} {arguments(each.call.arguments, 80)}"
            typer.echo(f"{shown(each.session)} {each.effect}  {line}  {call}")
