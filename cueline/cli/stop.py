"""`cueline stop`: end a session, also one that nobody drives."""

import json
from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, SessionArgument, TreeOption
from cueline.cli.terminal import is_attended
from cueline.cli.trust import check_log_is_known
from cueline.client.receipt import StopReceipt
from cueline.console.text import visible


def stop(
    ctx: typer.Context,
    session: SessionArgument,
    *,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Recorded, and shown.")] = "",
    tree: TreeOption = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """End a session. Tools get 5 s, are terminated, and killed 5 s later.

    The process that drives it is asked to end it. If there is none, this command
    ends it: that needs no key, tool, secret or workspace. Calls whose outcome
    nobody knows are named. Asking twice is asking once. The sessions that it waits
    for end with it; --tree also ends the others below it.

    \b
    Example:
      cueline stop 7f3a --reason "wrong folder"
      cueline stop 7f3a --tree
    """
    check_log_is_known(ctx, log, asks=is_attended() and not as_json)
    for receipt in open_log.wish_of_tree(
        log, session, lambda client, each: client.stop(each, reason), tree=tree
    ):
        if as_json:
            typer.echo(json.dumps(receipt.to_json()))
        else:
            _print(receipt)


def _print(receipt: StopReceipt) -> None:
    typer.echo(f"{receipt.session}: {_what_happened(receipt)}")
    ended = receipt.status in ("completed", "failed", "stopped")
    for effect, tool in receipt.in_doubt.items() if ended else ():
        typer.echo(visible(f"? {effect} {tool} is in doubt: it may or may not have run"))


def _what_happened(receipt: StopReceipt) -> str:
    if receipt.ended_before:
        return f"it has ended already: {receipt.status}"
    if receipt.status == "stopped":
        return "stopped"
    return "asked to stop" if receipt.recorded else "it was asked to stop before"
