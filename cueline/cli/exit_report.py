"""How a driven session was left: its summary, the way to go on, the exit code."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import typer

from cueline.cli.failure import Exit
from cueline.cli.resolution import ASKED, answer_lines, doubts_document
from cueline.cli.terminal_view import TerminalView
from cueline.cli.up_lookup import command, is_up, resume_command
from cueline.client.document import document
from cueline.console.line import Line
from cueline.console.screen import Screen
from cueline.console.summary import summary
from cueline.console.text import date_time, json_of, one_line
from cueline.deciders.session import SessionState, Status
from cueline.deciders.session.turn import CallApproval
from cueline.event_text import cause_text, wait_text
from cueline.events.log_url import LogUrl
from cueline.events.stream import shown

_OPTIONS = {
    "max_cost": ("--max-cost", "USD"),
    "max_tokens": ("--max-tokens", "N"),
    "max_active_seconds": ("--time-budget", "TIME"),
    "max_wall_seconds": ("--max-wall", "TIME"),
}
_WIDTH = 400


def exit_of_state(state: SessionState) -> Exit:
    """Return the exit code that says how a session stands."""
    match state.status:
        case Status.COMPLETED | Status.IDLE:
            return Exit.DONE
        case Status.FAILED | Status.STOPPED:
            return Exit.FAILED
        case _:
            return Exit.WAITING


def shown_status(state: SessionState) -> str:
    """Return the status as lists show it: who waits for a person to go on is `paused`."""
    paused = state.waiting is not None and state.waiting.is_pause
    return "paused" if paused else str(state.status)


def report(
    watch: TerminalView,
    screen: Screen,
    log: LogUrl,
    *,
    rested: bool,
    as_json: bool,
    indent: int | None = 2,
) -> Exit:
    """Say how the session was left, and return the exit code."""
    state, id = watch.state, shown(watch.state.stream)  # noqa: A001 - the word of the log
    if as_json:
        typer.echo(json_of(_document(watch, id, log), indent=indent))
        return exit_of_state(state)
    screen.show([Line("dim", ""), *summary(id, shown_status(state), watch.telling.tally)])
    resume = resume_command(log, id)
    left = ["left while something was in flight; go on with", f"  {resume}"]
    if watch.gave_way:
        watching = command(log, "tail", "-f", id)
        left = ["another process drives it now; watch it with", f"  {watching}"]
    lines = next_step(state, id, log, resume) if rested else left
    screen.show(Line("note", line) for line in lines)
    return exit_of_state(state)


def next_step(
    state: SessionState,
    id: str,  # noqa: A002 - the word of the log
    log: LogUrl,
    resume: str,
    *,
    owned: bool = False,
    decided: Collection[str] = (),
    now: datetime | None = None,
) -> list[str]:
    """Say how a session that rests goes on; nothing of one that does not.

    *resume* is the command that drives it. Of one that is *owned*, a living
    process sees to it that it does; questions that are *decided* wait for
    nobody's word any more, nor do those whose time is over *now*.
    """
    resume = f"  {resume}"
    if state.status is Status.IDLE:
        return ["say more, and go on, with", f"  {command(log, 'send', id, 'TEXT')}", resume]
    if state.waiting is None:
        return []
    if state.questions and state.waiting.kind == "approval":
        then = [] if owned or is_up(log) else [resume]
        return _decide(_asked(state, decided), log, then, now or datetime.now(UTC))
    # Whatever no person has to end, ends by itself, where somebody drives it.
    by_itself = shown_status(state) != "paused"
    wait = state.waiting
    why = one_line(wait_text(wait.kind, wait.cause, paused=not by_itself), _WIDTH)
    if (more := _more(state, id, log)) is not None:
        return [f"{why}; raise the limit, and it goes on", more, resume]
    if by_itself and (owned or is_up(log)):
        return [f"{why}; it goes on by itself"]
    on = "go on with"
    if _too_long(state):
        on = "go on from an earlier version with"
        resume = f"  {command(log, 'fork', id, '--at', 'VERSION')}"
    return [f"{why}; {on}", resume]


def _too_long(state: SessionState) -> bool:
    """Whether the model had no room for the conversation: to ask it again is in vain."""
    model = state.turn.model
    if model is None or model.phase != "given_up" or model.error is None:
        return False
    return model.error.failure == "context_too_long"


def _decide(asked: list[CallApproval], log: LogUrl, then: list[str], now: datetime) -> list[str]:
    """Ask a person for what can still be answered."""
    left = [each for each in asked if each.deadline_at >= now]
    if not left:
        told = "the time to decide is over" if asked else "decided"
        return [f"{told}; go on with", *then] if then else [f"{told}; it goes on by itself"]
    closes_at = min(each.closes_at for each in left)
    # What is granted by itself is so when somebody drives it, and can be denied before.
    until = date_time(closes_at) if closes_at >= now else "it goes on"
    told = f"a person has to decide (until {until})"
    if any(each.question == "may_it_run" for each in left):
        told = f"{told}: approve, or deny likewise"
    told = f"{told}, then resume" if then else told
    return [told, *(line for each in left for line in _answers(each, log)), *then]


def _answers(asked: CallApproval, log: LogUrl) -> list[str]:
    if asked.question == "did_it_happen":
        return [f"{asked.id}: {ASKED}", *answer_lines(log, asked.id)]
    return [f"  {command(log, 'approve', asked.id)}"]


def _asked(state: SessionState, decided: Collection[str] = ()) -> list[CallApproval]:
    """Return what people are asked, but for what is *decided*."""
    asked = [state.call_of_approval(each) for each in state.questions if each not in decided]
    return [call.approval for call in asked if call and call.approval]


def _more(state: SessionState, id: str, log: LogUrl) -> str | None:  # noqa: A002 - the word of the log
    """Return the command that raises the limit which holds the session, if one does."""
    wait = state.waiting
    if wait is None or wait.raisable not in _OPTIONS:
        return None
    whose = shown(wait.cause.whose) if wait.cause.whose else id
    return f"  {command(log, 'budget', 'raise', whose, *_OPTIONS[wait.raisable])}"


def _document(watch: TerminalView, id: str, log: LogUrl) -> dict[str, Any]:  # noqa: A002 - the word of the log
    state, tally = watch.state, watch.telling.tally
    waiting = state.waiting
    # Under a pause a breaker may be due, or a retry; the pause goes on.
    ends_at = waiting.deadline_at if waiting and not waiting.is_pause else None
    if waiting and waiting.kind == "approval":
        # Its own may be sooner: then a reminder is due, or a warning.
        ends_at = min((each.closes_at for each in _asked(state)), default=None)
    return {
        "id": id,
        "status": shown_status(state),
        "result": watch.result,
        "partial": tally.partial,
        "error": watch.error,
        "waiting": None
        if waiting is None
        else {
            "kind": waiting.kind,
            "cause": waiting.cause.model_dump(mode="json"),
            "why": cause_text(waiting.cause),
            "deadline_at": document(ends_at),
            "limit": waiting.raisable or None,
            "whose": shown(waiting.cause.whose) if waiting.cause.whose else None,
            "approvals": state.questions,
            "in_doubt": doubts_document(state, log),
        },
        "turns": tally.turns,
        "tool_calls": tally.tool_calls,
        "tokens": tally.usage.model_dump(),
        "cost": str(tally.cost),
        "version": watch.version,
    }
