"""`cueline pending`, `approve` and `deny`: what waits for a person, and the answer."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cueline.cli import opened
from cueline.cli.failure import Exit
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.cli.terminal import who
from cueline.errors import CuelineError, InvalidNameError, NotPendingError

if TYPE_CHECKING:
    from cueline.deciders.approval import ApprovalState
    from cueline.events.agent import AgentSpec
    from cueline.events.approval import ApprovalOpened
    from cueline.events.inbox import DecisionGiven
    from cueline.projections.approval import Approval
    from cueline.runtime import Log

_PENDING = """List what waits for a person's decision, the most urgent first.

What was decided while nothing runs is marked: it counts when the session is
next driven.

\b
Examples:
  cueline pending
  cueline pending --json | jq -r '.[].id'
"""
_APPROVE = """Allow exactly one call of a tool, as it was shown.

It works from any shell on the machine, also while nothing runs: the decision
waits in the log. What is not pending (any more) is refused at once. Asked
"did it happen?", to approve is to say yes.

An edit changes the arguments: exactly those run, and the agent is told.
With --always the same tool is not asked about again in this session, with the
same paths, or those of --within; a tool without paths, with these arguments.

\b
Examples:
  cueline approve 7f3a.3.0.1 --note "checked the list"
  cueline approve 7f3a.3.0.1 --edit path=notes/b.md --edit 'lines=[1, 2]'
  cueline approve 7f3a.3.0.1 --always --within 'notes/**'
"""
_DENY = """Refuse one call of a tool; the agent is told, with the reason, and goes on.

Asked "did it happen?", to deny is to say no: the call is run again.

\b
Example:
  cueline deny 7f3a.3.0.1 --reason "use the copy in backup/"
"""


_DONE = {"grant": "granted", "deny": "denied"}


@dataclass(frozen=True, slots=True)
class Word:
    """What a person says of a question."""

    verdict: Literal["grant", "deny"]
    note: str
    edit: tuple[str, ...] = ()
    within: tuple[str, ...] | None = None
    """Where it holds for the rest of the session; empty: for the same paths."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("pending", help=_PENDING, short_help="List the approvals that wait.")(pending)
    app.command("approve", help=_APPROVE, short_help="Allow one call of a tool.")(approve)
    app.command("deny", help=_DENY, short_help="Refuse one call of a tool.")(deny)


