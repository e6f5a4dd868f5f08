"""`cueline approve` and `deny`: the answer to what waits for a person."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cueline.cli import opened
from cueline.cli.failure import Exit
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.cli.pending import complete_approval
from cueline.environment import who

if TYPE_CHECKING:
    from cueline.cli.deciding import Word
    from cueline.events.agent import AgentSpec
    from cueline.events.approval import ApprovalOpened
    from cueline.events.inbox import DecisionGiven
    from cueline.wiring import Log

_APPROVE = """Allow exactly one call of a tool, as it was shown.

It works from any shell on the machine, also while nothing runs: the decision
waits in the log. What is not pending (any more) is refused at once.

A call in doubt ("did it happen?") takes one of three answers:

\b
  approve --happened   It took effect. It does not run again; the agent gets
                       the text of --result as its result.
  approve --run-again  It runs again, even if it took effect before.
  deny                 It does not run again; the agent is told that the
                       outcome is unknown.

An edit changes the arguments: exactly those run, and the agent is told.
With --always the same tool is not asked about again in this session, with the
same paths, or those of --within; a tool without paths, with these arguments.

\b
Examples:
  cueline approve 7f3a.3.0.1 --note "checked the list"
  cueline approve 7f3a.3.0.1 --edit path=notes/b.md --edit 'lines=[1, 2]'
  cueline approve 7f3a.3.0.1 --always --within 'notes/**'
  cueline approve 7f3a.3.0.2 --happened --result "sent as no. 8"
"""
_DENY = """Refuse one call of a tool; the agent is told, with the reason, and goes on.

A call in doubt ("did it happen?") does not run again then, and the agent is
told that its outcome is unknown. To have it run again:
`cueline approve APPROVAL --run-again`.

\b
Example:
  cueline deny 7f3a.3.0.1 --reason "use the copy in backup/"
"""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("approve", help=_APPROVE, short_help="Allow one call of a tool.")(approve)
    app.command("deny", help=_DENY, short_help="Refuse one call of a tool.")(deny)


ApprovalArgument = Annotated[
    str,
    typer.Argument(
        help="The approval, as `cueline pending` names it.",
        metavar="APPROVAL",
        autocompletion=complete_approval,
    ),
]


def approve(
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
        list[str] | None,
        typer.Option(metavar="GLOB", help="Where --always holds; repeatable."),
    ] = None,
    note: Annotated[
        str, typer.Option(metavar="TEXT", help="Recorded, and told to the agent.")
    ] = "",
    happened: Annotated[
        bool, typer.Option("--happened", help="Of a call in doubt: it took effect.")
    ] = False,
    result: Annotated[
        str, typer.Option(metavar="TEXT", help="With --happened: the result of the call.")
    ] = "",
    run_again: Annotated[
        bool, typer.Option("--run-again", help="Of a call in doubt: run it again.")
    ] = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Grant."""
    if within and not always:
        raise typer.BadParameter("--within says where --always holds; it needs --always")
    if happened and run_again:
        raise typer.BadParameter("--happened and --run-again exclude each other")
    if result and not happened:
        raise typer.BadParameter("--result is what a call gave that happened; it needs --happened")
    from cueline.cli.deciding import Word

    word = Word(
        "grant",
        note,
        edit=tuple(edit or ()),
        within=tuple(within or ()) if always else None,
        resolution="happened" if happened else "run_again" if run_again else None,
        result=result,
    )
    raise typer.Exit(opened.run(_decide(log, approval, word, as_json=as_json)))


def deny(
    approval: ApprovalArgument,
    *,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Recorded, and told to the agent.")
    ] = "",
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Refuse."""
    from cueline.cli.deciding import Word

    raise typer.Exit(opened.run(_decide(log, approval, Word("deny", reason), as_json=as_json)))


async def _decide(path: Path, name: str, word: "Word", *, as_json: bool) -> Exit:
    from cueline.actors.inbox import asked_agent
    from cueline.cli.deciding import approval_of, decision_of, pending_or_refused, was_given
    from cueline.cli.running import is_taken_up, way_to_resume
    from cueline.events.stream import shown
    from cueline.wiring import open_log

    async with open_log(path, must_exist=True) as log:
        state = await approval_of(log.journal(), name)
        asked = pending_or_refused(name, state)
        _check_answer(path, asked, name, word)
        agent = await asked_agent(log.journal(), asked.session)
        decision = await decision_of(name, state, word, agent)
        await _check_heard(log, asked.session, decision, agent)
        if not await was_given(log.journal(), state, decision):
            at = await log.post(asked.session, decision, agent, by=f"user:{who()}")
            # Somebody else may have decided since; what the log recorded first counts.
            await was_given(log.journal(), state, decision, until=at.versions[0] - 1)
        driven = await is_taken_up(log, asked.session)
        way = await way_to_resume(path, log.store, asked.session)
    _tell(way, asked, decision, shown(asked.session), driven=driven, as_json=as_json)
    return Exit.DONE


def _check_answer(log: Path, asked: "ApprovalOpened", name: str, word: "Word") -> None:
    """Refuse a grant that does not say what became of a call in doubt.

    Raises:
        RejectedError: the message has the answers, and what follows from each.
    """
    from cueline.cli.resolution import ASKED, answer_lines
    from cueline.errors import RejectedError

    if asked.question == "did_it_happen" and word.verdict == "grant" and not word.resolution:
        raise RejectedError(name, "\n".join([ASKED, *answer_lines(log, name)]))


async def _check_heard(
    log: "Log", session: str, decision: "DecisionGiven", agent: "AgentSpec"
) -> None:
    """Refuse a decision that its session will not take.

    Raises:
        SessionFinishedError: it has ended.
        RejectedError: it was asked to stop.
        CorruptEventError: something of it was emptied.
    """
    from cueline.actors.fold import fold
    from cueline.actors.inbox import check_heard, unread_of
    from cueline.deciders.session import SESSION, session_of

    journal = log.journal()
    state, _ = await fold(journal, session, SESSION, session_of(session))
    check_heard(state, [said for _, said in await unread_of(journal, state)], decision, agent)


def _tell(
    way: str,
    asked: "ApprovalOpened",
    decision: "DecisionGiven",
    session: str,
    *,
    driven: bool,
    as_json: bool,
) -> None:
    from cueline.cli import deciding
    from cueline.cli.running import when_it_counts

    name = decision.approval
    if as_json:
        told = {"id": name, "session": session, "verdict": decision.verdict, "driven": driven}
        told |= {"resolution": decision.resolution}
        typer.echo(json.dumps(told))
        return
    done = deciding.done(decision.verdict, decision.resolution)
    if asked.votes > 1 and decision.verdict == "grant":
        done = f"granted by {decision.by}, and it takes {asked.votes} people"
    typer.echo(f"{name}: {done}{when_it_counts(way, driven=driven)}")
