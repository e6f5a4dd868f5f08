"""The sentences for the codes that events hold."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from cueline.events.approval import ApprovalOpened, Doubt
from cueline.events.codes import Cause, Refusal
from cueline.events.inbox import Resolution
from cueline.events.session import (
    CapabilityDegraded,
    Cut,
    PeopleNotified,
    PrefixReason,
    PromptPrefixChanged,
    SessionFailed,
    SessionStopped,
    WaitKind,
)
from cueline.events.stream import shown

_STEP_ENDS: Final = {
    "not_wanted": "its `when` does not hold",
    "need_not_completed": "a step that it needs did not complete",
    "no_issues_found": "no step that it needs found issues",
    "step_failed": "the workflow had failed before",
    "workflow_ended": "the workflow ended before it began",
}
RESOLUTIONS: Mapping[Resolution, str] = {
    "happened": "it took effect: it does not run again, and the agent gets the result you give",
    "run_again": "it runs again, even if it took effect before",
    "do_not_run": "it does not run again; the agent is told that the outcome is unknown",
}
"""The meaning of each answer to the question about a call in doubt."""

_WAITS: Mapping[WaitKind, str] = {
    "operator": "a person",
    "time": "its time",
    "budget": "room in the budget",
    "breaker": "a breaker",
    "retry": "the next try",
    "runner": "a runner",
    "child": "a child session",
    "task": "a task of a server",
    "sandbox": "a sandbox",
    "message": "a message",
}


def step_text(error_code: str, error: str) -> str:
    """Return why a step of a plan failed or was skipped; empty for a completed step."""
    why = _STEP_ENDS.get(error_code, error_code)
    return f"{why}: {error}" if error and why else why or error


def cause_text(cause: Cause) -> str:  # noqa: C901, PLR0911, PLR0912 - one case for each code
    """Return why a session waits or is paused."""
    match cause.code:
        case "asked":
            return "on request"
        case "signal":
            return "by Ctrl-C or a signal"
        case "limit_reached":
            return f"limit: {_limit_text(cause)}"
        case "hosts_died":
            return f"error: its host died {counted(cause.times, 'time')} in it"
        case "unexpected_error":
            return f"error: {cause.message}"
        case "rule_failed":
            return f"error: a rule of cueline failed, what happened is recorded: {cause.message}"
        case "model_failed" | "tool_failed":
            return f"error: {cause.failure}: {cause.message}"
        case "call_denied":
            return "User cancelled at checkpoint"
        case "approval_pending":
            return ", ".join(cause.approvals)
        case "approval_expired":
            return "approval expired"
        case "budget_busy":
            spent, held = _amount(cause, cause.spent), _amount(cause, cause.held)
            return f"busy: {_budget(cause)}, {spent} is spent and {held} is held for others"
        case "budget_exhausted":
            spent, need = _amount(cause, cause.spent), _amount(cause, cause.need)
            left = f"{spent} spent, the next call may take {need}"
            return f"not enough left: {_budget(cause)}, {left}"
        case "runner_unreachable":
            if not cause.runner:
                return "no runner can be reached"
            return f"runner {cause.runner} cannot be reached"
        case "no_runner":
            return f"no runner offers {cause.unmet}" if cause.unmet else "there is no runner"
        case "no_slot":
            ahead = f", after {counted(cause.times, 'other session')}" if cause.times else ""
            most = counted(int(cause.of), "sandbox", "sandboxes")
            return f"{most} may be started at a time{ahead}"
        case "sandbox_failed":
            return f"its sandbox cannot be started: {cause.message}"
        case "scheduled":
            often = interval_text(cause.every_seconds)
            return f"it starts then{often and f', and another one {often}'}"
        case "queued":
            if cause.of:
                most = counted(int(cause.of), "run")
                return f"{most} of {cause.blueprint} may go on at a time, and it is not its turn"
            return f"no runner has claimed this run of {cause.blueprint} yet"
        case "breaker_open":
            return f"{cause.dependency} keeps failing ({cause.failure})"
        case "breaker_held":
            return f"{cause.dependency} asks to be left alone ({cause.failure})"
        case "breaker_probing":
            return f"{cause.dependency} is tried by one call"
        case "retry_pending":
            return "a failed attempt is tried again"
        case "child_running":
            more = f" and {cause.times - 1} more" if cause.times > 1 else ""
            return f"{shown(cause.whose)}{more}"
        case "task_working":
            return f"{cause.name} goes on there, and is asked for again"
        case "message_awaited":
            return f"send it with `cueline send SESSION --name {cause.name} VALUE`"


_INSTEAD: Mapping[str, str] = {
    "tools": "it is told of them in the prompt, and calls them in its text",
    "images": "a text stands for each",
}


def wait_text(kind: WaitKind, cause: Cause, *, paused: bool, until: str = "") -> str:
    """Return the description of a wait, with kind, end and cause, or of a pause if *paused*."""
    why = cause_text(cause)
    if paused:
        return f"paused {why}" if cause.code in ("asked", "signal") else f"paused: {why}"
    if kind == "approval":
        return f"waiting for approval {why}"
    return f"waiting for {_WAITS[kind]}{until}: {why}"


def compaction_text(cut: Cut) -> str:
    """Return a text about the messages that a summary replaces."""
    return f"a summary replaces the first {cut.messages} of {cut.of} messages in requests:"


def prefix_text(changed: PromptPrefixChanged) -> str:
    """Return why the next prompt begins differently."""
    why = _PREFIXES[changed.reason]
    if changed.before != changed.after:
        why = f"{changed.after} is asked instead of {changed.before}{f', {why}' if why else ''}"
    return why if changed.cause is None else f"{why}: {cause_text(changed.cause)}"


_PREFIXES: Final[dict[PrefixReason, str]] = {
    "model_switched": "as a person chose",
    "fallback": "",
    "fallback_returned": "the agent's own model again",
    "compacted": "a summary replaced old messages",
    "tools_changed": "changed tools were accepted",
    "forked_with_another_agent": "the fork has another agent",
}


def degraded_text(degraded: CapabilityDegraded) -> str:
    """Return a text about the capability that a model lacks, and its substitute."""
    instead = _INSTEAD.get(degraded.capability, "the request goes without")
    return f"{degraded.provider} {degraded.model} has no {degraded.capability}: {instead}"


def end_text(end: SessionFailed | SessionStopped) -> str:
    """Return why a session failed or was stopped, without the person who stopped it."""
    if isinstance(end, SessionFailed):
        if end.kind == "approval_expired":
            return f"nobody decided on {end.approval}"
        if end.kind in ("no_matching_runner", "runner_disconnected"):
            return end.message
        return f"{end.kind}: {end.message}"
    match end.code:
        case "asked":
            return stop_text(end.reason)
        case "call_denied":
            return f"User cancelled at checkpoint{f': {end.reason}' if end.reason else ''}"


def stop_text(reason: str) -> str:
    """Return why a person ended a session."""
    return reason or "Session was manually stopped"


QUESTIONS: Final = {
    "may_it_run": "may it run?",
    "did_it_happen": "did it happen?",
    "what_to_answer": "what is the answer?",
}
"""The questions of approvals in words."""


def refusal_text(refusal: Refusal) -> str:  # noqa: C901, PLR0911, PLR0912 - one case for each code
    """Return why a message is refused."""
    by, people = refusal.by, counted(refusal.votes, "person", "people")
    match refusal.code:
        case "session_ended":
            return f"the session has ended: {refusal.status}"
        case "session_stopping":
            return "the session is being stopped"
        case "never_started":
            return "the session was never started"
        case "started_before":
            return "the session was started before"
        case "no_such_approval":
            return "there is no such approval"
        case "already_decided":
            return f"already {refusal.status}"
        case "other_digest":
            return "it was given for something else than what is asked now"
        case "too_late":
            return "it came after the deadline"
        case "not_in_doubt":
            return "it is asked whether the call may run, not what became of it"
        case "not_resolved":
            choices = "; ".join(f"{each} ({then})" for each, then in RESOLUTIONS.items())
            return f"nobody knows whether the call took effect; say one of: {choices}"
        case "not_answered":
            return "the call asks for an answer: give one, or deny it"
        case "no_result":
            return "only a call that happened has a result"
        case "no_person":
            return f"{by or 'one without a name'} is no person"
        case "excluded":
            return f"{by} asked for the session, and may not allow it"
        case "not_allowed":
            return f"{by} may not allow it; {' or '.join(refusal.may_grant)} may"
        case "granted_before":
            return f"{by} has allowed it already, and it takes {people}"
        case "nothing_to_change":
            return "only a call that waits to run can be changed, or allowed for later"
        case "needs_others":
            return f"it takes {people}, so one alone can neither change nor extend it"
        case "no_limit_named":
            return "it names no limit"
        case "no_such_limit":
            return f"the session has no {refusal.limit}: a limit can be raised, not introduced"
        case "not_higher":
            unread = " (asked for before, and not read yet)" if refusal.unread else ""
            return f"{refusal.limit} is {refusal.of:f} already: it can only be raised{unread}"
        case "plan_takes_no_messages":
            return "it follows a plan, so no model reads messages"
        case "no_such_wait":
            return f"no step of its plan waits for a message {refusal.by!r}"
        case "procedural_agent_no_resume":
            why = "it is a procedure, which nothing continues: start it again"
            return f"procedural_agent_no_resume: {why}"


def rationale_text(opened: ApprovalOpened) -> str:
    """Return why a call needs a person's approval."""
    if opened.doubt is not None:
        return _doubt_question(opened.doubt)
    if opened.requests:
        return f"The tool {opened.tool} asks before it does anything."
    cost = f", and is estimated to cost ${opened.usd}" if opened.usd is not None else ""
    if opened.unpriced:
        cost = f", and nobody knows what it will cost: {opened.unpriced}"
    people = f" {opened.votes} people have to allow it." if opened.votes > 1 else ""
    return f"A call of {opened.tool} needs a person's word by the rule {opened.rule}{cost}.{people}"


