"""`cueline show`: one session, whole or its end."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated

import typer

from cueline.cli import opened
from cueline.cli.failure import Exit
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, PlainOption, SessionArgument
from cueline.console.text import count, json_of, money
from cueline.events.log_url import LogUrl

if TYPE_CHECKING:
    from cueline.actors.followed import Followed, Past
    from cueline.console.screen import Screen
    from cueline.console.tally import Tally
    from cueline.deciders.session import SessionState
    from cueline.events.journal import Journal
    from cueline.events.session import SessionEvent
    from cueline.events.store import Presence, RecordedEvent

_HELP = """Show what was said and done in a session, and how it stands.

Of a long session the last turns are shown, and --all shows the rest. What is
shown is read from the log, each event checked. A row that cannot be read is
named, everything before it is shown, and the exit code is 1.

\b
Examples:
  cueline show 7f3a
  cueline show 7f3a --all | less
  cueline show 7f3a --full --log work/log.db
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("show", help=_HELP, short_help="Show one session.")(show)


def show(
    session: SessionArgument,
    *,
    full: Annotated[bool, typer.Option("--full", help="Show tool results whole.")] = False,
    whole: Annotated[bool, typer.Option("--all", help="Show a long session whole.")] = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
    plain: PlainOption = False,
) -> None:
    """Show a session."""
    if as_json:
        raise typer.Exit(opened.run(_tell(log, session)))
    raise typer.Exit(opened.run(_show(log, session, full=full, whole=whole, plain=plain)))


async def _tell(log: LogUrl, name: str) -> Exit:
    """Print a session as JSON."""
    from cueline.cli.document import document
    from cueline.cli.reading import read_past
    from cueline.cli.resolution import doubts_document

    followed, past, code = await read_past(log, name)
    told = document(followed, past) | {"inDoubt": doubts_document(followed.state, log)}
    typer.echo(json_of(told, indent=2))
    return code


async def _show(log: LogUrl, name: str, *, full: bool, whole: bool, plain: bool) -> Exit:
    from cueline.actors.owner import owner_of, silence_of
    from cueline.cli.excerpt import read_ends
    from cueline.cli.reading import past_of, session_in
    from cueline.clock import SystemClock
    from cueline.console.screen import Screen

    screen = Screen(plain=plain)
    async with session_in(log, name) as followed, opened.board_of(log) as board:
        code = Exit.DONE
        if not whole and (ends := await read_ends(followed.journal, followed.stream)) is not None:
            followed, past = ends  # noqa: PLW2901 - the same session, read less far
        else:
            whole = True
            past, code = await past_of(followed)
        tally = await _print(followed, past, log, screen, full=full, whole=whole)
        stream, now = followed.stream, SystemClock().now()
        owner = await owner_of(followed.store, board, stream, now)
        silence = await silence_of(followed.store, board, stream, now)
        damaged = code is not Exit.DONE
        stands = _damaged(followed, log)
        if not damaged:
            stands = await _stands(followed, owner, silence, log)
        sums = tally if whole else None
        await _sum_up(followed, past, log, sums, stands, screen=screen, damaged=damaged)
        return code


async def _print(
    followed: "Followed", past: "Past", log: LogUrl, screen: "Screen", *, full: bool, whole: bool
) -> "Tally":
    """Print what happened, and return what it used."""
    from cueline.cli.reading import journal_of
    from cueline.cli.running import command
    from cueline.console.telling import Line, Telling
    from cueline.events.stream import shown
    from cueline.stores.waiting import take_turns

    seen = 0
    telling = Telling(whole_results=full, whole_past=whole)
    journal = journal_of(followed.store)
    for recorded, fact in past:
        if left_out := recorded.version - seen - 1:
            way = command(log, "show", shown(followed.stream), "--all")
            said = f"… {count(left_out, 'event')} not shown here; show them with\n  {way}"
            screen.show(Line("note", line) for line in ["", *said.split("\n"), ""])
        seen = recorded.version
        if fact is None:
            screen.show([Line("dim", f"  version {recorded.version} was emptied")])
        else:
            told = await _whole(journal, recorded, fact) if full else fact
            screen.show(telling.tell(recorded, told))
        await take_turns()  # whoever has seen enough may interrupt
    return telling.tally


