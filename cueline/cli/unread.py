"""What waits in the inbox of a session that nobody drives: it counts, and is not read yet."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cueline.cli.deciding import DONE
from cueline.cli.following import Followed
from cueline.cli.reading import journal_of
from cueline.console.text import one_line
from cueline.events.inbox import DecisionGiven, MessageSent, RaiseAsked, StopAsked
from cueline.events.stream import sibling

if TYPE_CHECKING:
    from cueline.deciders.session import SessionState
    from cueline.events.codec import Emptied
    from cueline.events.fact import Fact

_WIDTH = 60
_ASKED = {
    "PauseAsked": "pause asked",
    "ResumeAsked": "resume asked",
}


async def unread_of(followed: Followed) -> "list[Fact | Emptied]":
    """Return the messages that the session has not read."""
    inbox = sibling(followed.stream, "inbox")
    read = max(followed.state.inbox_read, 1)  # the first is the wish for the session itself
    return [said async for _, said in journal_of(followed.store).read(inbox, read)]


def decided(state: "SessionState", unread: "Sequence[Fact | Emptied]") -> set[str]:
    """Return the questions that need no further word when *unread* is read."""
    found = set()
    for call in state.open_calls:
        asked = call.approval
        if asked is None or not call.asking:
            continue
        given = [
            each
            for each in unread
            if isinstance(each, DecisionGiven)
            and (each.approval, each.digest) == (asked.id, asked.digest)
        ]
        people = {each.by for each in given if each.verdict == "grant"}
        needed = call.judged.votes if asked.question == "may_it_run" else 1
        if len(people) >= needed or any(each.verdict == "deny" for each in given):
            found.add(asked.id)
    return found


def suffices(state: "SessionState", unread: "Sequence[Fact | Emptied]") -> bool:
    """Whether nobody need say more: it was idle until something came, is to end, or got more."""
    enough = (StopAsked, RaiseAsked)
    return state.status == "idle" or any(isinstance(each, enough) for each in unread)


def told(unread: "Sequence[Fact | Emptied]") -> list[str]:
    """Say what people put into an inbox; of what other sessions do, nothing."""
    lines = [f"  {line}" for each in unread if (line := _line(each))]
    return ["not read yet, for nobody drives it:", *lines] if lines else []


def _line(said: "Fact | Emptied") -> str:
    match said:
        case DecisionGiven(approval=approval, verdict=verdict, by=by):
            return f"{approval} {DONE[verdict]} by {one_line(by, _WIDTH)}"
        case MessageSent(lane=lane, text=text):
            return f"{lane}: {one_line(text, _WIDTH)}"
        case StopAsked(reason=reason):
            return f"stop asked: {one_line(reason, _WIDTH)}"
        case RaiseAsked():
            limits = said.model_dump(exclude={"type"}, exclude_none=True)
            return f"asked for {', '.join(f'{name} {limit}' for name, limit in limits.items())}"
        case _:
            return _ASKED.get(said.type, "")
