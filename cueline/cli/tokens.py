"""`cueline tokens`: the tokens by which programs and browsers show who they are."""

from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.client.tokens import (
    DAYS,
    SCOPES,
    NewToken,
    TokenRow,
    issue_code,
    issue_token,
    revoke_token,
    rotate_token,
    tokens,
)
from cueline.console.table import print_table
from cueline.console.text import date_time, visible

_SCOPES = "; ".join(f"{name}: {does}" for name, does in SCOPES.items())
_GROUP = """Issue, list, replace and revoke the tokens of a log.

\b
Examples:
  cueline tokens issue ada --scope send --scope approve
  cueline tokens invite ada --scope approve:write_file
  cueline tokens revoke 7f3a09kq
"""
PersonArgument = Annotated[
    str, typer.Argument(metavar="PERSON", help="The name that is recorded with each request.")
]
ScopeOption = Annotated[
    list[str], typer.Option("--scope", metavar="SCOPE", help=f"{_SCOPES}. Repeatable.")
]
TenantOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Only the sessions of this tenant; default: the whole log."),
]
TokenArgument = Annotated[
    str, typer.Argument(metavar="TOKEN", help="The id, as `cueline tokens list` shows it.")
]
DaysOption = Annotated[float, typer.Option(metavar="N", help="The days until it expires.")]
group = typer.Typer(help=_GROUP, no_args_is_help=True)


@group.command("issue", short_help="Issue a token for a program.")
def issue(
    person: PersonArgument,
    *,
    scope: ScopeOption,
    tenant: TenantOption = None,
    days: DaysOption = DAYS,
    note: Annotated[str, typer.Option(metavar="TEXT", help="What it is for.")] = "",
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Issue a token, and print it. The log keeps only its digest: nobody can print it again.

    \b
    Examples:
      cueline tokens issue ada --scope send --scope approve
      cueline tokens issue ci --scope read --days 365 --note "nightly report"
    """
    made = open_log.wish(
        log,
        lambda client: issue_token(
            client, person, scopes=scope, tenant=tenant, days=days, note=note
        ),
    )
    open_log.print_answer(made, _print_new, as_json=as_json)


@group.command("invite", short_help="Print a code that signs a browser in, once.")
def invite(
    person: PersonArgument,
    *,
    scope: ScopeOption,
    tenant: TenantOption = None,
    minutes: Annotated[
        float, typer.Option(min=1, max=1440, metavar="N", help="Valid so long.")
    ] = 5,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Print a code with which PERSON signs a browser in, once.

    It is typed at `/login` of the server, or follows `/login?code=` in a link.

    \b
    Example:
      cueline tokens invite ada --scope send --scope approve --minutes 60
    """
    made = open_log.wish(
        log,
        lambda client: issue_code(
            client, person, scopes=scope, tenant=tenant, seconds=60 * minutes
        ),
    )
    open_log.print_answer(made, _print_new, as_json=as_json)


@group.command("list", short_help="List the tokens, without their texts.")
def list_(*, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False) -> None:
    """List the tokens of the log, the newest first, without their texts.

    \b
    Example:
      cueline tokens list
    """
    found = open_log.wish(log, tokens)
    empty = f"no tokens in {log}; `cueline tokens issue` makes one"
    open_log.print_answer(found, _print, as_json=as_json, empty=empty)


@group.command("revoke", short_help="End a token at once.")
def revoke(
    token: TokenArgument, *, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False
) -> None:
    """End a token at once: its next request is refused.

    \b
    Example:
      cueline tokens revoke 7f3a09kq
    """
    ended = open_log.wish(log, lambda client: revoke_token(client, token))
    open_log.print_answer(
        ended,
        lambda row: typer.echo(visible(f"{row.id}: revoked; it was {row.person}'s")),
        as_json=as_json,
    )


@group.command("rotate", short_help="Replace a token; the old one counts for an hour more.")
def rotate(
    token: TokenArgument,
    *,
    days: DaysOption = DAYS,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Print a token with the same rights. The old one counts for an hour more.

    \b
    Example:
      cueline tokens rotate 7f3a09kq
    """
    made = open_log.wish(log, lambda client: rotate_token(client, token, days=days))
    open_log.print_answer(made, _print_new, as_json=as_json)


def _print_new(made: NewToken) -> None:
    typer.echo(made.text)
    typer.echo(f"id {made.id}, until {date_time(made.expires_at)}; keep it secret", err=True)


def _print(found: list[TokenRow]) -> None:
    rows = [
        (
            each.id,
            each.kind,
            each.person,
            " ".join(each.scopes),
            each.tenant or "",
            each.status,
            date_time(each.expires_at),
            each.note,
        )
        for each in found
    ]
    print_table(("token", "kind", "person", "scopes", "tenant", "status", "until", "note"), rows)
