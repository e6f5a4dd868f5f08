"""What a snapshot keeps of a session comes back as it was, at every point of every history."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from msgspec import msgpack
from msgspec.structs import replace

from cueline.deciders.prompt import Prompt
from cueline.deciders.session import evolve, session_of
from cueline.deciders.session.state import Wait
from cueline.deciders.session.state_codec import packed, unpacked
from cueline.deciders.session.turn import ApprovalAnswer, Call, CallApproval, Turn
from tests.histories.test_recorded_sessions import SESSIONS, facts_of

each_session = pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)


@each_session
def test_at_every_version_the_fold_goes_on_from_what_was_packed(path):
    facts = facts_of(path)
    state, prompt = session_of("session-default/7f3a"), Prompt()
    for fact in facts:
        state = evolve(state, fact)
        prompt.add(fact)

        again, rest = unpacked(packed(state, prompt))

        assert state == again
        assert prompt.rest == rest.rest
        assert [] == rest.transcript


@each_session
def test_messages_add_up_over_every_cut(path):
    facts = facts_of(path)
    whole = Prompt()
    for fact in facts:
        whole.add(fact)
    for cut in range(len(facts)):
        state, first = session_of("session-default/7f3a"), Prompt()
        for fact in facts[:cut]:
            first.add(fact)
        _, second = unpacked(packed(state, first))
        for fact in facts[cut:]:
            second.add(fact)

        assert whole.transcript == first.transcript + second.transcript
        assert whole.rest == second.rest


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, -(2**80)])
def test_an_integer_of_any_size_comes_back(number):
    state = replace(session_of("session-default/7f3a"), inbox_read=number)

    assert number == unpacked(packed(state, Prompt()))[0].inbox_read


def test_a_state_that_has_other_fields_by_now_is_not_read():
    content = packed(session_of("session-default/7f3a"), Prompt())
    renamed = content.replace(b"takeovers", b"takeaways")

    assert content != renamed
    with pytest.raises(ValueError, match="has other fields by now"):
        unpacked(renamed)


@pytest.mark.parametrize(
    "value",
    [
        ["struct", "os.system", {}],
        ["part", "builtins.print", b"{}"],
        ["enum", "cueline.events.store.Head", 1],
        ["list", [{}]],
        ["tuple", [["struct", 7]]],
        ["list", [1, []]],
        ["list", [1, ["list", []]]],
    ],
)
def test_nothing_but_data_of_the_rules_is_made(value):
    with pytest.raises((ValueError, TypeError, KeyError)):
        unpacked(msgpack.encode(value))


def test_what_cannot_be_written_is_said_so():
    odd = replace(session_of("s"), waiting=Wait("operator", "why", {1, 2}))

    with pytest.raises(TypeError, match="a state cannot hold a set"):
        packed(odd, Prompt())


def test_a_time_comes_back_with_its_microseconds():
    moment = datetime(2026, 11, 24, 12, 0, 0, 123456, tzinfo=UTC)
    state = replace(session_of("s"), waiting=Wait("operator", "why", moment))

    assert moment == unpacked(packed(state, Prompt()))[0].waiting.deadline_at


def test_an_amount_comes_back_to_the_cent():
    answer = ApprovalAnswer("granted", "ada", usd=Decimal("0.10"))
    asked = CallApproval("s.1.0.1", "d", datetime(2026, 1, 1, tzinfo=UTC), "may_it_run", answer)
    call = Call("1.0", "c", "pay", "nothing", gated=True, digest="d", approval=asked)
    state = replace(session_of("s"), turn=Turn(calls=(call,)))

    again, _ = unpacked(packed(state, Prompt()))

    assert state == again
    assert "0.10" == str(again.turn.calls[0].approval.answer.usd)
