"""The state changes of inbox messages."""

from collections.abc import Iterable
from itertools import chain
from typing import Literal, assert_never

from msgspec.structs import replace

from cueline.deciders import prompt
from cueline.deciders.plan_progress import message_came
from cueline.deciders.session.budget import account_to_release, end_budget_wait
from cueline.deciders.session.children import child_asked, child_ended, child_paused, with_stop
from cueline.deciders.session.current_agent import accept_tools, choose_model
from cueline.deciders.session.limit import advance_wall_clock, held_at_limit, raise_asked
from cueline.deciders.session.question import approval_answered
from cueline.deciders.session.run import run_admitted, runner_gone
from cueline.deciders.session.sandbox import slot_offered
from cueline.deciders.session.state import PendingMessage, SessionHold, SessionState, Stop
from cueline.deciders.session.turn import Call, ModelCall
from cueline.events.agent import AgentSpec
from cueline.events.agent_parts import PROCEDURE
from cueline.events.codes import Cause, Refusal
from cueline.events.inbox import (
    BudgetFreed,
    ChildAsked,
    ChildEnded,
    ChildPaused,
    DecisionGiven,
    InboxMessage,
    MessageSent,
    ModelChangeAsked,
    PauseAsked,
    RaiseAsked,
    ResumeAsked,
    RunAdmitted,
    RunnerGone,
    SecretsWaived,
    SlotOffered,
    StartAsked,
    StopAsked,
)
from cueline.events.session import MessageReceived


def message_received(state: SessionState, event: MessageReceived) -> SessionState:
    """Return *state* after a message, which takes effect at the time of its recording."""
    return advance_wall_clock(_apply_message(state, event), event.recorded_at)


def _apply_message(state: SessionState, event: MessageReceived) -> SessionState:
    if event.gate_answer is not None:
        state = _queue_grant_note(approval_answered(state, event.gate_answer), event)
    state = replace(state, inbox_read=event.inbox_version)
    match event.message:
        case MessageSent():
            return _queue_message(state, event.inbox_version, event.message)
        case PauseAsked(why=why):
            return _pause(state, why)
        case ResumeAsked(tools=tools):
            return _resume(accept_tools(state, tools) if tools else state)
        case StopAsked(reason=reason):
            return _stop(state, reason)
        case RaiseAsked():
            return raise_asked(state, event.message)
        case DecisionGiven() | StartAsked():
            return state
        case SecretsWaived(names=names):
            return _waive_secrets(state, names)
        case ModelChangeAsked(model=model):
            return choose_model(state, model)
        case BudgetFreed():
            return end_budget_wait(state)
        case ChildAsked():
            return child_asked(state, event.message)
        case ChildEnded():
            return child_ended(state, event, event.message)
        case ChildPaused():
            return child_paused(state, event.inbox_version, event.message)
        case RunAdmitted():
            return run_admitted(state)
        case SlotOffered():
            calls = tuple(map(slot_offered, state.turn.calls))
            return replace(state, turn=state.turn.with_calls(calls))
        case RunnerGone():
            return runner_gone(state, event.message)
        case _:
            assert_never(event.message)


def _queue_grant_note(state: SessionState, event: MessageReceived) -> SessionState:
    """Return *state* with a grant's note or edited arguments as a message to the model."""
    if event.gate_answer is None or not event.gate_answer.told:
        return state
    told = prompt.fingerprint(prompt.user_message(event.gate_answer.told))
    return replace(state, mail=(*state.mail, PendingMessage(event.inbox_version, "note", (told,))))


def _queue_message(state: SessionState, version: int, message: MessageSent) -> SessionState:
    if state.progress is not None:
        came = message_came(state.progress, message.name, message.value)
        return replace(state, progress=came)
    said = prompt.fingerprint(prompt.user_message(message.text, message.attachments))
    if held_at_limit(state):
        state = replace(state, hold=None, account=account_to_release(state))
    return replace(
        state,
        mail=(*state.mail, PendingMessage(version, message.lane, (said,), message.turn)),
        turn=replace(state.turn, since_user=0),
    )


def _pause(state: SessionState, why: Literal["asked", "signal"]) -> SessionState:
    """Return *state* of a paused session; also a session at its limit is paused."""
    if state.stop is not None or (state.hold and not held_at_limit(state)):
        return state
    return replace(state, hold=SessionHold(Cause(code=why)))


def _stop(state: SessionState, reason: str) -> SessionState:
    return with_stop(state, Stop("user", "asked", reason))


def _waive_secrets(state: SessionState, names: tuple[str, ...]) -> SessionState:
    assert state.setup is not None, "what was never started refuses its messages"
    waived = tuple(dict.fromkeys((*state.setup.waived, *names)))
    return replace(state, setup=replace(state.setup, waived=waived))


def _resume(state: SessionState) -> SessionState:
    """Return *state* of a resumed session, which retries its effects except fatal failures."""
    state = end_budget_wait(replace(state, account=account_to_release(state)))
    turn = replace(state.turn, since_user=0)
    model = turn.model
    if model is not None and model.phase in ("given_up", "retry") and not model.fatal:
        again = ModelCall(model.effect, model.attempt, "retry", early=True)
        model = replace(again, error=model.error)
    if model is not None and model.blocked_by_breaker:
        model = replace(model, blocked_by_breaker=None, early=True)
    calls = tuple(_without_waits(call) for call in turn.calls)
    turn = replace(turn.with_calls(calls), model=model)
    return replace(state, hold=None, turn=turn, takeovers=0)


def _without_waits(call: Call) -> Call:
    """Return *call* without its waits, because a person resumed the session."""
    if call.blocked_by_breaker:
        call = replace(call, blocked_by_breaker=None, early=True)
    if call.reach:
        call = replace(call, reach=None)
    if call.phase == "retry":
        return replace(call, phase="requested", retry_at=None, rests=False, early=True)
    return call


def will_stop(state: SessionState, unread: Iterable[object]) -> bool:
    """Whether the session is stopping, or will be after it reads *unread*."""
    return state.stop is not None or any(isinstance(said, StopAsked) for said in unread)


def waived_secrets(state: SessionState, unread: Iterable[object]) -> set[str]:
    """Return the names of the secrets that people waived, also in *unread* messages."""
    before = () if state.setup is None else state.setup.waived
    said = [each.names for each in unread if isinstance(each, SecretsWaived)]
    return {*before, *chain.from_iterable(said)}


def will_be_held(state: SessionState, unread: Iterable[object]) -> bool:
    """Whether the session is paused, or will be after it reads *unread*."""
    said = [each for each in unread if isinstance(each, PauseAsked | ResumeAsked)]
    return isinstance(said[-1], PauseAsked) if said else state.hold is not None


def unheard(agent: AgentSpec, message: InboxMessage) -> Refusal | None:
    """Return why a session of *agent* refuses *message*; None if the session accepts it."""
    plan = agent.plan
    match message:
        case MessageSent(name=name) if name:
            if plan is None or name not in [step.wait for step in plan.steps]:
                return Refusal(code="no_such_wait", by=name)
        case MessageSent() | ModelChangeAsked() if plan is not None:
            procedure = agent.provider == PROCEDURE
            return Refusal(
                code="procedural_agent_no_resume" if procedure else "plan_takes_no_messages"
            )
    return None
