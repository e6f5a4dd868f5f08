"""Asking a person through the gate, and ending the question."""

from datetime import timedelta

from cueline.actors.approval_gate import ApprovalName
from cueline.actors.effect import Collaborators
from cueline.actors.outfit import Outfit
from cueline.deciders.approval import AUTO_APPROVER
from cueline.deciders.session.due import AskApproval, CloseApproval
from cueline.events.approval import ApprovalOpened
from cueline.events.clean import clean
from cueline.events.message import ToolCall
from cueline.events.session import ApprovalRequested, ApprovalResolved, GateAnswer

IN_DOUBT = "Its runner died while it ran. Did it take effect?"
_SHOWN = 200


class Asker:
    """Puts the questions of one session to people."""

    __slots__ = ("_outfit", "_parts", "_stream")

    def __init__(self, stream: str, outfit: Outfit, parts: Collaborators) -> None:
        self._stream = stream
        self._outfit = outfit
        self._parts = parts

    async def ask(
        self, effect: AskApproval, call: ToolCall, epoch: int
    ) -> list[ApprovalRequested | ApprovalResolved]:
        """Open the question; where that was chosen at the start it is granted at once."""
        opened = clean(self._opened(effect, call, epoch), self._outfit.redactor)[0]
        automatic = self._outfit.agent.policy.auto_approve and effect.question == "may_it_run"
        held = await self._parts.gate.open(
            ApprovalName(self._stream, effect.approval),
            opened,
            AUTO_APPROVER if automatic else None,
        )
        requested = ApprovalRequested(
            effect=effect.effect,
            approval=effect.approval,
            digest=held.digest,
            deadline_at=held.deadline_at,
            question=effect.question,
            rule=opened.rule,
        )
        return [requested, *_resolved(effect.approval, held.answer)]

    async def close(self, effect: CloseApproval) -> list[ApprovalRequested | ApprovalResolved]:
        """Tell the gate that the need, or the time, has ended."""
        name = ApprovalName(self._stream, effect.approval)
        if effect.superseded_by is not None:
            answer = await self._parts.gate.supersede(name, effect.superseded_by)
        else:
            answer = await self._parts.gate.expire(name, self._parts.clock.now())
        return [*_resolved(effect.approval, answer)]

    def _opened(self, effect: AskApproval, call: ToolCall, epoch: int) -> ApprovalOpened:
        now = self._parts.clock.now()
        doubt = effect.question == "did_it_happen"
        return ApprovalOpened(
            session=self._stream,
            effect=effect.effect,
            digest=effect.digest,
            question=effect.question,
            tool=call.name,
            arguments=call.arguments,
            summary=summary(call),
            rationale=IN_DOUBT if doubt else "",
            rule="in doubt" if doubt else "sensitive",
            epoch=epoch,
            opened_at=now,
            deadline_at=now + timedelta(seconds=self._outfit.agent.policy.approval_seconds),
        )


def summary(call: ToolCall) -> str:
    """Return what a person is shown of a call: the tool and its arguments, in short."""
    parts = [f"{name}={str(value)[:_SHOWN]!r}" for name, value in call.arguments.items()]
    return f"{call.name}({', '.join(parts)})"


def _resolved(approval: str, answer: GateAnswer) -> list[ApprovalResolved]:
    if answer.verdict is None:
        return []
    by = answer.by or "clock"
    return [ApprovalResolved(approval=approval, verdict=answer.verdict, by=by, note=answer.note)]
