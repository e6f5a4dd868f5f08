"""Prints the last state of a watched session and the next step, and returns the exit code."""

from collections.abc import Collection
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from cueline.cli.failure import Exit
from cueline.cli.pending import ASKED, answer_lines, answers
from cueline.cli.terminal import print_json
from cueline.cli.up_lookup import command, is_up, resume_command
from cueline.client.document import document
from cueline.client.history import OpenQuestion, SessionView
from cueline.console.summary import summary
from cueline.console.text import Line, date_time, json_of, one_line
from cueline.events.event_text import cause_text, wait_text
from cueline.events.log_url import LogUrl
from cueline.events.stream import shown

if TYPE_CHECKING:  # `show` runs nothing
    from cueline.cli.run_options import RunOptions
    from cueline.cli.terminal_view import TerminalView

_OPTIONS = {
    "max_cost": ("--max-cost", "USD"),
    "max_tokens": ("--max-tokens", "N"),
    "max_active_seconds": ("--time-budget", "TIME"),
    "max_wall_seconds": ("--max-wall", "TIME"),
}
_WIDTH = 400


_EXITS = {"completed": Exit.DONE, "idle": Exit.DONE, "failed": Exit.FAILED, "stopped": Exit.FAILED}


def exit_of_status(status: str) -> Exit:
    """Return the exit code for the status of a session."""
    return _EXITS.get(status, Exit.WAITING)


def report(terminal: "TerminalView", options: "RunOptions", *, rested: bool) -> Exit:
    """Print the last state of the session, and return the exit code."""
    session, log = terminal.session, options.log
    if options.as_json:
        indent = None if options.json_stream else 2
        print_json(json_of(_document(terminal, log), indent=indent))
        return exit_of_status(session.status)
    tally = terminal.telling.tally
    terminal.screen.show([Line("dim", ""), *summary(session.id, session.status, tally)])
    lines = ["left while something was in flight; go on with"]
    lines.append(f"  {resume_command(log, session.id)}")
    if terminal.gave_way:
        watching = command(log, "tail", "-f", session.id)
        lines = ["another process drives it now; watch it with", f"  {watching}"]
    if rested:
        steps = [
            next_step(view, log, _resume_of(view, session, log))
            for view in terminal.watcher.resting
        ]
        lines = list(chain.from_iterable(steps))
    terminal.screen.show(Line("note", line) for line in lines)
    return exit_of_status(session.status)


def _resume_of(view: SessionView, session: SessionView, log: LogUrl) -> str:
    """Return the command that continues *view*, a child of *session*."""
    paused = view.waiting is not None and view.waiting.is_pause
    return resume_command(log, view.id if paused else session.id)


def next_step(
    session: SessionView,
    log: LogUrl,
    resume: str,
    *,
    owned: bool = False,
    decided: Collection[str] = (),
    now: datetime | None = None,
) -> list[str]:
    """Return lines that explain how a resting session continues; none for any other session.

    *resume* is the command that continues it. If the session is *owned*, a living
    process will continue it. Questions that are *decided*, or whose time is over at
    *now*, are left out.
    """
    resume = f"  {resume}"
    waiting, asked = session.waiting, session.questions
    if session.status == "idle":
        send = command(log, "send", session.id, "TEXT")
        return ["say more, and go on, with", f"  {send}", resume]
    if waiting is None:
        return []
    if asked and waiting.kind == "approval":
        then = [] if owned or is_up(log) else [resume]
        asked = tuple(each for each in asked if each.id not in decided)
        return _decide(asked, log, then, now or datetime.now(UTC))
    # A wait that no person has to end ends by itself, if a process drives the session.
    by_itself = session.status != "paused"
    why = one_line(wait_text(waiting.kind, waiting.cause, paused=not by_itself), _WIDTH)
    if (more := _more(session, log)) is not None:
        return [f"{why}; raise the limit, and it goes on", more, resume]
    driven = by_itself and (owned or is_up(log))
    if waiting.kind == "child":
        look = f"  {command(log, 'show', shown(waiting.cause.whose))}"
        then = [] if driven else ["and go on with", resume]
        return [f"{why}; it goes on when that has ended; look at it with", look, *then]
    on = "go on with"
    if waiting.cause.code == "model_failed" and waiting.cause.failure == "auth":
        on = "`cueline providers` says where its key comes from; correct it, and go on with"
    if waiting.cause.failure == "tool_changed":
        look = command(log, "tools", session.id, "--diff")
        on = f"`{look}` shows what has changed; accept it with"
        resume += " --accept-changed-tools"
    if waiting.cause.code == "rule_failed":
        on = "use a cueline in which that is mended, and go on with"
    if session.too_long:
        on = "go on from an earlier version with"
        resume = f"  {command(log, 'fork', session.id, '--at', 'VERSION')}"
    return [f"{why}; it goes on by itself"] if driven else [f"{why}; {on}", resume]


