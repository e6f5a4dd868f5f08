"""`cueline keys`: store the keys of providers, encrypted; nothing shows them again."""

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from cueline.cli.option import JsonOption
from cueline.console.text import date_time, json_of, visible

if TYPE_CHECKING:
    from pydantic import SecretStr

_GROUP = """Store the keys of providers on this machine, encrypted.

A session uses the stored key of the user who started it, else the one that is
stored for all users, else the provider's environment variable. A key that is
replaced counts for the next call. No command shows a stored key.

\b
Examples:
  cueline keys set PROVIDER
  cueline keys list
"""
_SET = """Store a key: it is asked for, and not shown; or it is read from stdin.

A former key of the same provider and user is replaced. The master key is
CUELINE_ENCRYPTION_KEY, else a file that only you can read, made at first use.

\b
Examples:
  cueline keys set PROVIDER
  cueline keys set PROVIDER --user ann < key.txt
"""
_LIST = """List the stored keys: provider, user, version, and when each was stored.

\b
Example:
  cueline keys list --json
"""
_REMOVE = """Remove a stored key.

\b
Example:
  cueline keys remove PROVIDER --user ann
"""

ProviderArgument = Annotated[
    str, typer.Argument(metavar="PROVIDER", help="A provider of `cueline providers`.")
]
UserOption = Annotated[
    str,
    typer.Option(
        "--user", metavar="NAME", help="For the sessions of this user, instead of all users."
    ),
]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help=_GROUP, no_args_is_help=True, rich_markup_mode=None)
    group.command("set", help=_SET, short_help="Store a provider's key.")(set_one)
    group.command("list", help=_LIST, short_help="List the stored keys.")(list_all)
    group.command("remove", help=_REMOVE, short_help="Remove a stored key.")(remove)
    app.add_typer(group, name="keys", short_help="Store the keys of providers.")


def set_one(
    provider: ProviderArgument, *, user: UserOption = "", as_json: JsonOption = False
) -> None:
    from cueline.client.keys import set_key
    from cueline.providers.registry import provider_named

    provider_named(provider)  # before anybody is asked
    receipt = set_key(provider, _typed_key(provider), user=user, now=datetime.now(UTC))
    if as_json:
        typer.echo(json_of(asdict(receipt), indent=2))
        return
    done = "stored" if receipt.version == 1 else "replaced"
    typer.echo(visible(f"{done} the key of {provider}{_whose(user)} in {receipt.path}"))
    typer.echo(visible(f"the master key is {receipt.master_key}"))


def list_all(*, as_json: JsonOption = False) -> None:
    from cueline.client.document import document
    from cueline.client.keys import stored_keys
    from cueline.console.table import print_table

    rows = stored_keys()
    if as_json:
        typer.echo(json_of([document(each) for each in rows], indent=2))
    elif rows:
        cells = [
            (each.provider, each.user or "all", str(each.version), date_time(each.set_at))
            for each in rows
        ]
        print_table(("provider", "user", "version", "stored"), cells)
    else:
        typer.echo("no key is stored; `cueline keys set PROVIDER` stores one")


def remove(
    provider: ProviderArgument, *, user: UserOption = "", as_json: JsonOption = False
) -> None:
    from cueline.client.keys import remove_key

    remove_key(provider, user=user)
    if as_json:
        typer.echo(json_of({"provider": provider, "user": user, "removed": True}))
    else:
        typer.echo(visible(f"removed the key of {provider}{_whose(user)}"))


def _typed_key(provider: str) -> "SecretStr":
    from pydantic import SecretStr

    from cueline.text_input import read_to_end

    if sys.stdin.isatty():
        return SecretStr(typer.prompt(f"Key of {provider}", hide_input=True, err=True).strip())
    return SecretStr(read_to_end(sys.stdin, "the key").strip())


def _whose(user: str) -> str:
    return f" for {user}" if user else ""
