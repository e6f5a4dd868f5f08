"""`cueline send`, `pause` and `stop`: send a message to a session."""

import json
from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.option import (
    DEFAULT_LOG,
    AttachOption,
    JsonOption,
    LogOption,
    SessionArgument,
    TreeOption,
)
from cueline.cli.terminal import is_attended, text_or_stdin
from cueline.cli.trust import check_log_is_known
from cueline.cli.up_lookup import print_receipt
from cueline.client.receipt import PauseReceipt, StopReceipt
from cueline.console.text import visible
from cueline.events.inbox import Lane
from cueline.events.status import TERMINAL


def send(
    session: SessionArgument,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The text; `-` reads it from stdin.")
    ] = None,
    *,
    model: Annotated[
        str | None,
        typer.Option(
            help="Give the agent this model; NAME alone keeps its provider.",
            metavar="PROVIDER/NAME",
        ),
    ] = None,
    note: Annotated[
        bool, typer.Option("--note", help="With the next model call (default).")
    ] = False,
    steer: Annotated[
        bool, typer.Option("--steer", help="Instead of the rest of the turn.")
    ] = False,
    followup: Annotated[bool, typer.Option("--followup", help="When it would be done.")] = False,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="The message of that name, JSON or text.")
    ] = "",
    attach: AttachOption = None,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Send a message to a session's inbox; it counts even if no process runs.

    The model gets a note with its next call. A steer ends the rest of the turn:
    calls that have not started are skipped. A followup waits until the session
    would otherwise be done.

    With --name it is the message for a waiting step of a plan: JSON or text,
    which becomes the value of the step.

    With --model the agent gets another model, from its next request on. A running
    model call is finished first, tool calls continue. Another provider begins
    without the parameters of the former one.

    \b
    Examples:
      cueline send 7f3a "The deadline is Friday"
      cueline send 7f3a --steer "Stop editing; only report"
      git diff | cueline send 7f3a --followup -
      cueline send 7f3a "What is wrong here?" --attach screen.png
      cueline send 7f3a --name go '{"target": "staging"}'
      cueline send 7f3a --model PROVIDER/NAME
    """
    asked: tuple[tuple[Lane, bool], ...] = (
        ("note", note),
        ("steer", steer),
        ("followup", followup),
    )
    lanes = [lane for lane, chosen in asked if chosen]
    if len(lanes) > 1:
        raise typer.BadParameter(f"--{lanes[0]} and --{lanes[1]} exclude each other")
    lane = lanes[0] if lanes else "note"
    if text is None:
        if model is None or lanes:
            raise typer.BadParameter("say something: TEXT is missing")
        receipt = open_log.wish(log, lambda client: client.switch_model(session, model))
        told = f"{receipt.session}: it goes on with {visible(model)} from its next request on"
        print_receipt(log, receipt, told, as_json=as_json)
        return
    said = text_or_stdin(text)
    receipt = open_log.wish(
        log,
        lambda client: client.send(
            session, said, lane, attachments=attach or (), model=model, name=name
        ),
    )
    told = f"the message {visible(name)}" if name else f"a {lane}"
    print_receipt(log, receipt, f"{receipt.session}: sent as {told}", as_json=as_json)


def pause(
    session: SessionArgument,
    *,
    tree: TreeOption = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Ask a session to pause: no call starts, running calls finish.

    You can repeat the command. `cueline resume` continues the session. With --tree
    all its descendants pause, too.

    \b
    Examples:
      cueline pause 7f3a
      cueline pause 7f3a --tree
    """
    for receipt in open_log.wish_of_tree(
        log, session, lambda client, each: client.pause(each), tree=tree
    ):
        text = f"{receipt.session}: {_what_happens(receipt)}"
        print_receipt(log, receipt, text, as_json=as_json)


def _what_happens(receipt: PauseReceipt) -> str:
    if receipt.recorded:
        return "asked to pause"
    if not receipt.why:
        return "it was asked to pause before"
    if receipt.in_flight:
        return "it was asked to pause before; what is in flight finishes first"
    return f"it is paused already: {receipt.why}"


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

    The process that drives the session ends it. Without such a process, this command
    does: that needs no key, tool, secret or workspace. Calls of unknown outcome are
    named. You can repeat the command. Children for which the session waits end with
    it; --tree also ends its other descendants.

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
            _print_stop(receipt)


def _print_stop(receipt: StopReceipt) -> None:
    typer.echo(f"{receipt.session}: {_what_happened(receipt)}")
    ended = receipt.status in TERMINAL
    for effect, tool in receipt.in_doubt.items() if ended else ():
        typer.echo(visible(f"? {effect} {tool} is in doubt: it may or may not have run"))


def _what_happened(receipt: StopReceipt) -> str:
    if receipt.ended_before:
        return f"it has ended already: {receipt.status}"
    if receipt.status == "stopped":
        return "stopped"
    return "asked to stop" if receipt.recorded else "it was asked to stop before"
