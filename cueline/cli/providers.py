"""`cueline providers` and `cueline models`: what can answer as a model here."""

from dataclasses import asdict
from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.option import JsonOption
from cueline.cli.settings_context import settings_context_of
from cueline.client.providers import ProviderRow, models_of, provider_rows
from cueline.console.table import print_table
from cueline.console.text import count, json_of, visible


def providers(ctx: typer.Context, *, as_json: JsonOption = False) -> None:
    """List the providers: whether each has a key here, its default model, what it can do.

    An installed package can add one: see the guide "Add a provider". Keys are never
    shown, only where they come from.

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
    """List the models that a provider's server has.

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
    """Name what it can do, or why it cannot be used."""
    if row.problem or row.capabilities is None:
        return f"cannot be used: {row.problem}"
    able = asdict(row.capabilities)
    return ", ".join(
        name.replace("_", " ") for name, can in able.items() if can and name != "needs_key"
    )