async def _sum_up(
    followed: "Followed",
    past: "Past",
    log: LogUrl,
    tally: "Tally | None",
    stands: list[str],
    *,
    screen: "Screen",
    damaged: bool,
) -> None:
    """Print what the session used and how it stands; without a *tally* as read models know it."""
    from cueline.cli.ending import shown_status
    from cueline.cli.excerpt import read_sums
    from cueline.console.summary import summary, summary_without_sums
    from cueline.console.telling import Line
    from cueline.events.session import ChildSpawned, ModelRequested
    from cueline.events.stream import shown

    id, status = shown(followed.stream), shown_status(followed.state)  # noqa: A001 - the word of the log
    status = "damaged" if damaged else status
    sums = tally or await read_sums(log, followed.store, followed.stream)
    screen.show([Line("dim", "")])
    if sums is None:
        turns = [fact.effect for _, fact in past if isinstance(fact, ModelRequested)]
        screen.show([summary_without_sums(id, status, turns[-1].partition(".")[0])])
    else:
        screen.show(summary(id, status, sums))
    has_children = tally is None or any(isinstance(fact, ChildSpawned) for _, fact in past)
    if not damaged and sums is not None and has_children:
        screen.show(Line("note", line) for line in await _descent(log, followed))
    screen.show(Line("note", line) for line in stands)


async def _descent(log: LogUrl, followed: "Followed") -> list[str]:
    """Say what the session cost with all that descend from it; nothing where nothing does."""
    from cueline.projections.cost import below, spent, total

    async with opened.views_of(log, followed.store) as views:
        number, cost = below(views.db, followed.stream)
        own = total(spent(views.db, stream=followed.stream)).usd
    return [f"with {count(number, 'descendant')}: {money(own + cost)}"] if number else []


async def _whole(
    journal: "Journal", recorded: "RecordedEvent", fact: "SessionEvent"
) -> "SessionEvent":
    """Return *fact* with all of its output, where the model was told a part of it.

    Raises:
        CorruptEventError: that is gone; what is before it is shown.
    """
    from cueline.events.session import ToolReturned

    if not isinstance(fact, ToolReturned) or fact.whole is None:
        return fact
    whole = await journal.get_blob(recorded, fact.whole)
    # Of a very long one the beginning is kept, which may end within a character.
    return fact.model_copy(update={"output": whole.decode(errors="replace")})


async def _stands(
    followed: "Followed", owner: "Presence | None", silence: str | None, log: LogUrl
) -> list[str]:
    """Say who drives it, or how it goes on, and what was said to it meanwhile."""
    from cueline.actors.inbox import unread_of
    from cueline.cli.reading import journal_of
    from cueline.cli.running import is_up, way_to_resume
    from cueline.cli.unread import clean_messages, decided, suffices, told

    if followed.emptied is not None:
        return [str(followed.emptied)]
    way = await way_to_resume(log, followed.store, followed.stream)
    if owner is not None or followed.state.finished or is_up(log):
        return _course(followed.state, owner, log, way, silence=silence)
    unread = clean_messages(
        await unread_of(journal_of(followed.store), followed.state), followed.state
    )
    if (said := told(unread)) and suffices(followed.state, unread):
        return [*said, "go on with", f"  {way}"]
    answered = await decided(followed, unread)
    return [*said, *_course(followed.state, owner, log, way, answered, silence=silence)]


def _course(
    state: "SessionState",
    owner: "Presence | None",
    log: LogUrl,
    way: str,
    decided: Collection[str] = (),
    *,
    silence: str | None,
) -> list[str]:
    """Say who drives it, or how it goes on."""
    from cueline.cli.ending import way_on
    from cueline.deciders.session import DRIVEN
    from cueline.events.stream import shown

    id = shown(state.stream)  # noqa: A001 - the word of the log
    if state.status == "created":
        return ["it was asked for, and nobody has taken it up yet; go on with", f"  {way}"]
    if state.status in DRIVEN:
        if owner is not None:
            return [f"driven by process {owner.pid} on {owner.machine}"]
        return [f"driven by {silence or 'nobody'}; go on with", f"  {way}"]
    return way_on(state, id, log, way, owned=owner is not None, decided=decided)


def _damaged(followed: "Followed", log: LogUrl) -> list[str]:
    """Say what can be done with what is before the damage."""
    from cueline.cli.running import command
    from cueline.events.stream import shown

    fork = command(log, "fork", shown(followed.stream), "--at", str(followed.version))
    whole = [f"all is well up to version {followed.version}; go on from there with", f"  {fork}"]
    others = ["what else is damaged is told by", f"  {command(log, 'audit', 'verify')}"]
    return whole + others if followed.version else others
