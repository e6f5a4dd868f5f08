"""Computes whether a session waits, the reason, and the end of the wait."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal

from cueline.deciders.session.budget import due_closings
from cueline.deciders.session.children import awaited
from cueline.deciders.session.limit import next_warning_at
from cueline.deciders.session.permission import startable
from cueline.deciders.session.state import LIVE, SessionState, Wait
from cueline.deciders.session.turn import Call, ModelCall
from cueline.events.codes import Cause
from cueline.events.status import Status


def due_notifications(
    state: SessionState, call: Call
) -> Iterator[tuple[str, int, datetime | None]]:
    """Yield the approval (or empty), index and earliest time (or None) of each due hook."""
    hooks = state.agent.policy.hooks
    if not hooks:
        return
    if call.judged.answer == "notify" and call.phase in ("started", "closed"):
        for index in _missing(state, call, "", "notify"):
            yield "", index, None
    if call.approval is None or not call.asking or state.stop or state.steered:
        return
    name = call.approval.id
    for index in _missing(state, call, name, "asked"):
        yield name, index, None
    opened_at = call.approval.deadline_at - timedelta(seconds=state.agent.policy.approval_seconds)
    for index in _missing(state, call, name, "reminder"):
        yield name, index, opened_at + timedelta(seconds=hooks[index].after_seconds)


def _missing(state: SessionState, call: Call, approval: str, on: str) -> Iterator[int]:
    for index, hook in enumerate(state.agent.policy.hooks):
        if hook.on == on and (approval, index) not in call.told:
            yield index


def task_cause(tool: str) -> Cause:
    """Return why a session waits for the task of a call of *tool*."""
    return Cause(code="task_working", name=tool)


_UNREACHABLE = Cause(code="runner_unreachable")
_RETRY = Cause(code="retry_pending")


def rests(state: SessionState, now: datetime) -> bool:
    """Whether the session needs no host, because it does nothing until a message comes.

    A session with an expired approval does not rest.
    """
    wait = state.waiting
    if wait is None or state.finished:
        return state.finished or state.status is Status.IDLE
    asked = wait.kind == "approval" and (wait.deadline_at is None or wait.deadline_at > now)
    return wait.is_pause or asked


def wait_of(state: SessionState) -> Wait | None:
    """Return the wait of the session; None while it has an effect to do.

    The kind is the strongest open reason; the deadline is the earliest of all.
    """
    held = state.hold or state.unstarted
    if _finishes_while_paused(state) if held else _has_work(state):
        return None
    until = wake_at(state)
    if state.hold:
        return Wait("operator", state.hold.cause, until)
    if state.schedule is not None:
        every = state.schedule.every_seconds or 0
        return Wait("time", Cause(code="scheduled", every_seconds=every), until)
    if state.run is not None and state.queued:
        if state.run.until is None and not state.run.max_running:
            return None
        most = Decimal(state.run.max_running)
        return Wait("runner", Cause(code="queued", blueprint=state.run.blueprint, of=most), until)
    room = state.turn.model.room if state.turn.model is not None else None
    if room is not None:
        return Wait("budget", room.cause, until, room.until is None)
    if questions := state.questions:
        pending = Cause(code="approval_pending", approvals=tuple(questions))
        return Wait("approval", pending, until)
    if told := [call.message for call in state.turn.awake if call.phase == "awaiting"]:
        return Wait("message", Cause(code="message_awaited", name=told[0]), until)
    if children := awaited(state):
        running = Cause(code="child_running", times=len(children), whose=children[0].stream)
        return Wait("child", running, until)
    if tasks := [call.tool for call in state.turn.awake if call.phase == "deferred"]:
        return Wait("task", task_cause(tasks[0]), until)
    if any(call.unreached for call in state.turn.awake):
        slots = [call.reach.slot for call in state.turn.awake if call.unreached and call.reach]
        if (slot := next(filter(None, slots), None)) is not None:
            return Wait("sandbox", slot, until)
        recorded = state.waiting is not None and state.waiting.kind == "runner"
        cause = state.waiting.cause if state.waiting and recorded else _UNREACHABLE
        return Wait("runner", cause, until)
    if state.blocked_by_breaker:
        return Wait("breaker", state.blocked_by_breaker[0].cause, until)
    if _times_of_effects(state):
        return Wait("retry", _RETRY, until)
    return None


def wake_at(state: SessionState) -> datetime | None:
    """Return the next time at which an effect becomes due.

    A passed time is recorded as `SessionContinued(at=now)`, or for an approval as the gate's
    answer. During a pause, a passed time starts no effect. Return None for a session that
    killed hosts.
    """
    if state.status not in LIVE:
        return None
    times, rung = _times_of_effects(state), next_warning_at(state)
    times += [child.deadline_at for child in state.children if child.deadline_at is not None]
    if rung is not None:
        times.append(rung)
    if state.run is not None and state.run.until is not None and state.stop is None:
        times.append(state.run.until)
    if state.schedule is not None and not (state.hold or state.stop):
        times.append(state.schedule.at)
    return min(times) if times and not state.poisoned else None


def _times_of_effects(state: SessionState) -> list[datetime]:
    times, model = [], state.turn.model
    if model is not None and model.retry_at is not None:
        times.append(model.retry_at)
    if model is not None and model.blocked_by_breaker is not None:
        times.append(model.blocked_by_breaker.until)
    if model is not None and model.room is not None and model.room.until is not None:
        times.append(model.room.until)
    for call in state.turn.awake:
        if call.retry_at is not None:
            times.append(call.retry_at)
        if call.blocked_by_breaker is not None:
            times.append(call.blocked_by_breaker.until)
        if call.reach is not None and call.unreached:
            times.append(call.reach.until)
        if call.approval is not None and call.asking:
            times.append(call.approval.closes_at)
            times.extend(at for _, _, at in due_notifications(state, call) if at is not None)
    return times


def in_flight(call: Call) -> bool:
    """Whether a runner may be running the call."""
    return call.phase == "started" and not call.unreached


def _finishes_while_paused(state: SessionState) -> bool:
    """Whether an effect finishes, or an approval is closed, although the session is paused."""
    if due_closings(state):
        return True
    if state.poisoned:
        return False
    model = state.turn.model
    if model is not None and model.phase == "started":
        return True
    return any(in_flight(call) or (call.asking and state.steered) for call in state.turn.awake)


def _has_work(state: SessionState) -> bool:
    """Whether an effect runs or is due."""
    model = state.turn.model
    if state.account.bills or (model is not None and _is_busy(model)):
        return True
    for call in state.turn.awake:
        if call.phase != "awaiting" and _busy(state, call):
            return True
    return False


def _is_busy(model: ModelCall) -> bool:
    if model.blocked_by_breaker is not None:
        return False
    if model.phase == "requested":
        return model.room is None
    return model.phase == "started" or (model.phase == "retry" and not model.rests)


def _busy(state: SessionState, call: Call) -> bool:
    if call.asking:
        # Notify people before the wait: a host may die before the hook ran.
        ended = state.steered or call.problem is not None
        return ended or any(at is None for _, _, at in due_notifications(state, call))
    if call.unreached or call.blocked_by_breaker is not None:
        return False
    if call.phase == "retry":
        return not call.rests
    if call.phase == "deferred":
        return call.retry_at is None
    if call.phase == "requested":
        return not call.allowed or startable(state, call)
    return True
