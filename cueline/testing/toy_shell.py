"""A shell in memory that does what is due, badly if told so, and checks every step.

It shares no code with the real one: what it checks are the promises of the
rules, whatever a shell does and whenever it dies.
"""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from cueline.deciders.approval import (
    APPROVAL,
    ApprovalState,
    Expire,
    Open,
    Supersede,
    Vote,
    news_of,
)
from cueline.deciders.prompt import Prompt
from cueline.deciders.retry import REST_SECONDS
from cueline.deciders.session import (
    SESSION,
    Status,
    command_of,
    decide,
    due,
    evolve,
    following,
    session_of,
    wake_at,
)
from cueline.deciders.session.call import digest_of
from cueline.deciders.session.due import (
    AskApproval,
    CallModel,
    Cancel,
    CloseApproval,
    CloseReservation,
    Effect,
    ReconcileTool,
    RecoverTool,
    Reserve,
    RunTool,
    TellPeople,
)
from cueline.events.approval import ApprovalOpened
from cueline.events.inbox import DecisionGiven, InboxMessage, RaiseAsked, ResumeAsked, RoomMade
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    GateAnswer,
    MessageReceived,
    MessageRefused,
    ModelFailed,
    ModelRequested,
    ModelStarted,
    PeopleTold,
    SessionCompleted,
    SessionContinued,
    SessionEvent,
    SessionFailed,
    SessionForked,
    SessionIdle,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    ToolFailed,
    ToolReconciled,
    ToolStarted,
)
from cueline.testing.given import STREAM, through_codec
from cueline.testing.session_example import NOW, returned, saying
from cueline.testing.session_promises import Patience, check_attempts, check_pairs, check_step
from cueline.testing.toy_ledger import ToyLedger

RUNNER_SECONDS = 600.0
BREAKER_SECONDS = 60.0
_PEOPLE = ("ada", "bob", "carl")
"""Who answers in turn, so that everybody does whom a rule asks for."""
_RESTS = (SessionIdle, SessionCompleted, SessionFailed, SessionStopped)
_ENOUGH = 500
"""More steps than any example needs to come to an end."""


