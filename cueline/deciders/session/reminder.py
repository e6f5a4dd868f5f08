"""When hooks notify people about a call."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from cueline.deciders.session.state import SessionState
from cueline.deciders.session.turn import Call


def due_notifications(
    state: SessionState, call: Call
) -> Iterator[tuple[str, int, datetime | None]]:
    """Yield each due hook with its approval, if any, and the earliest time to run it."""
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
