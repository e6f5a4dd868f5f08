"""A shell in memory that does what is due, badly if told so, and checks every step.

It shares no code with the real one: what it checks are the promises of the
rules, whatever a shell does and whenever it dies.
"""

import json
from datetime import datetime, timedelta
from typing import Literal

from cueline.deciders.compaction import compaction_of
from cueline.deciders.prompt import Prompt
from cueline.deciders.session import (
    DRIVEN,
    SESSION,
    command_of,
    decide,
    derived_events,
    due,
    evolve,
    session_of,
    wake_at,
)
from cueline.deciders.session.due import (
    AskApproval,
    AwaitMessage,
    CallModel,
    Cancel,
    CloseApproval,
    CloseReservation,
    Effect,
    NotifyPeople,
    PollTask,
    ReconcileTool,
    RecoverTool,
    ReserveBudget,
    RunTool,
    StartChild,
)
from cueline.events.codes import NO_OLD_MESSAGES
from cueline.events.inbox import BudgetFreed, ChildEnded, DecisionGiven, InboxMessage
from cueline.events.message import Usage
from cueline.events.session import (
    ApprovalResolved,
    CallDelegated,
    ContextCompacted,
    MessageAwaited,
    MessageReceived,
    MessageRefused,
    ModelFailed,
    ModelRequested,
    ModelStarted,
    OutcomeCameLate,
    PeopleNotified,
    SessionContinued,
    SessionEvent,
    SessionTakenOver,
    ToolFailed,
    ToolReconciled,
    ToolSkipped,
    ToolStarted,
)
from cueline.events.stream import is_compaction
from cueline.testing.given import STREAM, through_codec
from tests.deciders.session_promises import Patience, Starts, check_paid, check_pairs, check_step
from tests.deciders.simulated_gate import SimulatedGate
from tests.deciders.simulated_ledger import SimulatedLedger
from tests.deciders.simulated_wait import (
    wait_for_breaker,
    wait_for_runner,
    wait_for_task,
)
from tests.session_example import NOW, deferred, returned, saying, tool_asking


