"""The session's sandbox: started for its calls, perhaps stopped while it rests."""

from msgspec.structs import replace

from cueline.deciders.session.state import SandboxUse, SessionState
from cueline.deciders.session.turn import Call
from cueline.events.session import SandboxAttached


def sandbox_attached(state: SessionState, event: SandboxAttached) -> SessionState:
    """Return *state* with a started sandbox; the calls that waited for it try again.

    The sandbox of a session that rests by now may be stopped.
    """
    use = SandboxUse(event.number, event.place, attached=state.waiting is None)
    calls = tuple(
        slot_offered(call) if _waits_for_slot(call) else call for call in state.turn.calls
    )
    return replace(state, sandbox=use, turn=state.turn.with_calls(calls))


def _waits_for_slot(call: Call) -> bool:
    return call.reach is not None and call.reach.slot is not None


def slot_offered(call: Call) -> Call:
    """Return *call*, which tries again what it waited for."""
    if call.reach is None or not call.unreached:
        return call
    return replace(call, reach=replace(call.reach, phase="trying"))


def without_sandbox(state: SessionState) -> SessionState:
    """Return *state* of a session that rests: from now on its sandbox may be stopped."""
    if not state.sandbox.attached:
        return state
    return replace(state, sandbox=replace(state.sandbox, attached=False))
