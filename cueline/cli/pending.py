"""`cueline pending`: what waits for a person."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cueline.cli import opened
from cueline.cli.naming import log_of
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.console.text import arguments, duration, json_of, one_line
from cueline.errors import CuelineError

if TYPE_CHECKING:
    from cueline.projections.approval import Approval

_HELP = """List what waits for a person's decision, the most urgent first.

What was decided while nothing runs is marked: it counts when the session is
next driven.

\b
Examples:
  cueline pending
  cueline pending --json | jq -r '.[].id'
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("pending", help=_HELP, short_help="List the approvals that wait.")(pending)


def pending(*, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False) -> None:
    """List approvals."""
    opened.run(_list(log, as_json=as_json))


async def _list(log: Path, *, as_json: bool) -> None:
    async with _waiting(log) as waiting:
        if as_json:
            documents = [_document(each, log) for each in waiting]
            typer.echo(json_of(documents, indent=2))
        elif waiting:
            _print(waiting, log)
        else:
            typer.echo("nothing waits for a decision")


def complete_approval(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the pending approvals that begin with what was typed, for the shell."""

    async def find() -> list[str]:
        async with _waiting(log_of(ctx)) as waiting:
            return [each.id for each in waiting if each.id.startswith(incomplete)]

    try:
        return opened.run(find())
    except CuelineError:
        return []


@asynccontextmanager
async def _waiting(log: Path) -> AsyncIterator[list["Approval"]]:
    from cueline.projections.approval import pending_approvals

    async with opened.looking(log) as store, opened.views_of(log, store) as views:
        yield pending_approvals(views.db)


def _document(approval: "Approval", log: Path) -> dict[str, Any]:
    from cueline.cli.resolution import answers
    from cueline.events.stream import shown

    in_doubt = approval.question == "did_it_happen"

    return {
        "id": approval.id,
        "session": shown(approval.session),
        "effect": approval.effect,
        "question": approval.question,
        "tool": approval.tool,
        "arguments": json.loads(approval.arguments_json),
        "summary": approval.summary,
        "digest": approval.digest,
        "preview": approval.preview,
        "rationale": approval.rationale,
        "rule": approval.rule,
        "usd": approval.usd or None,
        "votes": approval.votes,
        "votes_needed": approval.votes_needed,
        "deadline_at": approval.deadline_at.isoformat(),
        "auto_at": approval.auto_at.isoformat() if approval.auto_at else None,
        "given": approval.given or None,
        "given_by": approval.given_by or None,
        "resolution": approval.resolution or None,
        "answers": answers(log, approval.id) if in_doubt else None,
    }


def time_left(asked: "Approval", now: datetime) -> str:
    """Say how long a person can answer."""
    if asked.deadline_at <= now:
        return "over"
    left = ((asked.auto_at or asked.deadline_at) - now).total_seconds()
    # It is granted when somebody drives its session, and can be denied before.
    told = duration(left) if left > 0 else "until it goes on"
    return f"{told}, then granted" if asked.auto_at else told


def _print(waiting: list["Approval"], log: Path) -> None:
    from cueline.cli.deciding import done
    from cueline.cli.resolution import answer_lines
    from cueline.cli.running import command
    from cueline.console.table import print_table
    from cueline.events.stream import shown
    from cueline.tools.log_reach import REACHES_LOG

    now = datetime.now(UTC)
    rows, cut = [], False
    for each in waiting:
        asked = "did it happen?" if each.question == "did_it_happen" else "may it run?"
        if each.votes_needed > 1:
            asked = f"{asked} ({each.votes} of {each.votes_needed} said yes)"
        if each.given:
            answered = done(each.given, each.resolution)
            said = f"{answered} by {one_line(each.given_by, 60)}, not read yet"
            # It waits for the session, not for a person; but of several people one is not all.
            others = each.given == "grant" and each.votes_needed > 1
            asked = f"{asked}; {said}" if others else said
        given = arguments(json.loads(each.arguments_json), 80)
        cut = cut or given.endswith("…")
        cost = f", about ${each.usd}" if each.usd else ""
        called = f"{each.tool} {given}{cost}"
        rows.append((each.id, shown(each.session), asked, time_left(each, now), called))
    print_table(("approval", "session", "question", "time left", "call"), rows)
    if cut:
        whole = command(log, "pending", "--json")
        typer.echo(f"a call that ends in … is cut; see it whole with\n  {whole}")
    for each in waiting:
        if each.question == "did_it_happen" and not each.given:
            typer.echo(f"{each.id}: {one_line(each.rationale, 400)}")
            for line in answer_lines(log, each.id):
                typer.echo(line)
        elif each.preview.startswith(REACHES_LOG):
            typer.echo(f"{each.id}: {one_line(each.preview.splitlines()[0], 400)}")
