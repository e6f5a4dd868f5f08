"""What waits in the inbox of a session that nobody drives: it counts, and is not read yet."""

from typing import TYPE_CHECKING

from cueline.actors.followed import Followed
from cueline.actors.inbox import Unread
from cueline.cli.reading import journal_of
from cueline.client.decide import approval_of, read_on
from cueline.console.question import answer_told
from cueline.console.text import one_line
from cueline.event_text import stop_text
from cueline.events.codec import Emptied
from cueline.events.fact import Fact
from cueline.events.inbox import (
    DecisionGiven,
    MessageSent,
    RaiseAsked,
    SecretsWaived,
    StopAsked,
)
from cueline.events.stream import tenant_of

if TYPE_CHECKING:
    from cueline.deciders.approval import ApprovalState
    from cueline.deciders.session import SessionState

_WIDTH = 60
_ASKED = {
    "PauseAsked": "pause asked",
    "ResumeAsked": "resume asked",
}


async def decided(followed: Followed, unread: Unread) -> set[str]:
    """Return the questions that need no further word when *unread* is read."""
    journal, tenant = journal_of(followed.store), tenant_of(followed.stream)
    approvals = {
        name: await approval_of(journal, f"{tenant}/{name}") for name in followed.state.questions
    }
    return {name for name, approval in approvals.items() if is_decided(name, approval, unread)}


def is_decided(name: str, approval: "ApprovalState", unread: Unread) -> bool:
    """Whether *approval* has a verdict when *unread* is read."""
    for recorded, said in unread:
        if isinstance(said, DecisionGiven) and said.approval == name:
            approval = read_on(approval, recorded, said)
    return approval.verdict is not None


def suffices(state: "SessionState", unread: Unread) -> bool:
    """Whether nobody need say more: it was idle until something came, is to end, or got more."""
    enough = (StopAsked, RaiseAsked)
    return state.status == "idle" or any(isinstance(said, enough) for _, said in unread)


def clean_messages(unread: Unread, state: "SessionState") -> Unread:
    """Return *unread* without the secrets that are known here, though not where it was said."""
    from cueline.events.clean import clean
    from cueline.secret import redactor_of

    redactor = redactor_of(None if state.setup is None else state.agent)
    return [(recorded, clean(said, redactor)[0]) for recorded, said in unread]


def told(unread: Unread) -> list[str]:
    """Say what people put into an inbox; of what other sessions do, nothing."""
    lines = [f"  {line}" for _, said in unread if (line := _line(said))]
    return ["not read yet, for nobody drives it:", *lines] if lines else []


def _line(said: Fact | Emptied) -> str:
    match said:
        case DecisionGiven(approval=approval, by=by):
            return (
                f"{approval} {answer_told(said.verdict, said.resolution)} by {one_line(by, _WIDTH)}"
            )
        case MessageSent(lane=lane, text=text):
            return f"{lane}: {one_line(text, _WIDTH)}"
        case StopAsked(reason=reason):
            return f"stop asked: {one_line(stop_text(reason), _WIDTH)}"
        case SecretsWaived(names=names, by=by):
            return f"{', '.join(names)} waived by {one_line(by, _WIDTH)}"
        case RaiseAsked():
            limits = said.model_dump(exclude={"type"}, exclude_none=True)
            return f"asked for {', '.join(f'{name} {limit}' for name, limit in limits.items())}"
        case _:
            return _ASKED.get(said.type, "")
