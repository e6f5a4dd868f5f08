"""Tests of rules in one line: given facts, when a command comes, then facts follow.

Every fact goes through the codec on its way, so that a rule test is also a
test that what the rules say can be recorded.
"""

from typing import Any, Generic, Self, TypeVar, cast

from cueline.deciders.decider import Decider
from cueline.deciders.session import SESSION, SessionState, session_of
from cueline.events.codec import Codec
from cueline.events.codes import RefusalCode
from cueline.events.fact import Fact
from cueline.events.session import MessageRefused, SessionEvent
from cueline.events.store import RecordedEvent

STREAM = "session-default/1"
_CODEC = Codec()

Command = TypeVar("Command")
State = TypeVar("State")


def through_codec(fact: Fact) -> Fact:
    """Return *fact* after encoding and decoding, as a reader of the log gets it."""
    encoded = _CODEC.encode(fact, actor="test", occurred_us=0)
    draft = encoded.draft
    recorded = RecordedEvent(
        stream=STREAM,
        version=1,
        position=1,
        type=draft.type,
        schema=draft.schema,
        payload=draft.payload,
        occurred_us=0,
        recorded_us=0,
        epoch=1,
        actor=draft.actor,
        attrs=draft.attrs,
        correlation_id=None,
        causation_id=None,
        step=0,
        seq=0,
        salt=None,
        payload_hash=b"",
        hash=b"",
    )
    read = _CODEC.decode(recorded, encoded.blobs)
    assert isinstance(read, Fact), "nothing was emptied"
    assert read == fact, f"{fact!r} came back as {read!r}"
    return read


class Given(Generic[Command, State]):
    """The facts of the past, and the decision on a command."""

    def __init__(self, decider: Decider[Command, State, Any], state: State) -> None:
        self._decider = decider
        self.state = state
        """The state after all given and decided facts."""
        self.facts: list[Fact] = []
        """The facts of the last command."""

    def when(self, *commands: Command) -> Self:
        """Decide on *commands*, one after the other; `then` checks the last one."""
        for command in commands:
            self.facts = [through_codec(fact) for fact in self._decider.decide(command, self.state)]
            self.state = self._decider.replay(self.facts, self.state)
        return self

    def then(self, *expected: Fact | type[Fact]) -> Self:
        """Check the facts of the last command: whole facts, or only their types."""
        told = [
            fact if isinstance(wanted, Fact) else type(fact)
            for fact, wanted in zip(self.facts, expected, strict=False)
        ]
        told += [type(fact) for fact in self.facts[len(expected) :]]
        assert list(expected) == told, f"what happened is {self.facts!r}"
        return self

    def then_nothing(self) -> Self:
        """Check that the last command had no facts."""
        return self.then()

    def then_rejected(self, code: RefusalCode) -> Self:
        """Check that a message was refused with the reason *code*."""
        refused = self.facts[0] if self.facts else None
        assert isinstance(refused, MessageRefused), f"what happened is {self.facts!r}"
        assert code == refused.refusal.code, refused.refusal
        return self


def given_past(
    decider: Decider[Command, State, Any], *facts: Fact, state: State | None = None
) -> Given[Command, State]:
    """Begin with *facts*, under the rules of *decider*."""
    past = [through_codec(fact) for fact in facts]
    return Given(decider, decider.replay(past, state))


def given(*facts: SessionEvent) -> Given[SessionEvent, SessionState]:
    """Begin with the facts of a session."""
    return given_past(SESSION, *cast("tuple[Fact, ...]", facts), state=session_of(STREAM))
