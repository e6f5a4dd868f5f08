"""Opens and closes approvals at the gate for one session."""

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from pydantic import JsonValue

from cueline.actors.agent_cache import LoadedAgent
from cueline.actors.approval_gate import ApprovalName
from cueline.actors.host_dependencies import HostDependencies
from cueline.deciders.approval import AUTO_IN_TIME, auto_approver
from cueline.deciders.session.due import AskApproval, CloseApproval
from cueline.deciders.session.turn import Call
from cueline.events.approval import ApprovalOpened, Doubt
from cueline.events.fact import shared_fields
from cueline.events.input_request import InputRequest
from cueline.events.message import ToolCall, canonical_json
from cueline.events.sanitize import sanitize_record
from cueline.events.session import ApprovalRequested, ApprovalResolved, GateAnswer, Judgement

IN_DOUBT: Final = Judgement(answer="ask", rule="in_doubt")
"""The requirement of a call in doubt, under any policy: any person may resolve it."""
ASKED: Final = "asked"
"""The name in place of a rule where the tool itself asks a person; anybody may answer."""
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Facts about a call, beside its arguments, that are shown with the question."""

    judged: Judgement
    epoch: int
    asked_by: str
    """The person who started the session."""
    escalated: bool
    """Whether an earlier question about the call has expired."""
    requests: tuple[InputRequest, ...] = ()
    """What the call asks a person for."""
    doubt: Doubt | None = None
    """Known evidence about a call in doubt."""
    held: str = ""
    """What the call would change, if its run has shown that."""


class ApprovalClient:
    """Opens and closes the approvals of one session."""

    __slots__ = ("_dependencies", "_loaded_agent", "_stream")

    def __init__(
        self, stream: str, loaded_agent: LoadedAgent, dependencies: HostDependencies
    ) -> None:
        self._stream = stream
        self._loaded_agent = loaded_agent
        self._dependencies = dependencies

    async def ask(
        self, effect: AskApproval, call: ToolCall, about: Circumstances
    ) -> list[ApprovalRequested | ApprovalResolved]:
        """Open the approval; grant it at once if `auto_approve` is set."""
        opened = sanitize_record(self._opened(effect, call, about), self._loaded_agent.redactor)
        automatic = self._loaded_agent.agent.policy.auto_approve and _may_be_automatic(
            effect, about
        )
        held = await self._dependencies.gate.open(
            ApprovalName(self._stream, effect.approval),
            opened,
            auto_approver(self._loaded_agent.agent) if automatic else None,
        )
        requested = ApprovalRequested(
            effect=effect.effect,
            approval=effect.approval,
            digest=held.digest,
            deadline_at=held.deadline_at,
            question=effect.question,
            requests=opened.requests,
            rule=opened.rule,
            usd=opened.usd,
            votes=held.votes,
            auto_at=held.auto_at,
            people_only=about.judged.people_only,
            escalated=about.escalated,
            seen=seen_digest(held.preview),
        )
        return [requested, *_resolved(effect.approval, held.answer)]

    async def close(self, effect: CloseApproval) -> list[ApprovalRequested | ApprovalResolved]:
        """Supersede or expire the approval at the gate."""
        name = ApprovalName(self._stream, effect.approval)
        if effect.superseded_by is not None:
            answer = await self._dependencies.gate.supersede(name, effect.superseded_by)
        else:
            answer = await self._dependencies.gate.expire(name, self._dependencies.clock.now())
        return [*_resolved(effect.approval, answer)]

    def _opened(self, effect: AskApproval, call: ToolCall, about: Circumstances) -> ApprovalOpened:
        now = self._dependencies.clock.now()
        policy = self._loaded_agent.agent.policy
        opened = ApprovalOpened(
            session=self._stream,
            effect=effect.effect,
            digest=effect.digest,
            question=effect.question,
            tool=call.name,
            arguments=call.arguments,
            summary=summary(call),
            doubt=about.doubt,
            requests=about.requests,
            rule=ASKED if about.requests else IN_DOUBT.rule,
            epoch=about.epoch,
            opened_at=now,
            deadline_at=now + timedelta(seconds=policy.approval_seconds),
        )
        if effect.question != "may_it_run":
            return opened
        may_grant = about.judged.may_grant
        if about.escalated and policy.escalate_to:
            may_grant = (*may_grant, policy.escalate_to)
        after = policy.auto_approve_after if _may_be_automatic(effect, about) else None
        agent = self._loaded_agent.agent
        tool = self._loaded_agent.tools[call.name]
        asked = {
            "preview": about.held or self._dependencies.preview(tool, call.arguments, agent),
            "doubt": None,
            "unpriced": about.judged.unpriced,
            "rule": about.judged.rule,
            "usd": about.judged.usd,
            "votes": about.judged.votes,
            "may_grant": may_grant,
            "excluded": (about.asked_by,) if _excludes(about) else (),
            "auto_at": None if after is None else now + timedelta(seconds=after),
            "auto_by": "" if after is None else AUTO_IN_TIME,
        }
        return opened.model_copy(update=asked)


def seen_digest(preview: str) -> str:
    """Return the digest of the diff that was shown; empty without a diff."""
    return hashlib.sha256(preview.encode()).hexdigest() if preview else ""


def doubt_of(call: Call) -> Doubt | None:
    """Return the evidence about a call in doubt, for the person who is asked."""
    if call.phase != "in_doubt" or call.doubt is None:
        return None
    return Doubt(
        attempt=call.attempt,
        runner=call.runner or "",
        cause=call.doubt,
        checked=call.unclear,
        people_only=call.judged.people_only,
    )


def _may_be_automatic(effect: AskApproval, about: Circumstances) -> bool:
    """Whether the call may be granted without a person.

    False if the policy names approvers (C15).
    """
    asked_of_all = not about.judged.people_only and not about.escalated
    return effect.question == "may_it_run" and asked_of_all


def _excludes(about: Circumstances) -> bool:
    return about.judged.exclude_requester and bool(about.asked_by)


def summary(call: ToolCall) -> str:
    """Return the tool and its shortened arguments, as shown to people.

    For a long argument, the text says how many characters are left out.
    """
    pieces = [f"{name}={_shortened(value)}" for name, value in call.arguments.items()]
    return f"{call.name}({', '.join(pieces)})"


def _shortened(value: JsonValue) -> str:
    text = canonical_json(value).decode()
    left = len(text) - _SHOWN
    return f"{text[:_SHOWN]}… {left:,} more characters" if left > 0 else text


def _resolved(approval: str, answer: GateAnswer) -> list[ApprovalResolved]:
    if answer.verdict is None:
        return []
    said = shared_fields(answer, ApprovalResolved) | {"approval": approval, "valid_until": None}
    if answer.verdict == "expired":
        said["by"] = "clock"
    return [ApprovalResolved(**said)]