class SimulatedShell:
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
        self.children: dict[str, ChildEnded] = {}
        """The children that run, and how each ends if all goes well."""
        self.gate = SimulatedGate()
        self.ledger = SimulatedLedger()
        self.mail = 1
        self.turns = 0
        self.recorded_at = NOW
        """When the last message that was read came."""
        self.epoch = 1
        self._starts = Starts()
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
            self._starts.check(fact, self.state)
            check_paid(fact, self.state, held=self.ledger.holds(self.state.stream))
            self.state = evolve(self.state, fact)
            self._fold(fact)
        self.log.append(step)
        check_step(before, self.state, step[0])
        return step

    def _fold(self, fact: SessionEvent) -> None:
        self.prompt.add(fact)
        if isinstance(fact, ModelRequested):
            assert self.prompt.digest == fact.digest, "the prompt is not what was recorded"

    def send(
        self, message: InboxMessage, recorded_at: datetime | None = None
    ) -> list[SessionEvent]:
        """Have the session read a message that the inbox got now, or at *recorded_at*."""
        self.mail += 1
        # No earlier than those that were read before.
        at = self.recorded_at = max(recorded_at or self.now, self.recorded_at)
        answer = None
        if isinstance(message, DecisionGiven):
            name = f"m@{self.mail}"
            answer = self.gate.vote(self.state, message, name, recorded_at=at, now=self.now)
        received = MessageReceived(
            inbox_version=self.mail, recorded_at=at, message=message, gate_answer=answer
        )
        step = self.take(received)
        assert isinstance(step[0], MessageReceived | MessageRefused), "I7: a message was lost"
        return step

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
        if self.state.status in DRIVEN:
            self.epoch += 1
            self.take(SessionTakenOver(epoch=self.epoch, at=self.now))
        elif derived_events(self.state):
            self.take(SessionContinued(by="replay", at=self.now))

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and record what is due by then."""
        self.now += timedelta(seconds=seconds)
        moment = wake_at(self.state)
        if moment is not None and moment <= self.now:
            self.take(SessionContinued(by="deadline", at=self.now))
            left = wake_at(self.state)
            over = left is not None and left <= self.now
            closes = any(isinstance(effect, CloseApproval | NotifyPeople) for effect in self.owed())
            assert closes or not over, "a deadline that has passed wakes it for ever"

    # What is due.

    def owed(self) -> list[Effect]:
        """List what can be done now, and is not in hand."""
        return [effect for effect in due(self.state) if self._actionable(effect)]

    def _actionable(self, effect: Effect) -> bool:
        match effect:
            case CallModel() | ReserveBudget():
                return self.model is None
            case RunTool() | RecoverTool() | ReconcileTool():
                return effect.effect not in self.tools
            case CloseApproval(superseded_by=None, deadline_at=deadline_at):
                return self.now >= deadline_at
            case Cancel():
                return False
            case NotifyPeople(at=at):
                return at is None or self.now >= at
            case _:
                return True

    def do(self, effect: Effect, luck: str = "good") -> None:  # noqa: C901 - one case for each effect
        """Do *effect*; *luck* says how it goes."""
        match effect:
            case CallModel():
                self._ask_model(effect, luck)
            case ReserveBudget() | CloseReservation():
                self._pay(effect, luck)
            case RunTool():
                self._run(effect, luck)
            case RecoverTool():
                self._recover(effect, luck)
            case StartChild():
                self._start_child(effect, luck)
            case PollTask():
                self._poll(effect, luck)
            case ReconcileTool():
                self._reconcile(effect, luck)
            case AskApproval():
                asked = self.gate.ask(self.state, effect, self.epoch, self.now)
                assert self.take(asked), "what is due may be asked"
                self._resolve(self.gate.resolution(effect.approval))
            case CloseApproval():
                self._resolve(self.gate.close(effect, self.now))
            case NotifyPeople():
                told = PeopleNotified(
                    effect=effect.effect, approval=effect.approval, hook=effect.hook, at=self.now
                )
                self.take(told)
            case AwaitMessage():
                until = self.now + timedelta(seconds=60)
                awaited = MessageAwaited(effect=effect.effect, name="go", deadline_at=until)
                assert self.take(awaited), "what is due may begin"
            case Cancel():
                pass

    def _ask_model(self, effect: CallModel, luck: str) -> None:
        if luck == "kept_back":
            self._wait_for_breaker(effect.effect)
        else:
            self._begin(ModelStarted(effect=effect.effect, attempt=effect.attempt))

    def _pay(self, effect: ReserveBudget | CloseReservation, luck: str) -> None:
        """Ask the ledger; with bad luck nobody learns of the answer."""
        fact = self.ledger.answer(self.state, effect, self.epoch, self.now)
        self.hear_of_room()
        if luck == "lost":
            return
        if luck == "kept_back" and isinstance(fact, ModelStarted):
            self._wait_for_breaker(fact.effect, reserved=True)  # it opened after the grant
        else:
            self._begin(fact)

    def _resolve(self, resolved: ApprovalResolved | None) -> None:
        if resolved is not None:
            self.take(resolved)

    def _begin(self, fact: SessionEvent) -> None:
        if self.take(fact) and isinstance(fact, ModelStarted):
            self.model = (fact.effect, fact.attempt)

    def hear_of_room(self) -> None:
        """Read that the ledger has room, if it said so."""
        if self.state.stream in self.ledger.has_room_for:
            self.ledger.has_room_for.clear()
            self.send(BudgetFreed(budget="budget-default/1"))

    def _run(self, effect: RunTool, luck: str) -> None:
        call = self.state.call(effect.effect)
        assert call is not None, "what is due is in the state"
        if effect.valid_until is not None and self.now > effect.valid_until:
            assert call.approval is not None, "a deadline belongs to a grant"
            self.take(
                ApprovalResolved(approval=call.approval.id, verdict="superseded", by="deadline")
            )
        elif luck == "unreachable":
            self.take(wait_for_runner(effect.effect, self.now))
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

    def _start_child(self, effect: StartChild, luck: str) -> None:
        call = self.state.call(effect.effect)
        assert call is not None, "what is due is in the state"
        if effect.valid_until is not None and self.now > effect.valid_until:
            assert call.approval is not None, "a deadline belongs to a grant"
            self.take(
                ApprovalResolved(approval=call.approval.id, verdict="superseded", by="deadline")
            )
        elif luck in ("unreachable", "kept_back"):
            assert self.take(ToolSkipped(effect=effect.effect, reason="no room in the tree"))
        else:
            name, mode = f"{self.state.stream}.{effect.effect}", "sync"
            if luck == "lost":
                mode = "async_callback"
            assert name not in self.children, "a call starts one child"
            started = CallDelegated(
                effect=effect.effect,
                tool=call.tool,
                agent="helper",
                child=name,
                mode=mode,
                deadline_at=self.now + timedelta(seconds=600),
                rule="",
            )
            assert self.take(started), "what is due may start"
            self.children[name] = ChildEnded(
                child=name, effect=effect.effect, status="completed", text="Helped.", mode=mode
            )

    def end_child(self, index: int, status: str = "completed") -> None:
        """Have a child end, and its parent hear of it."""
        name = sorted(self.children)[index % len(self.children)]
        ended = self.children.pop(name)
        code = "" if status == "completed" else "auth"
        self.send(ended.model_copy(update={"status": status, "error_code": code}))

    def _recover(self, effect: RecoverTool, luck: str) -> None:
        if luck == "unreachable":
            self.take(wait_for_runner(effect.effect, self.now))
        elif luck in ("lost", "not_started"):
            self.fail_tool(effect.effect, effect.attempt, luck)
        else:
            self.tools[effect.effect] = effect.attempt

    def _reconcile(self, effect: ReconcileTool, luck: str) -> None:
        if luck == "unreachable":
            self.take(wait_for_runner(effect.effect, self.now))
            return
        outcomes: dict[str, Literal["happened", "did_not_happen", "unknown"]] = {
            "lost": "did_not_happen",
            "not_started": "unknown",
        }
        outcome = outcomes.get(luck, "happened")
        self.take(ToolReconciled(effect=effect.effect, outcome=outcome, by="tool", output=""))

    def _poll(self, effect: PollTask, luck: str) -> None:
        """Ask for a task; it asks a person at times, and is given up once the session stops."""
        call = self.state.call(effect.effect)
        assert call is not None, "what is due is in the state"
        if luck == "lost" or self.state.stop:
            self.fail_tool(effect.effect, effect.attempt, "lost")
        elif luck != "good":
            again = self.now + timedelta(seconds=60)
            self.take(wait_for_task(call.tool, effect.effect, again))
        elif effect.attempt % 3 == 0:
            self.take(tool_asking(effect.effect, effect.attempt))
        else:
            self.take(returned(effect.effect, f"of {effect.effect}", effect.attempt))

    def _wait_for_breaker(self, effect: str, *, reserved: bool = False) -> None:
        waiting = wait_for_breaker(effect, self.now, reserved=reserved)
        assert self.take(waiting), "what is due may be kept back"

    # How what is in hand ends.

    def reply(self, *tools: str) -> None:
        """Have the model answer, and ask for *tools*."""
        if self.model is not None:
            effect, attempt = self.model
            turn = int(effect.partition(".")[0])
            if is_compaction(effect):
                self._summarise(turn, attempt)
                return
            self.model = None
            self.turns += 1
            # Each third reply nearly fills the window of an agent that has one.
            usage = Usage(input=(0, 80, 96)[self.turns % 3], output=1)
            said = saying(*tools, turn=turn, attempt=attempt, seconds=1.0)
            self.take(said.model_copy(update={"usage": usage}))

    def _summarise(self, turn: int, attempt: int) -> None:
        """Have the model summarise, if there is anything old."""
        compaction = compaction_of(self.prompt, too_long=self.state.turn.unanswered)
        if compaction is None:
            self.fail_model(NO_OLD_MESSAGES)
            return
        self.model = None
        check_pairs([json.loads(message) for message in compaction.messages])
        said = saying(turn=turn, attempt=attempt, text="A summary.", seconds=1.0)
        update = {"effect": f"{turn}.c", "cut": compaction.cut, "usage": Usage(input=50)}
        step = self.take(said.model_copy(update=update))
        assert any(isinstance(fact, ContextCompacted | OutcomeCameLate) for fact in step)

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

    def ask_by_tool(self, index: int) -> None:
        """Have a tool call in hand ask a person for something."""
        if self.tools:
            effect = sorted(self.tools)[index % len(self.tools)]
            paths = ("a.txt", ".git/config") if index % 3 else ("a.txt",)
            self.take(tool_asking(effect, self.tools.pop(effect), paths=paths))

    def defer_tool(self, index: int) -> None:
        """Have a tool call in hand go on as a task."""
        if self.tools:
            effect = sorted(self.tools)[index % len(self.tools)]
            attempt, at = self.tools.pop(effect), self.now
            times = {"poll_at": at + timedelta(seconds=2), "deadline_at": at + timedelta(days=1)}
            self.take(deferred(effect, attempt).model_copy(update={"at": at} | times))

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
            self._starts.never_began(effect)