def _decide(
    asked: Collection[OpenQuestion], log: LogUrl, then: list[str], now: datetime
) -> list[str]:
    """Return the open questions as lines, with the commands that answer them."""
    left = [each for each in asked if each.deadline_at >= now]
    if not left:
        told = "the time to decide is over" if asked else "decided"
        return [f"{told}; go on with", *then] if then else [f"{told}; it goes on by itself"]
    closes_at = min(each.closes_at for each in left)
    # An automatic grant needs a process that drives the session, and can be denied before.
    until = date_time(closes_at) if closes_at >= now else "it goes on"
    by_itself = all(each.closes_at < each.deadline_at for each in left)
    told = "it is allowed by itself, unless somebody denies it" * by_itself
    told = f"{told or 'a person has to decide'} (until {until})"
    if any(each.question == "may_it_run" for each in left):
        told = f"{told}: approve, or deny likewise"
    told = f"{told}, then resume" if then else told
    return [told, *(line for each in left for line in _answers(each, log)), *then]


def _answers(asked: OpenQuestion, log: LogUrl) -> list[str]:
    if asked.question == "did_it_happen":
        return [f"{asked.id}: {ASKED}", *answer_lines(log, asked.id)]
    if asked.question == "what_to_answer":
        return [f"  {command(log, 'approve', asked.id)} --answer …"]
    return [f"  {command(log, 'approve', asked.id)}"]


def _more(session: SessionView, log: LogUrl) -> str | None:
    """Return the command that raises the limit at which the session waits; None without a limit."""
    wait = session.waiting
    if wait is None or wait.raisable not in _OPTIONS:
        return None
    whose = shown(wait.cause.whose) if wait.cause.whose else session.id
    return f"  {command(log, 'budget', 'raise', whose, *_OPTIONS[wait.raisable])}"


def _document(terminal: "TerminalView", log: LogUrl) -> dict[str, Any]:
    session, tally = terminal.session, terminal.telling.tally
    waiting, asked = session.waiting, session.questions
    doubts = [each.id for each in asked if each.question == "did_it_happen"]
    # Under a pause a breaker may be due, or a retry; the pause goes on.
    ends_at = waiting.deadline_at if waiting and not waiting.is_pause else None
    if waiting and waiting.kind == "approval":
        # The session's own deadline may be sooner: then a reminder is due, or a warning.
        ends_at = min((each.closes_at for each in asked), default=None)
    return {
        "id": session.id,
        "status": session.status,
        "result": terminal.result,
        "value": terminal.value,
        "partial": tally.partial,
        "error": terminal.error,
        "waiting": None
        if waiting is None
        else {
            "kind": waiting.kind,
            "cause": waiting.cause.model_dump(mode="json"),
            "why": cause_text(waiting.cause),
            "deadline_at": document(ends_at),
            "limit": waiting.raisable or None,
            "whose": shown(waiting.cause.whose) if waiting.cause.whose else None,
            "approvals": [each.id for each in asked],
            "in_doubt": [{"approval": each, "answers": answers(log, each)} for each in doubts],
        },
        "turns": tally.turns,
        "tool_calls": tally.tool_calls,
        "tokens": tally.usage.model_dump(),
        "cost": str(tally.cost),
        "version": terminal.watcher.reader.version,
    }
