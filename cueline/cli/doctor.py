"""`cueline doctor`: check whether this machine can run agents, and show what to do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from cueline.cli import doctor_checks
from cueline.cli.doctor_checks import DoctorFinding
from cueline.cli.failure import Exit
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.cli.settings_context import SettingsContext, settings_context_of
from cueline.console.text import json_of, visible
from cueline.events.log_url import LogUrl

_MARKS = {"good": "✓", "warn": "!", "bad": "✗"}


def doctor(
    ctx: typer.Context,
    *,
    agent: Annotated[
        Path | None,
        typer.Option("--agent", "-a", help="Check this agent's models.", metavar="FILE"),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Also check the nodes of this Ray cluster."),
    ] = None,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Check this machine: cueline, Python, SQLite, disk, isolation, Ray, keys; show what to do.

    It also lists models that their vendor will end: those of cueline.toml, or with
    --agent those of an agent. Keys are never shown. The exit code is 1 if a problem
    was found.

    \b
    Examples:
      cueline doctor
      cueline doctor --agent agent.toml
      cueline doctor --address 10.0.0.5:6379
      cueline doctor --log /data/log.db --json
    """
    findings = list(_look(log, agent, settings_context_of(ctx)))
    if address is not None:
        findings.append(doctor_checks.nodes(address))
    if as_json:
        typer.echo(json_of([each._asdict() for each in findings], indent=2))
    else:
        for each in findings:
            typer.echo(visible(f"{_MARKS[each.verdict]} {each.subject}: {each.found}"))
            if each.advice:
                typer.echo(visible(f"    {each.advice}"))
    bad = any(each.verdict == "bad" for each in findings)
    raise typer.Exit(Exit.FAILED if bad else Exit.DONE)


def _look(log: LogUrl, agent: Path | None, outside: SettingsContext) -> Iterator[DoctorFinding]:
    yield from doctor_checks.package()
    yield doctor_checks.python()
    yield doctor_checks.sqlite()
    yield from doctor_checks.disk(log)
    yield doctor_checks.log(log)
    yield doctor_checks.temporary()
    yield doctor_checks.isolation()
    yield doctor_checks.held_changes()
    yield from doctor_checks.ray()
    yield doctor_checks.ports(log)
    yield from doctor_checks.telemetry(log, outside)
    yield from doctor_checks.keys(outside)
    yield from doctor_checks.models(agent, outside)
