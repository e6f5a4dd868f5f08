"""The course of a session, turn by turn: replies, messages, judgements and results."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from cueline.deciders.prompt import FORKED_AWAY, GO_ON, images_of, result_of
from cueline.events.agent import AgentSpec
from cueline.events.agent_parts import RecordedResult
from cueline.events.inbox import MessageSent
from cueline.events.message import Attachment, ToolCall
from cueline.events.session import (
    UNJUDGED,
    GateAnswer,
    Judgement,
    MessageReceived,
    ModelReplied,
    ModelRequested,
    SessionEvent,
    SessionForked,
    SessionStarted,
    calls_of,
)
from cueline.projections.calls import OVER, CallChange, changes_of
from cueline.providers.replay.provider import RecordedReply

FAILED = "tool_error: "


class Said(NamedTuple):
    """A message from a person, or from cueline on behalf of a person."""

    text: str
    attachments: tuple[Attachment, ...] = ()


@dataclass(slots=True)
class CourseCall:
    """One tool call of a session, with its judgement and its result."""

    turn: int
    """The number of its reply, from 1."""
    call: ToolCall
    judged: Judgement
    text: str = ""
    """The call's result for the model."""
    failed: bool = False
    media_type: str = ""
    image: str = ""
    """See `ToolReturned`."""
    closed: bool = False
    """Whether the call has a result."""
    denied: bool = False
    """Whether a rule denied the call."""

    @property
    def is_result(self) -> bool:
        """Whether the result can answer an equal call; False for a denied or invalid call."""
        return self.closed and not self.denied and not self.judged.problem

    def close(self, result: tuple[str, bool] | None) -> None:
        """Set the call's first *result*: a text, and whether the call failed."""
        if result is not None and not self.closed:
            text, self.failed = result
            self.text, self.closed = text.removesuffix(f"\n{GO_ON}"), True


@dataclass(slots=True)
class Course:
    """The course of a session; for a fork, with the shared past."""

    agent: AgentSpec | None = None
    goal: str | None = None
    open: bool = False
    replies: list[ModelReplied] = field(default_factory=list)
    attachments: tuple[Attachment, ...] = ()
    """The attachments of the goal."""
    messages: dict[int, list[Said]] = field(default_factory=dict)
    """The messages of people, by the turn whose request first included them."""
    calls: dict[str, CourseCall] = field(default_factory=dict)
    """The calls by effect; turns are counted by replies."""
    _mail: dict[int, list[Said]] = field(default_factory=dict)
    _effects: dict[str, str] = field(default_factory=dict)
    """The effects of the last reply's calls, by those in the log."""

    @property
    def has_goal(self) -> bool:
        """Whether the session began with a message."""
        return bool(self.goal or self.attachments)

    def results_of(self, tool: str) -> tuple[RecordedResult, ...]:
        """Return the results of a tool's calls."""
        return tuple(
            RecordedResult(
                effect=effect,
                arguments=each.call.arguments,
                text=each.text,
                failed=each.failed,
                media_type=each.media_type,
                image=each.image,
            )
            for effect, each in self.calls.items()
            if each.call.name == tool and each.is_result
        )

    def recorded_replies(self) -> tuple[RecordedReply, ...]:
        """Return the replies for a rerun, which checks their calls again."""
        return tuple(
            RecordedReply(
                content=each.content,
                calls=tuple(call.model_copy(update={"problem": None}) for call in each.calls),
                stop_reason=each.stop_reason,
                model=each.model,
            )
            for each in self.replies
        )

    def add(self, event: SessionEvent) -> None:
        """Add one fact."""
        match event:
            case SessionStarted(agent=agent, goal=goal):
                self.agent, self.goal, self.open = agent, goal, event.open
                self.attachments = event.attachments
                self._mail = {1: [Said(goal or "", event.attachments)] if self.has_goal else []}
            case SessionForked():
                self._fork(event)
            case MessageReceived(message=MessageSent(text=text, attachments=attached)):
                self._mail[event.inbox_version] = [Said(text, attached)]
            case MessageReceived(gate_answer=GateAnswer(told=text)) if text:
                self._mail[event.inbox_version] = [Said(text)]
            case ModelRequested(messages=versions):
                told = [said for version in versions for said in self._mail.pop(version, ())]
                self.messages.setdefault(len(self.replies) + 1, []).extend(told)
            case ModelReplied(cut=None):
                self._reply(event)
            case _:
                for change in changes_of(event):
                    if change.status in OVER and change.effect in self._effects:
                        self._end(change, event)

    def _fork(self, event: SessionForked) -> None:
        self.agent, self.open = event.agent, event.open
        for effect in self._effects.values():
            self.calls[effect].close((FORKED_AWAY, True))
        waiting = [said for messages in self._mail.values() for said in messages]
        told = [Said(text) for text in (event.note, event.goal) if text]
        self._mail = {1: [*waiting, *told]}

    def _reply(self, event: ModelReplied) -> None:
        self.replies.append(event)
        turn, self._effects = len(self.replies), {}
        for index, (effect, call) in enumerate(calls_of(event).items()):
            self._effects[effect] = f"{turn}.{index}"
            judged = event.judged.get(effect, UNJUDGED)
            self.calls[f"{turn}.{index}"] = CourseCall(turn, call, judged)

    def _end(self, change: CallChange, event: SessionEvent) -> None:
        call = self.calls[self._effects[change.effect]]
        call.close(result_of(event))
        for image in images_of(event):
            call.media_type, call.image = image.media_type, image.data
        call.denied = call.denied or (change.status == "skipped" and bool(change.rule))


def course_of(events: Iterable[SessionEvent]) -> Course:
    """Return the course of a session."""
    course = Course()
    for event in events:
        course.add(event)
    return course
