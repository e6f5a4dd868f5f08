"""`cueline approve` and `deny`: answer a question that waits for a person."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import typer

from cueline.cli import open_log
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.cli.pending import (
    ASKED,
    answer_command,
    answer_lines,
    complete_approval,
    find,
    is_cut,
    print_whole,
)
from cueline.cli.terminal import is_attended
from cueline.cli.trust import check_log_is_known
from cueline.cli.up_lookup import print_receipt
from cueline.client.answer import answer_of
from cueline.client.client import Client
from cueline.client.decide import decision_of, question_of
from cueline.client.receipt import DecisionReceipt
from cueline.client.wishes import wish
from cueline.console.question import answer_text, edit_arguments
from cueline.errors import RejectedError
from cueline.events.input_request import request_text
from cueline.events.log_url import LogUrl

ApprovalArgument = Annotated[
    str,
    typer.Argument(
        help="The approval, as `cueline pending` names it.",
        metavar="APPROVAL",
        autocompletion=complete_approval,
    ),
]


def approve(
    ctx: typer.Context,
    approval: ApprovalArgument,
    *,
    edit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE|JSON", help="Change an argument, or all of them; repeatable."
        ),
    ] = None,
    always: Annotated[
        bool, typer.Option("--always", help="Do not ask again in this session.")
    ] = False,
    within: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Where --always holds; repeatable.")
    ] = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="A text for the agent; recorded.")] = "",
    happened: Annotated[
        bool, typer.Option("--happened", help="Of a call in doubt: it took effect.")
    ] = False,
    result: Annotated[
        str, typer.Option(metavar="TEXT", help="With --happened: the result of the call.")
    ] = "",
    answer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT|NAME=VALUE", help="The answer to what a call asks for; repeatable."
        ),
    ] = None,
    run_again: Annotated[
        bool, typer.Option("--run-again", help="Of a call in doubt: run it again.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not show a long call whole first.")
    ] = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Allow exactly one call of a tool, as it was shown.

    It works from any shell on the machine, also while no process runs: the decision
    waits in the log. An approval that is not pending is refused at once.

    A call in doubt ("did it happen?") takes one of three answers:

    \b
      approve --happened   It took effect. It does not run again; the agent gets
                           the text of --result as its result.
      approve --run-again  It runs again, even if it took effect before.
      deny                 It does not run again; the agent gets the result that the
                           outcome is unknown.

    A call that asks for something ("what is the answer?") goes on with --answer, or
    is refused by `deny`. A value is NAME=VALUE, or its text alone if there is one.

    An edit changes the arguments: exactly these run, and the agent gets them.
    At a terminal, a call that `pending` cuts is shown whole first, and confirmed.

    With --always the same tool is not asked about again in this session, with the
    same paths, or those of --within; a tool without paths, with these arguments.

    \b
    Examples:
      cueline approve 7f3a.3.0.1 --note "checked the list"
      cueline approve 7f3a.3.0.1 --edit path=notes/b.md --edit 'lines=[1, 2]'
      cueline approve 7f3a.3.0.1 --always --within 'notes/**'
      cueline approve 7f3a.3.0.2 --happened --result "sent as no. 8"
      cueline approve 7f3a.4.0.1 --answer "the blue one"
    """
    if within and not always:
        raise typer.BadParameter("--within says where --always holds; it needs --always")
    if happened and run_again:
        raise typer.BadParameter("--happened and --run-again exclude each other")
    if result and not happened:
        raise typer.BadParameter("--result is what a call gave that happened; it needs --happened")
    if edit:  # the call is judged again, for which its tools are loaded
        check_log_is_known(ctx, log, asks=is_attended() and not as_json)
    if not (yes or happened or answer or as_json) and sys.stdin.isatty():
        _show_long(log, approval)
    receipt = open_log.wish(
        log,
        lambda client: _decide(
            client,
            "grant",
            approval,
            edit or (),
            note=note,
            always=tuple(within or ()) if always else None,
            resolution="happened" if happened else "run_again" if run_again else None,
            result=result,
            answer=answer,
        ),
    )
    _print_receipt(log, receipt, as_json=as_json, answered=answer is not None)


def deny(
    approval: ApprovalArgument,
    *,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="A text for the agent; recorded.")
    ] = "",
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Refuse one call of a tool; the agent gets the reason, and continues.

    A call in doubt ("did it happen?") then does not run again, and the agent gets the
    result that its outcome is unknown. To run it again:
    `cueline approve APPROVAL --run-again`.

    \b
    Example:
      cueline deny 7f3a.3.0.1 --reason "use the copy in backup/"
    """
    receipt = open_log.wish(log, lambda client: _decide(client, "deny", approval, note=reason))
    _print_receipt(log, receipt, as_json=as_json)


def _show_long(log: LogUrl, approval: str) -> None:
    """Show the whole of a call that the list cuts, and ask whether to allow it."""
    asked = find(open_log.ask(log, lambda reader: reader.pending()), approval)
    if asked is not None and is_cut(asked):
        print_whole(asked)
        typer.confirm("Allow it?", abort=True)


async def _decide(
    client: Client,
    verdict: Literal["grant", "deny"],
    name: str,
    changes: Sequence[str] = (),
    *,
    resolution: str | None = None,
    answer: Sequence[str] | None = None,
    **said: Any,
) -> DecisionReceipt:
    """Send the decision about *name*; a grant of a call in doubt needs its outcome.

    Raises:
        RejectedError: the outcome or answer is missing; the message has the possible ones.
        ConfigError: the answer does not fit what the call asks for.
    """
    asked = await question_of(client, name)
    if verdict == "grant" and asked.question == "did_it_happen" and not resolution:
        raise RejectedError(name, "\n".join([ASKED, *answer_lines(client.log.url, name)]))
    if verdict == "grant" and asked.question == "what_to_answer":
        if answer is None:
            told = "\n".join(map(request_text, asked.requests))
            how = answer_command(client.log.url, name, asked.requests)
            raise RejectedError(name, f"it asks for an answer:\n{told}\nanswer with\n  {how}")
        said["result"] = answer_of(asked.requests, answer)
    elif answer is not None:
        raise RejectedError(name, "it asks for no answer: leave --answer out")
    if changes:
        said["edit"] = edit_arguments(asked.arguments, changes)
    given = decision_of(verdict, name, channel="cli", resolution=resolution, **said)
    return await wish(client, asked.session, given)


def _print_receipt(
    log: LogUrl, receipt: DecisionReceipt, *, as_json: bool, answered: bool = False
) -> None:
    done = answer_text(receipt.verdict, receipt.resolution)
    if answered and receipt.verdict == "grant":
        done = "answered"
    if receipt.votes > 1 and receipt.verdict == "grant":
        done = f"granted by {receipt.by}, and it takes {receipt.votes} people"
    print_receipt(log, receipt, f"{receipt.approval}: {done}", as_json=as_json)