def doubt_text(cause: Cause) -> str:
    """Return the evidence that nobody will report the outcome of a call."""
    return cause.message or cause_text(cause)


def untold_text(told: PeopleNotified) -> str:
    """Return why a hook notified nobody."""
    match told.code:
        case "told":
            return ""
        case "call_over":
            return "the call is over"
        case "question_over":
            return "the question is over"
        case "hook_failed":
            return told.problem


def _doubt_question(doubt: Doubt) -> str:
    itself = " Its own check could not tell." if doubt.checked else ""
    again = " To run it again needs a grant of those whom the policy names, who are asked then."
    return (
        f"Attempt {doubt.attempt} was given to runner {doubt.runner}, which was gone before it "
        f"reported: {doubt_text(doubt.cause)}.{itself} Did the call take effect?"
        f"{again if doubt.people_only else ''}"
    )


def _limit_text(cause: Cause) -> str:
    match cause.limit:
        case "max_turns":
            return f"{counted(int(cause.of), 'turn')} since the last message"
        case "max_active_seconds":
            return f"{float(cause.of):g} s of work (max_active_seconds)"
        case _:
            return f"{float(cause.of):g} s since the start ({cause.limit})"


def _budget(cause: Cause) -> str:
    whose = f" of {shown(cause.whose)}" if cause.whose else ""
    return f"{cause.limit} {_amount(cause, cause.of)}{whose}"


def _amount(cause: Cause, number: Decimal) -> str:
    if cause.limit == "max_tokens":
        return counted(int(number), "token")
    return f"{number.normalize():f} USD"


def interval_text(seconds: float) -> str:
    """Return how often a series of sessions starts; empty for 0."""
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        if seconds and (seconds % size == 0 or size == 1):
            return f"every {seconds / size:g} {unit}"
    return ""


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return *number* with its noun, singular or plural."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
