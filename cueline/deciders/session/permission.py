"""Decides whether a model call, a tool call or a question may start now."""

from cueline.deciders.session.state import SessionState
from cueline.deciders.session.turn import Call, ModelCall, Question
from cueline.events.approval import SupersedeCode


def may_ask(state: SessionState, model: ModelCall) -> bool:
    """Whether the model request may start now."""
    if model.phase != "requested" or model.blocked_by_breaker is not None:
        return False
    paid = model.room is None and not state.account.bills
    return paid and not (state.hold or state.stop or state.unstarted)


def may_start(state: SessionState, call: Call) -> bool:
    """Whether the call may start on a runner now."""
    if call.phase != "requested" or call.blocked_by_breaker is not None or call.problem is not None:
        return False
    held = state.hold or state.stop or state.unstarted or state.steered
    return not held and call.allowed and startable(state, call)


def startable(state: SessionState, call: Call) -> bool:
    """Whether the order of calls allows *call* to run now: a call that is not parallel runs alone.

    A call of a plan is added only when its needed steps are over.
    """
    if state.progress is not None:
        return True
    parallel = call.parallel  # so are the calls that wait for a child
    for earlier in state.turn.awake if parallel else state.turn.calls:
        if earlier.effect == call.effect:
            return True
        if earlier.phase != "closed" and not (parallel and earlier.parallel):
            return False
    return False


def asks(state: SessionState, call: Call) -> Question | None:
    """Return the question to ask a person about the call; None: no question."""
    if call.approval is not None or call.problem is not None or state.hold or state.stop:
        return None
    if call.phase == "requested" and call.gated and not (state.steered or call.runs_held):
        return "may_it_run"
    if call.phase == "asked" and not state.steered:
        return "what_to_answer"
    if call.phase == "deferred" and call.unanswered:
        return "what_to_answer"
    if call.phase == "in_doubt" and not call.reconciles and call.in_doubt_resolution is None:
        return "did_it_happen"
    return None


def need_ended_by(state: SessionState, effect: str) -> SupersedeCode | None:
    """Return why the approval of *effect* is no longer needed; None while it is needed."""
    if state.finished or state.stop is not None:
        return "stop"
    call = state.call(effect)
    return "steer" if call is None or call.phase == "closed" else None


def allowing_rule(call: Call) -> str:
    """Return the rule or grant that allows the call."""
    if call.approval is not None and call.approval.granted is not None:
        return f"granted by {call.approval.granted}"
    if call.gated and call.runs_held:
        return "held"
    return call.judged.rule


def on_open(state: SessionState, call: Call) -> str:
    """Return the setting for an open breaker of the call's tool."""
    assert state.setup is not None, "a call belongs to a session that was started"
    tool = state.setup.tools.get(call.tool)
    return tool.breaker.on_open if tool is not None and tool.breaker else "wait"
