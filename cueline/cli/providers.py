"""`cueline providers`, `models` and `keys`: list providers and models, and store keys."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer
from pydantic import SecretStr

from cueline.cli import open_log
from cueline.cli.option import JsonOption
from cueline.cli.settings_context import settings_context_of
from cueline.client.keys import KeyReceipt, KeyRow, remove_key, set_key, stored_keys
from cueline.client.providers import ProviderRow, models_of, provider_rows
from cueline.console.table import print_table
from cueline.console.text import count, date_time, json_of, visible
from cueline.files import read_to_end
from cueline.providers.registry import provider_named


def providers(ctx: typer.Context, *, as_json: JsonOption = False) -> None:
    """List the providers, with their keys here, default models and abilities.

    An installed package can add one: see the guide "Add a provider". Keys are never
    shown, only their sources.

    \b
    Examples:
      cueline providers
      cueline providers --json
    """
    open_log.print_answer(
        provider_rows(settings_of=settings_context_of(ctx).of_provider), _print, as_json=as_json
    )


def models(
    ctx: typer.Context,
    provider: Annotated[
        str, typer.Argument(metavar="PROVIDER", help="A provider of `cueline providers`.")
    ],
    *,
    as_json: JsonOption = False,
) -> None:
    """List the models of a provider's server.

    \b
    Examples:
      cueline models PROVIDER
      cueline models PROVIDER --json
    """
    found = open_log.run(models_of(provider, settings_of=settings_context_of(ctx).of_provider))
    if as_json:
        typer.echo(json_of(found, indent=2))
        return
    for name in found:
        typer.echo(visible(name))
    if not found:
        typer.echo(f"{visible(provider)} has {count(0, 'model')}", err=True)


def _print(rows: tuple[ProviderRow, ...]) -> None:
    cells = [
        (each.name, _key(each), each.model or "-", each.base_url or "-", _abilities(each))
        for each in rows
    ]
    print_table(("provider", "key", "default model", "address", "can"), cells)


def _key(row: ProviderRow) -> str:
    return row.key or ("missing" if row.needs_key else "not needed")


def _abilities(row: ProviderRow) -> str:
    """Return the abilities of a provider, or the reason why it cannot be used."""
    if row.problem or row.capabilities is None:
        return f"cannot be used: {row.problem}"
    able = asdict(row.capabilities)
    return ", ".join(
        name.replace("_", " ") for name, can in able.items() if can and name != "needs_key"
    )


_GROUP = """Store the keys of providers on this machine, encrypted.

A session uses the stored key of the user who started it, else the one that is
stored for all users, else the provider's environment variable. A key that is
replaced counts for the next call. No command shows a stored key.

\b
Examples:
  cueline keys set PROVIDER
  cueline keys list
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


group = typer.Typer(help=_GROUP, no_args_is_help=True)


@group.command("set", short_help="Store a provider's key.")
def set_one(
    provider: ProviderArgument, *, user: UserOption = "", as_json: JsonOption = False
) -> None:
    """Store a key, which the command asks for without showing it, or reads from stdin.

    A former key of the same provider and user is replaced. The master key is
    CUELINE_ENCRYPTION_KEY, else a file that only you can read, created at first use.

    \b
    Examples:
      cueline keys set PROVIDER
      cueline keys set PROVIDER --user ann < key.txt
    """
    provider_named(provider)  # before anybody is asked
    receipt = set_key(provider, _typed_key(provider), user=user, now=datetime.now(UTC))
    open_log.print_answer(receipt, _print_stored, as_json=as_json)


def _print_stored(receipt: KeyReceipt) -> None:
    done = "stored" if receipt.version == 1 else "replaced"
    whose = f"{receipt.provider}{_whose(receipt.user)}"
    typer.echo(visible(f"{done} the key of {whose} in {receipt.path}"))
    typer.echo(visible(f"the master key is {receipt.master_key}"))


@group.command("list", short_help="List the stored keys.")
def list_all(*, as_json: JsonOption = False) -> None:
    """List the stored keys: provider, user, version, and when each was stored.

    \b
    Example:
      cueline keys list --json
    """
    empty = "no key is stored; `cueline keys set PROVIDER` stores one"
    open_log.print_answer(stored_keys(), _print_key, as_json=as_json, empty=empty)


def _print_key(stored: Sequence[KeyRow]) -> None:
    rows = [
        (each.provider, each.user or "all", str(each.version), date_time(each.set_at))
        for each in stored
    ]
    print_table(("provider", "user", "version", "stored"), rows)


@group.command("remove", short_help="Remove a stored key.")
def remove(
    provider: ProviderArgument, *, user: UserOption = "", as_json: JsonOption = False
) -> None:
    """Remove a stored key.

    \b
    Example:
      cueline keys remove PROVIDER --user ann
    """
    remove_key(provider, user=user)
    if as_json:
        typer.echo(json_of({"provider": provider, "user": user, "removed": True}))
    else:
        typer.echo(visible(f"removed the key of {provider}{_whose(user)}"))


def _typed_key(provider: str) -> SecretStr:
    if sys.stdin.isatty():
        return SecretStr(typer.prompt(f"Key of {provider}", hide_input=True, err=True).strip())
    return SecretStr(read_to_end(sys.stdin, "the key").strip())


def _whose(user: str) -> str:
    return f" for {user}" if user else ""
