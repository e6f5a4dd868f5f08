"""`cueline show`: show one session, whole or its end."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.exit_report import next_step
from cueline.cli.failure import Exit
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, PlainOption, SessionArgument
from cueline.cli.pending import document_of
from cueline.cli.up_lookup import command, resume_command
from cueline.client.document import document
from cueline.client.history import History, compacted
from cueline.client.show import DriverStatus, TreeSession, UnreadMessages, driver_status, sums_of
from cueline.console.event_renderer import EventRenderer
from cueline.console.question import answer_text
from cueline.console.screen import Screen
from cueline.console.summary import summary, summary_without_sums
from cueline.console.text import Line, count, date_time, json_of, money, one_line, visible
from cueline.errors import CuelineError
from cueline.events.codec import Redacted
from cueline.events.event_text import stop_text
from cueline.events.fact import Fact
from cueline.events.inbox import (
    DecisionGiven,
    MessageSent,
    ModelChangeAsked,
    RaiseAsked,
    SecretsWaived,
    StopAsked,
)
from cueline.events.log_url import LogUrl
from cueline.events.message import message_text
from cueline.events.status import DRIVEN
from cueline.projections.summary import Summary

Sums = tuple[Summary | None, list[TreeSession]]

_WIDTH = 60
_MOST_BELOW = 20
"""The number of listed descendants."""
_ASKED = {"PauseAsked": "pause asked", "ResumeAsked": "resume asked"}


def show(
    session: SessionArgument,
    *,
    full: Annotated[bool, typer.Option("--full", help="Show tool results whole.")] = False,
    whole: Annotated[bool, typer.Option("--all", help="Show a long session whole.")] = False,
    compact: Annotated[
        bool,
        typer.Option("--compacted", help="Show the newest summary instead of what it replaces."),
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show what its calls changed in files.")
    ] = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
    plain: PlainOption = False,
) -> None:
    """Show the messages, calls and status of a session.

    For a long session the last turns are shown, and --all shows the rest. Each event
    is read from the log and checked. If a row cannot be read, it is named, all earlier
    events are shown, and the exit code is 1.

    In a long conversation the model gets a summary and the newest messages:
    --compacted shows these.

    With --diff, the files that its calls changed are shown instead, each from before
    the first call to after the last, as `diff -u` would.

    \b
    Examples:
      cueline show 7f3a
      cueline show 7f3a --all | less
      cueline show 7f3a --full --log work/log.db
    """
    if diff:
        raise typer.Exit(open_log.run(_print_diffs(log, session, as_json=as_json)))
    if as_json:
        raise typer.Exit(open_log.run(_print_session(log, session)))
    if whole and compact:
        raise typer.BadParameter("--all and --compacted exclude each other")
    history, driving, sums = open_log.run(_read(log, session, full=full, whole=whole or compact))
    if compact:
        history = compacted(history)
    # Printed when the loop is over: Ctrl-C ends it at once.
    _print(log, history, driving, sums, full=full, plain=plain, compact=compact)
    raise typer.Exit(open_log.exit_of_damage(history.damage))


async def _print_session(log: LogUrl, name: str) -> Exit:
    """Print the status of a session as JSON."""
    async with open_log.reader(log) as reader:
        told = document(await reader.show(name))
    told["questions"] = [document_of(each, log) for each in told["questions"]]
    typer.echo(json_of(told, indent=2))
    return Exit.DONE


async def _print_diffs(log: LogUrl, name: str, *, as_json: bool) -> Exit:
    """Print what a session changed in files."""
    async with open_log.reader(log) as reader:
        found = await reader.file_diffs(name)
    if as_json:
        typer.echo(json_of(document(found), indent=2))
        return Exit.DONE
    for each in found:
        if each.diff:
            typer.echo(visible(each.diff))
        else:
            calls = ", ".join(each.calls)
            typer.echo(visible(f"{each.path} ({calls}): {each.unknown or 'as it was'}"))
    if not found:
        typer.echo("none of its calls changed a file, as far as it is recorded", err=True)
    return Exit.DONE


async def _read(
    log: LogUrl, name: str, *, full: bool, whole: bool
) -> tuple[History, DriverStatus, Sums]:
    async with open_log.reader(log) as reader:
        read = reader.history if whole else reader.excerpt
        history = await read(name, outputs=full)
        if history.state.progress is not None and not history.whole:
            history = await reader.history(name, outputs=full)  # its steps are few
        driving = await driver_status(reader.log, history)
        try:
            sums = await sums_of(reader.log, history.stream)
        except CuelineError:
            sums = (None, [])
        return history, driving, sums


def _print(
    log: LogUrl,
    history: History,
    driving: DriverStatus,
    sums: Sums,
    *,
    full: bool,
    plain: bool,
    compact: bool,
) -> None:
    screen, seen = Screen(plain=plain), 0
    telling = EventRenderer(whole_results=full, whole_past=history.whole)
    for recorded, fact in history.events:
        left_out = recorded.version - seen - 1
        if left_out > 0 and not compact:
            way = command(log, "show", history.id, "--all")
            said = f"… {count(left_out, 'event')} not shown here; show them with\n  {way}"
            screen.show(Line("note", line) for line in ["", *said.split("\n"), ""])
        seen = recorded.version
        if fact is None:
            screen.show([Line("dim", f"  version {recorded.version} was emptied")])
        else:
            screen.show(telling.render(recorded, fact))
    screen.show([Line("dim", "")])
    screen.show(_steps(log, history))
    _sum_up(screen, history, telling.tally if history.whole else sums[0], sums)
    screen.show(Line("note", line) for line in _stands(log, history, driving))


def _steps(log: LogUrl, history: History) -> Iterator[Line]:
    """Yield a line for each step of a plan, and the next commands for failed steps."""
    if history.state.progress is None or history.damage is not None:
        return
    from cueline.cli.workflow import advice
    from cueline.client.workflow import workflow_state
    from cueline.console.plan_graph import step_lines

    state = workflow_state(history)
    yield from step_lines(state)
    yield from (Line("note", line) for line in advice(state, history, log))
    yield Line("dim", "")


def _sum_up(screen: Screen, history: History, tally: Summary | None, sums: Sums) -> None:
    """Print the usage of the session and its descendants."""
    _, below = sums
    if tally is None:
        screen.show([summary_without_sums(history.id, history.status, history.turn)])
        return
    screen.show(summary(history.id, history.status, tally))
    if below and history.damage is None:
        whole = money(tally.cost + sum((each.cost for each in below), Decimal(0)))
        screen.show([Line("note", f"with {count(len(below), 'descendant')}: {whole}")])
        screen.show(Line("note", _below_line(each)) for each in below[:_MOST_BELOW])
        if (left := len(below) - _MOST_BELOW) > 0:
            screen.show([Line("note", f"  … {left} more; --json has them")])


def _below_line(each: TreeSession) -> str:
    name = f"{'  ' * each.depth}{each.id} · {one_line(each.agent, _WIDTH)}"
    return f"{name} · {each.status} · {money(each.cost)}"


def _stands(log: LogUrl, history: History, driving: DriverStatus) -> list[str]:
    """Return the unread messages, and the driver of the session or the next command, as lines."""
    if history.damage is not None:
        return _damaged(log, history)
    if history.followed.emptied is not None:
        return [str(history.followed.emptied)]
    way = resume_command(log, history.id)
    said = unread_lines(driving.unread)
    if said and driving.enough:
        return [*said, "go on with", f"  {way}"]
    return [*said, *_course(log, history, driving, way)]


def _course(log: LogUrl, history: History, driving: DriverStatus, way: str) -> list[str]:
    """Return the driver of the session, or the next command, as lines."""
    state = history.state
    if state.status == "created":
        then = f"it starts {date_time(driving.starts_at)}; " if driving.starts_at else ""
        told = f"it was asked for, and nobody has taken it up yet; {then}go on with"
        return [told, f"  {way}"]
    driver = driving.driver
    if state.status in DRIVEN:
        if driver is not None:
            return [f"driven by process {driver.pid} on {driver.machine}"]
        return [f"driven by {driving.silence or 'nobody'}; go on with", f"  {way}"]
    owned = driver is not None
    return next_step(history.view, log, way, owned=owned, decided=driving.decided)


def _damaged(log: LogUrl, history: History) -> list[str]:
    """Return lines with the commands to use after damage in the session."""
    fork = command(log, "fork", history.id, "--at", str(history.version))
    whole = [f"all is well up to version {history.version}; go on from there with", f"  {fork}"]
    others = ["what else is damaged is told by", f"  {command(log, 'audit', 'verify')}"]
    return whole + others if history.version else others


def unread_lines(unread: UnreadMessages) -> list[str]:
    """Return the unread messages of people as lines, without the messages of other sessions."""
    lines = [f"  {line}" for _, said in unread if (line := _line(said))]
    return ["not read yet, for nobody drives it:", *lines] if lines else []


def _line(said: Fact | Redacted) -> str:
    match said:
        case DecisionGiven(approval=approval, by=by):
            return (
                f"{approval} {answer_text(said.verdict, said.resolution)} by {one_line(by, _WIDTH)}"
            )
        case MessageSent(lane=lane, text=text, attachments=attached):
            return f"{lane}: {one_line(message_text(text, attached), _WIDTH)}"
        case StopAsked(reason=reason):
            return f"stop asked: {one_line(stop_text(reason), _WIDTH)}"
        case SecretsWaived(names=names, by=by):
            return f"{', '.join(names)} waived by {one_line(by, _WIDTH)}"
        case ModelChangeAsked(model=model):
            asked = f"{model.provider} {model.model}"
        case RaiseAsked():
            limits = said.model_dump(exclude={"type"}, exclude_none=True)
            asked = ", ".join(f"{name} {limit}" for name, limit in limits.items())
        case _:
            return _ASKED.get(said.type, "")
    return f"asked for {one_line(asked, _WIDTH)}"