class ToyShell:
    """One session, its inbox, its gate and its runner."""

    def __init__(self, stream: str = STREAM) -> None:
        self.now = NOW
        self.state = session_of(stream)
        self.prompt = Prompt()
        self.log: list[list[SessionEvent]] = []
        self.model: tuple[str, int] | None = None
        """The model call in hand."""
        self.tools: dict[str, int] = {}
        """The tool calls in hand, and their attempts."""
        self.gate: dict[str, ApprovalState] = {}
        self.ledger = ToyLedger()
        self.mail = 1
        self.epoch = 1
        self._may_have_run: set[str] = set()
        self._patience = Patience()

    # What comes from outside.

    def take(self, command: SessionEvent) -> list[SessionEvent]:
        """Decide on *command*, record the step, and check what it promised."""
        before = self.state
        step = decide(command, before)
        if not step:
            return []
        assert decide(command_of(step[0]), before) == step, "I10: deciding again differs"
        for fact in step:
            through_codec(fact)
            self._patience.check(fact, self.now)
            self._check_start(fact)
            self._check_paid(fact)
            self.state = evolve(self.state, fact)
            self._fold(fact)
        self.log.append(step)
        check_step(before, self.state, step[0])
        return step

    def _fold(self, fact: SessionEvent) -> None:
        self.prompt.add(fact)
        if isinstance(fact, ModelRequested):
            assert self.prompt.digest == fact.digest, "the prompt is not what was recorded"

    def send(self, message: InboxMessage) -> list[SessionEvent]:
        """Put a message into the inbox, and have the session read it."""
        self.mail += 1
        answer = self._vote(message) if isinstance(message, DecisionGiven) else None
        received = MessageReceived(
            inbox_version=self.mail, recorded_at=self.now, message=message, gate_answer=answer
        )
        step = self.take(received)
        assert isinstance(step[0], MessageReceived | MessageRefused), "I7: a message was lost"
        return step

    def _vote(self, given: DecisionGiven) -> GateAnswer:
        state = self.gate.get(given.approval, ApprovalState())
        call = self.state.call_of_approval(given.approval)
        edited = call is not None and given.edit is not None
        vote = Vote(
            given.verdict,
            given.digest,
            given.by,
            given.note,
            f"m@{self.mail}",
            self.now,
            edit=given.edit,
            edit_digest=digest_of(self.state, call.effect, call.tool, given.edit or {})
            if call is not None and edited
            else "",
            always=given.always,
        )
        events = APPROVAL.decide(vote, state)
        state = self.gate[given.approval] = APPROVAL.replay(events, state)
        return GateAnswer(
            approval=given.approval,
            verdict=state.verdict if events else None,
            by=state.by or given.by,
            edit=state.edit,
            digest=state.digest,
            always=state.always,
            told=news_of("tool", vote) if events and state.verdict == "granted" else "",
            accepted=bool(events),
            reason="" if events else "too late",
        )

    def crash(self) -> None:
        """Lose everything but the log, and go on from it in another host."""
        live, past = self.state, [fact for step in self.log for fact in step]
        self.state = SESSION.replay(past, session_of(live.stream))
        assert self.state == live, "I10: the fold is not the live state"
        self.prompt = Prompt()
        for fact in past:
            self._fold(fact)
        self.load()

    def load(self) -> None:
        """Go on from the state as it is, with nothing in hand."""
        self.model, self.tools = None, {}
        if self.state.status in (Status.RUNNING, Status.STOPPING):
            self.epoch += 1
            self.take(SessionTakenOver(epoch=self.epoch, at=self.now))
        elif following(self.state):
            self.take(SessionContinued(by="replay", at=self.now))

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and record what is due by then."""
        self.now += timedelta(seconds=seconds)
        moment = wake_at(self.state)
        if moment is not None and moment <= self.now:
            self.take(SessionContinued(by="deadline", at=self.now))
            left = wake_at(self.state)
            over = left is not None and left <= self.now
            closes = any(isinstance(effect, CloseApproval | TellPeople) for effect in self.owed())
            assert closes or not over, "a deadline that has passed wakes it for ever"

    # What is due.

    def owed(self) -> list[Effect]:
        """List what can be done now, and is not in hand."""
        return [effect for effect in due(self.state) if self._actionable(effect)]

    def _actionable(self, effect: Effect) -> bool:
        match effect:
            case CallModel() | Reserve():
                return self.model is None
            case RunTool() | RecoverTool() | ReconcileTool():
                return effect.effect not in self.tools
            case CloseApproval(superseded_by=None, deadline_at=deadline_at):
                return self.now >= deadline_at
            case Cancel():
                return False
            case TellPeople(at=at):
                return at is None or self.now >= at
            case _:
                return True

    def do(self, effect: Effect, luck: str = "good") -> None:
        """Do *effect*; *luck* says how it goes."""
        match effect:
            case CallModel():
                self._ask_model(effect, luck)
            case Reserve() | CloseReservation():
                self._pay(effect, luck)
            case RunTool():
                self._run(effect, luck)
            case RecoverTool():
                self._recover(effect, luck)
            case ReconcileTool():
                self._reconcile(effect, luck)
            case AskApproval():
                self._ask(effect)
            case CloseApproval():
                self._close(effect)
            case TellPeople():
                told = PeopleTold(
                    effect=effect.effect, approval=effect.approval, hook=effect.hook, at=self.now
                )
                self.take(told)
            case Cancel():
                pass

    def _ask_model(self, effect: CallModel, luck: str) -> None:
        if luck == "kept_back":
            self._wait_for_breaker(effect.effect)
        else:
            self._begin(ModelStarted(effect=effect.effect, attempt=effect.attempt))

    def _pay(self, effect: Reserve | CloseReservation, luck: str) -> None:
        """Ask the ledger; with bad luck nobody learns of the answer."""
        fact = self.ledger.answer(self.state, effect, self.epoch, self.now)
        self.hear_of_room()
        if luck == "lost":
            return
        if luck == "kept_back" and isinstance(fact, ModelStarted):
            self._wait_for_breaker(fact.effect, reserved=True)  # it opened after the grant
        else:
            self._begin(fact)

    def _begin(self, fact: SessionEvent) -> None:
        if self.take(fact) and isinstance(fact, ModelStarted):
            self.model = (fact.effect, fact.attempt)

    def hear_of_room(self) -> None:
        """Read that the ledger has room, if it said so."""
        if self.state.stream in self.ledger.has_room_for:
            self.ledger.has_room_for.clear()
            self.send(RoomMade(budget="budget-default/1"))

    def _run(self, effect: RunTool, luck: str) -> None:
        call = self.state.call(effect.effect)
        assert call is not None, "what is due is in the state"
        if effect.valid_until is not None and self.now > effect.valid_until:
            assert call.approval is not None, "a deadline belongs to a grant"
            self.take(
                ApprovalResolved(approval=call.approval.id, verdict="superseded", by="deadline")
            )
        elif luck == "unreachable":
            self._wait_for_runner(effect.effect)
        elif luck == "kept_back":
            self._wait_for_breaker(effect.effect)
        else:
            started = ToolStarted(
                effect=effect.effect,
                attempt=effect.attempt,
                tool=call.tool,
                runner="r1",
                epoch=self.epoch,
                rule="",
            )
            assert self.take(started), "what is due may start"
            self.tools[effect.effect] = effect.attempt

    def _recover(self, effect: RecoverTool, luck: str) -> None:
        if luck == "unreachable":
            self._wait_for_runner(effect.effect)
        elif luck in ("lost", "not_started"):
            self.fail_tool(effect.effect, effect.attempt, luck)
        else:
            self.tools[effect.effect] = effect.attempt

    def _reconcile(self, effect: ReconcileTool, luck: str) -> None:
        if luck == "unreachable":
            self._wait_for_runner(effect.effect)
            return
        outcomes: dict[str, Literal["happened", "did_not_happen", "unknown"]] = {
            "lost": "did_not_happen",
            "not_started": "unknown",
        }
        outcome = outcomes.get(luck, "happened")
        self.take(ToolReconciled(effect=effect.effect, outcome=outcome, by="tool", output=""))

    def _wait_for_runner(self, effect: str) -> None:
        deadline_at = self.now + timedelta(seconds=RUNNER_SECONDS)
        self.take(
            SessionWaiting(
                kind="runner", why="unreachable", deadline_at=deadline_at, effects=(effect,)
            )
        )

    def _wait_for_breaker(self, effect: str, *, reserved: bool = False) -> None:
        waiting = SessionWaiting(
            kind="breaker",
            why="it keeps failing",
            deadline_at=self.now + timedelta(seconds=BREAKER_SECONDS),
            effects=(effect,),
            reserved=reserved,
        )
        assert self.take(waiting), "what is due may be kept back"

    def _ask(self, effect: AskApproval) -> None:
        policy = self.state.agent.policy
        call = self.state.call(effect.effect)
        assert call is not None, "what is due is in the state"
        people_only = call.judged.people_only or call.escalated
        free = effect.question == "may_it_run" and not people_only
        after = policy.auto_approve_after if free else None
        opened = ApprovalOpened(
            session=self.state.stream,
            effect=effect.effect,
            digest=effect.digest,
            question=effect.question,
            tool="",
            arguments={},
            summary="",
            epoch=self.epoch,
            opened_at=self.now,
            deadline_at=self.now + timedelta(seconds=policy.approval_seconds),
            votes=call.judged.votes if effect.question == "may_it_run" else 1,
            auto_at=None if after is None else self.now + timedelta(seconds=after),
            auto_by="auto:auto_approve_after",
        )
        state = self.gate.get(effect.approval, ApprovalState())
        events = APPROVAL.decide(
            Open(opened, "auto:cli-flag" if policy.auto_approve and free else None), state
        )
        state = self.gate[effect.approval] = APPROVAL.replay(events, state)
        assert state.opened is not None, "opening opens"
        requested = ApprovalRequested(
            effect=effect.effect,
            approval=effect.approval,
            digest=effect.digest,
            deadline_at=state.opened.deadline_at,
            question=effect.question,
            auto_at=state.opened.auto_at,
            people_only=people_only,
            escalated=call.escalated,
        )
        assert self.take(requested), "what is due may be asked"
        self._resolve(effect.approval)

    def _close(self, effect: CloseApproval) -> None:
        by = effect.superseded_by
        state = self.gate.get(effect.approval, ApprovalState())
        if state.opened is None:  # a prefix of a log that somebody else's gate was part of
            self.take(
                ApprovalResolved(
                    approval=effect.approval,
                    verdict="superseded" if by else "expired",
                    by=by or "clock",
                )
            )
            return
        events = APPROVAL.decide(Supersede(by) if by else Expire(self.now), state)
        self.gate[effect.approval] = APPROVAL.replay(events, state)
        self._resolve(effect.approval)

    def _resolve(self, approval: str) -> None:
        state = self.gate[approval]
        if state.verdict is not None:
            resolved = ApprovalResolved(
                approval=approval,
                verdict=state.verdict,
                by=state.by or "clock",
                edit=state.edit,
                digest=state.digest,
                always=state.always,
            )
            self.take(resolved)

    # How what is in hand ends.

    def reply(self, *tools: str) -> None:
        """Have the model answer, and ask for *tools*."""
        if self.model is not None:
            effect, attempt = self.model
            self.model = None
            turn = int(effect.partition(".")[0])
            self.take(saying(*tools, turn=turn, attempt=attempt, seconds=1.0))

    def fail_model(self, kind: str, retry_after: float | None = None) -> None:
        """Have the model call fail."""
        if self.model is not None:
            effect, attempt = self.model
            self.model = None
            self.take(
                ModelFailed(
                    effect=effect,
                    attempt=attempt,
                    kind=kind,
                    message="",
                    failed_at=self.now,
                    retry_after=retry_after,
                )
            )

    def finish_tool(
        self, index: int, kind: str | None = None, retry_after: float | None = None
    ) -> None:
        """Have a tool call in hand return, or fail with *kind*."""
        if not self.tools:
            return
        effect = sorted(self.tools)[index % len(self.tools)]
        attempt = self.tools.pop(effect)
        if kind is None:
            self.take(returned(effect, f"of {effect}", attempt, seconds=1.0))
        else:
            self.fail_tool(effect, attempt, kind, retry_after)

    def fail_tool(
        self, effect: str, attempt: int, kind: str, retry_after: float | None = None
    ) -> None:
        """Have an attempt fail."""
        step = self.take(
            ToolFailed(
                effect=effect,
                attempt=attempt,
                kind=kind,
                message="",
                failed_at=self.now,
                retry_after=retry_after,
            )
        )
        if kind == "not_started" and step and isinstance(step[0], ToolFailed):
            self._may_have_run.discard(effect)

    def finish(self) -> None:
        """Let everything go well, until the session has ended or waits for a message."""
        if self.state.limited:
            self.ledger.neighbour(self.state, takes=False)
            self.hear_of_room()
        for _ in range(_ENOUGH):
            if self.state.finished or self.state.status is Status.IDLE:
                return
            self._finish_one()
        raise AssertionError(f"no end in sight: {self.state!r}")

    def _finish_one(self) -> None:
        owed = self.owed()
        asking = [c.approval for c in self.state.open_calls if c.approval and c.asking]
        if self.model is not None:
            self.reply()
        elif self.tools:
            self.finish_tool(0, "killed" if self.state.stop else None)
        elif owed:
            self.do(owed[0])
        elif self.state.hold or self._is_exhausted():
            self.send(self._more())
        elif asking and asking[0].id in self.gate:
            approval = asking[0]
            self.send(
                DecisionGiven(
                    approval=approval.id,
                    digest=approval.digest,
                    verdict="grant",
                    by=_PEOPLE[self.mail % len(_PEOPLE)],
                )
            )
        else:
            moment = wake_at(self.state)
            assert moment is not None, f"stalled: {self.state!r}"
            self.pass_time(max((moment - self.now).total_seconds(), 0.0))

    def _is_exhausted(self) -> bool:
        wait = self.state.waiting
        return wait is not None and wait.kind == "budget" and wait.is_pause

    def _more(self) -> InboxMessage:
        """Return what ends the hold: more of what is used up, or a resume."""
        hold, limits = self.state.hold or "", self.state.meter.limits
        if not hold and limits.max_cost is not None:
            more = RaiseAsked(max_cost=limits.max_cost + 1)
            self.ledger.raise_limits(self.state, limits.max_cost + 1, f"raise of {self.mail}")
            return more
        if "max_active_seconds" in hold:
            return RaiseAsked(max_active_seconds=limits.max_active_seconds + 3600)
        if "max_wall_seconds" in hold and limits.max_wall_seconds is not None:
            return RaiseAsked(max_wall_seconds=limits.max_wall_seconds + 86_400)
        return ResumeAsked()

    # What is promised.

    def _check_paid(self, fact: SessionEvent) -> None:
        """Check that nothing goes out that is not held, and nothing is held by who rests."""
        holds = self.ledger.holds(self.state.stream)
        if isinstance(fact, ModelStarted) and self.state.limited:
            assert holds, "I8: nobody granted it"
        if isinstance(fact, _RESTS):
            assert not holds, f"I8: something is held at {fact.type}"

    def _check_start(self, fact: SessionEvent) -> None:
        if isinstance(fact, ToolReconciled) and fact.outcome == "did_not_happen":
            self._may_have_run.discard(fact.effect)
        if not isinstance(fact, ToolStarted):
            return
        call = self.state.call(fact.effect)
        assert call is not None, "a start names a call"
        if call.gated:
            assert call.approval is not None, "I9: started without a grant"
            assert call.approval.granted is not None, "I9: started without an answer"
        if not call.repeatable:
            assert fact.effect not in self._may_have_run, "I5: may run twice"
            self._may_have_run.add(fact.effect)

    def check_stall(self) -> None:
        """Check that a session that does not rest has something to do, or a timer."""
        state = self.state
        busy = state.status in (Status.RUNNING, Status.STOPPING) and not state.poisoned
        if not busy or self.model is not None or self.tools or self.owed():
            return
        moment = wake_at(state)
        assert moment is not None, f"stalled: {state!r}"
        assert moment - self.now < timedelta(seconds=REST_SECONDS), f"I12: no rest: {state!r}"

    def check_end(self) -> None:
        """Check what is promised of a whole log."""
        facts = [fact for step in self.log for fact in step]
        read = Counter(
            fact.inbox_version
            for fact in facts
            if isinstance(fact, MessageReceived | MessageRefused)
        )
        assert read == dict.fromkeys(range(2, self.mail + 1), 1), "I7: not one fact a message"
        if self.state.setup is not None and not isinstance(facts[0], SessionForked):
            check_attempts(facts, self.state.agent)
        check_pairs([json.loads(message) for message in self.prompt.messages])


def load_prefix(
    facts: Sequence[SessionEvent], stream: str = STREAM, now: datetime = NOW
) -> ToyShell:
    """Return a shell that begins with *facts*, and has lost whatever was in hand."""
    shell = ToyShell(stream)
    shell.now = now
    shell.state = SESSION.replay(facts, shell.state)
    shell.mail = max(shell.state.inbox_read, 1)
    for fact in facts:
        shell.prompt.add(fact)
    return shell
