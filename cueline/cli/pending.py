"""`cueline pending`: list the questions that wait for a person."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from cueline.cli import open_log
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, completions
from cueline.cli.up_lookup import command
from cueline.client.open_read_models import Page
from cueline.client.reader import Reader
from cueline.client.rows import PendingRow, choices
from cueline.console.question import Question, answer_text, whole
from cueline.console.screen import Screen
from cueline.console.table import print_table
from cueline.console.text import Line, arguments, duration, json_of, one_line, visible
from cueline.errors import NotPendingError
from cueline.events.event_text import QUESTIONS
from cueline.events.input_request import InputRequest, request_text
from cueline.events.log_url import LogUrl
from cueline.tools.folder import REACHES_LOG

_WORDS = {
    "happened": ("approve", "--happened"),
    "run_again": ("approve", "--run-again"),
    "do_not_run": ("deny",),
}
ASKED = "nobody knows whether this call took effect; answer with one of"


def answers(log: LogUrl, approval: str) -> list[dict[str, str]]:
    """Return each answer with its code, its effect, and its command.

    The answer `--happened` may also have `--result TEXT`.
    """
    told = []
    for each in choices():
        verb, *flags = _WORDS[each.resolution]
        way = command(log, verb, approval, *flags)
        told.append({"resolution": each.resolution, "then": each.then, "command": way})
    return told


def answer_lines(log: LogUrl, approval: str) -> list[str]:
    """Return each answer as a command line to paste, with its effect as a comment."""
    said = answers(log, approval)
    width = max(len(each["command"]) for each in said)
    more = {"happened": " (--result TEXT)"}
    return [
        f"  {each['command']:{width}}  # {each['then']}{more.get(each['resolution'], '')}"
        for each in said
    ]


_WIDTH = 80
"""The shown characters of a call's arguments in the list."""


def complete_approval(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the pending approvals that begin with the typed text, for shell completion."""

    async def names(reader: Reader) -> list[str]:
        return [each.id for each in await reader.pending()]

    return completions(ctx, incomplete, names)


def pending(
    approval: Annotated[
        str | None,
        typer.Argument(
            help="Show this one whole.",
            metavar="APPROVAL",
            autocompletion=complete_approval,
        ),
    ] = None,
    *,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """List the approvals that wait for a person's decision, the most urgent first.

    The list cuts long calls. With APPROVAL you see the whole arguments and the whole change.

    An approval that was decided while no process runs is marked: the decision counts
    when a process next drives the session.

    \b
    Examples:
      cueline pending
      cueline pending 7f3a.3.0.1
      cueline pending --json | jq -r '.[].id'
    """
    waiting = open_log.ask(log, lambda reader: reader.pending())
    if approval is not None:
        if (found := find(waiting, approval)) is None:
            raise NotPendingError(approval, "it does not wait; `cueline pending` lists what does")
        waiting = replace(waiting, rows=(found,))
    if as_json:
        documents = [document_of(each, log) for each in open_log.rows(waiting)]
        typer.echo(json_of(documents, indent=2))
    elif approval is not None:
        print_whole(waiting.rows[0])
    elif waiting:
        _print(waiting, log)
    else:
        typer.echo("nothing waits for a decision")
    open_log.end_of(waiting)


def answer_command(log: LogUrl, approval: str, requests: Sequence[InputRequest]) -> str:
    """Return the command that answers what a call asks for, with the names of its values."""
    names = [name for each in requests for name in each.values]
    words = [f"--answer {name}=…" for name in names] if len(names) > 1 else ["--answer …"]
    return f"{command(log, 'approve', approval)} {' '.join(words)}"


def find(waiting: Iterable[PendingRow], approval: str) -> PendingRow | None:
    """Return the pending question *approval*; None if it is not pending."""
    return next((each for each in waiting if each.id == approval), None)


def is_cut(asked: PendingRow) -> bool:
    """Whether the list shows only a part of the call's arguments or change."""
    return bool(asked.preview) or arguments(asked.arguments, _WIDTH).endswith("…")


def print_whole(asked: PendingRow) -> None:
    """Print the whole call."""
    question = Question(
        approval=asked.id,
        session=asked.session,
        tool=asked.tool,
        arguments=asked.arguments,
        deadline_at=asked.deadline_at,
        preview=asked.preview,
    )
    screen = Screen()
    screen.show([Line("note", f"{asked.tool} in session {asked.session}")])
    screen.draw(whole(question))


def document_of(row: dict[str, Any], log: LogUrl) -> dict[str, Any]:
    """Return a row with the commands that give each answer."""
    return {**row, "choices": answers(log, row["id"]) if row["choices"] else []}


def time_left(asked: PendingRow, now: datetime) -> str:
    """Return the time left to answer."""
    if asked.deadline_at <= now:
        return "over"
    left = ((asked.auto_at or asked.deadline_at) - now).total_seconds()
    # The call is granted when a process drives its session, and can be denied before.
    told = duration(left) if left > 0 else "until it goes on"
    return f"{told}, then granted" if asked.auto_at else told


def _print(waiting: Page[PendingRow], log: LogUrl) -> None:
    now = datetime.now(UTC)
    rows, cut = [], False
    for each in waiting:
        asked = QUESTIONS[each.question]
        if each.votes_needed > 1:
            asked = f"{asked} ({each.votes} of {each.votes_needed} said yes)"
        if each.given:
            answered = answer_text(each.given, each.resolution)
            said = f"{answered} by {one_line(each.given_by or '', 60)}, not read yet"
            # The session has to read the answer; with several votes, others have to answer, too.
            others = each.given == "grant" and each.votes_needed > 1
            asked = f"{asked}; {said}" if others else said
        given = arguments(each.arguments, _WIDTH)
        cut = cut or is_cut(each)
        cost = f", about ${each.estimated_cost}" if each.estimated_cost else ""
        called = f"{each.tool} {given}{cost}"
        rows.append((each.id, each.session, asked, time_left(each, now), called))
    print_table(("approval", "session", "question", "time left", "call"), rows)
    if cut:
        shown = command(log, "pending", "APPROVAL")
        typer.echo(f"a call that ends in … is cut; see it and its change whole with\n  {shown}")
    for each in waiting:
        if each.question == "did_it_happen" and not each.given:
            typer.echo(f"{each.id}: {one_line(each.rationale, 400)}")
            for line in answer_lines(log, each.id):
                typer.echo(line)
        elif each.requests and not each.given:
            requests = [InputRequest.model_validate(request) for request in each.requests]
            typer.echo(visible(f"{each.id}: {'; '.join(map(request_text, requests))}"))
            typer.echo(f"  {answer_command(log, each.id, requests)}")
        elif each.preview.startswith(REACHES_LOG):
            typer.echo(f"{each.id}: {one_line(each.preview.splitlines()[0], 400)}")