def complete_approval(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the pending approvals that begin with what was typed, for the shell."""
    log = Path(ctx.params.get("log") or DEFAULT_LOG)
    try:
        return [each.id for each in opened.run(_find(log)) if each.id.startswith(incomplete)]
    except CuelineError:
        return []


ApprovalArgument = Annotated[
    str,
    typer.Argument(
        help="The approval, as `cueline pending` names it.",
        metavar="APPROVAL",
        autocompletion=complete_approval,
    ),
]


def pending(*, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False) -> None:
    """List approvals."""
    waiting = opened.run(_find(log))
    if as_json:
        typer.echo(json.dumps([_document(each) for each in waiting], indent=2, ensure_ascii=False))
    elif waiting:
        _print(waiting)
    else:
        typer.echo("nothing waits for a decision")


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
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Grant."""
    if within and not always:
        raise typer.BadParameter("--within says where --always holds; it needs --always")
    word = Word("grant", note, tuple(edit or ()), tuple(within or ()) if always else None)
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
    raise typer.Exit(opened.run(_decide(log, approval, Word("deny", reason), as_json=as_json)))


async def _find(log: Path) -> list["Approval"]:
    from cueline.projections.approval import pending_approvals

    async with opened.looking(log) as store, opened.views_of(log, store) as views:
        return pending_approvals(views.db)


def _document(approval: "Approval") -> dict[str, Any]:
    from cueline.events.stream import shown

    return {
        "id": approval.id,
        "session": shown(approval.session),
        "effect": approval.effect,
        "question": approval.question,
        "tool": approval.tool,
        "arguments": json.loads(approval.arguments_json),
        "summary": approval.summary,
        "preview": approval.preview,
        "rationale": approval.rationale,
        "rule": approval.rule,
        "usd": approval.usd or None,
        "votes": approval.votes,
        "votes_needed": approval.votes_needed,
        "deadline_at": approval.deadline_at.isoformat(),
        "given": approval.given or None,
        "given_by": approval.given_by or None,
    }


def _print(waiting: list["Approval"]) -> None:
    from cueline.console.table import print_table
    from cueline.console.text import arguments, duration, one_line
    from cueline.events.stream import shown

    now = datetime.now(UTC)
    rows = []
    for each in waiting:
        left = (each.deadline_at - now).total_seconds()
        time = duration(left) if left > 0 else "over"
        asked = "did it happen?" if each.question == "did_it_happen" else "may it run?"
        if each.votes_needed > 1:
            asked = f"{asked} ({each.votes} of {each.votes_needed} said yes)"
        if each.given:
            # It waits for the session, not for a person; who asks again is refused.
            asked = f"{_DONE[each.given]} by {one_line(each.given_by, 20)}, not read yet"
        given = arguments(json.loads(each.arguments_json), 80)
        rows.append((each.id, shown(each.session), asked, time, f"{each.tool} {given}"))
    print_table(("approval", "session", "question", "time left", "call"), rows)
    for each in waiting:
        if each.question == "did_it_happen" and not each.given:
            typer.echo(f"{each.id}: {one_line(each.rationale, 400)}")


async def _decide(path: Path, name: str, word: Word, *, as_json: bool) -> Exit:
    from cueline.actors.inbox import post
    from cueline.cli.reading import asked_agent
    from cueline.cli.running import is_taken_up
    from cueline.events.clean import clean
    from cueline.events.stream import shown
    from cueline.runtime import open_log

    async with open_log(path, must_exist=True) as log:
        state = await _approval(log, name)
        opened_ = _pending_or_refused(name, state)
        agent = await asked_agent(log, opened_.session)
        decision = _decision(name, opened_, word, agent)
        _check_vote(name, state, decision)
        if not await _was_given(log, opened_, decision):
            kept, _ = clean(decision, log.redactor(agent))
            await post(log.journal(agent), opened_.session, kept, by=f"user:{who()}")
        driven = await is_taken_up(log, path, opened_.session)
    _tell(path, opened_, decision, shown(opened_.session), driven=driven, as_json=as_json)
    return Exit.DONE


def _decision(
    name: str, opened_: "ApprovalOpened", word: Word, agent: "AgentSpec"
) -> "DecisionGiven":
    """Return the decision as it goes into the inbox.

    Raises:
        ConfigError: an edit has no form, or does not fit the tool.
        RejectedError: no person can allow what the edit says.
    """
    from cueline.cli.editing import always_of, checked_edit
    from cueline.events.inbox import DecisionGiven

    edit = checked_edit(opened_, word.edit, agent) if word.edit else None
    always = None
    if word.within is not None:
        always = word.within or always_of(opened_, edit, agent)
    return DecisionGiven(
        approval=name,
        digest=opened_.digest,
        verdict=word.verdict,
        by=who(),
        note=word.note,
        edit=edit,
        always=always,
        channel="cli",
    )


def _check_vote(name: str, state: "ApprovalState", decision: "DecisionGiven") -> None:
    """Refuse at once what the gate would refuse when it reads it.

    Raises:
        NotPendingError: the message says why.
    """
    from cueline.deciders.approval import Vote, refusal

    vote = Vote(
        decision.verdict,
        decision.digest,
        decision.by,
        decision.note,
        "",
        datetime.now(UTC),
        edit=decision.edit,
        always=decision.always,
    )
    if (reason := refusal(state, vote)) is not None:
        raise NotPendingError(name, reason)


def _tell(
    path: Path,
    asked: "ApprovalOpened",
    decision: "DecisionGiven",
    session: str,
    *,
    driven: bool,
    as_json: bool,
) -> None:
    from cueline.cli.running import when_it_counts

    name = decision.approval
    if as_json:
        told = {"id": name, "session": session, "verdict": decision.verdict, "driven": driven}
        typer.echo(json.dumps(told))
        return
    done = _DONE[decision.verdict]
    if asked.votes > 1 and decision.verdict == "grant":
        done = f"granted by {decision.by}, and it takes {asked.votes} people"
    typer.echo(f"{name}: {done}{when_it_counts(path, session, driven=driven)}")


async def _was_given(log: "Log", asked: "ApprovalOpened", decision: "DecisionGiven") -> bool:
    """Whether the same decision waits in the inbox already.

    Raises:
        NotPendingError: another one does, and will count first.
    """
    from cueline.events.inbox import DecisionGiven
    from cueline.events.stream import sibling

    async for _, said in log.journal().read(sibling(asked.session, "inbox")):
        if not isinstance(said, DecisionGiven) or said.approval != decision.approval:
            continue
        if said.digest != decision.digest:
            continue
        same_word = (said.verdict, said.edit) == (decision.verdict, decision.edit)
        if same_word and (asked.votes == 1 or said.by == decision.by):
            return True
        if asked.votes == 1 or said.verdict == "deny":
            reason = f"it was {_DONE[said.verdict]} by {said.by} before"
            raise NotPendingError(
                decision.approval, f"{reason}, which counts when it is next driven"
            )
    return False


async def _approval(log: "Log", name: str) -> "ApprovalState":
    """Fold the approval that *name* stands for."""
    from cueline.deciders.approval import APPROVAL
    from cueline.events.codec import Emptied
    from cueline.events.stream import stream_name

    state = APPROVAL.initial_state
    tenant, slash, rest = name.rpartition("/")
    try:
        stream = stream_name("approval", rest, tenant) if slash else stream_name("approval", name)
    except InvalidNameError:
        return state
    async for _, fact in log.journal().read(stream):
        if not isinstance(fact, Emptied):
            state = APPROVAL.evolve(state, fact)  # type: ignore[arg-type]  # an approval's stream holds these
    return state


def _pending_or_refused(name: str, state: "ApprovalState") -> "ApprovalOpened":
    if state.opened is None:
        raise NotPendingError(name, "there is no such approval; `cueline pending` lists what waits")
    if state.verdict is not None:
        by = f" by {state.by}" if state.by else ""
        raise NotPendingError(name, f"it does not wait any more: {state.verdict}{by}")
    if state.opened.deadline_at < datetime.now(UTC):
        passed = f"{state.opened.deadline_at:%Y-%m-%d %H:%M:%S} UTC"
        raise NotPendingError(name, f"its deadline passed at {passed}")
    return state.opened
