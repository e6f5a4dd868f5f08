"""When the oldest messages become a summary, and how the session goes on."""

import json

import pytest

from cueline.deciders.compaction import ASK, compaction_of
from cueline.deciders.prompt import SUMMARY, Prompt
from cueline.deciders.session import Status, due
from cueline.deciders.session.due import CallModel, CloseReservation, ReserveBudget
from cueline.events.agent import Fallback, ModelChoice
from cueline.events.inbox import MessageSent, ModelChangeAsked, StopAsked
from cueline.events.message import TextBlock, ToolCall, Usage
from cueline.events.session import (
    AgentChanged,
    ContextCompacted,
    Cut,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    ModelStarted,
    PromptPrefixChanged,
    ReservationClosed,
    SessionContinued,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    ToolReturned,
)
from cueline.testing.given import given
from tests.deciders.session_budget_example import LIMITED, closed
from tests.deciders.simulated_wait import wait_for_breaker
from tests.session_example import (
    NOW,
    agent,
    asking,
    failing,
    later,
    received,
    returned,
    running,
    said,
    saying,
    started,
)

AGENT = agent(context_window=1000, max_retries=0)
CUT = Cut(messages=3, of=4)
COMPACTED = PromptPrefixChanged(reason="compacted", before="scripted m", after="scripted m")


def filling(tokens, *tools, turn=1, attempt=1):
    reply = saying(*tools, turn=turn, attempt=attempt)
    return reply.model_copy(update={"usage": Usage(input=tokens - 10, output=10)})


def summing_up(turn=2, attempt=1, cut=CUT, **fields):
    fields = {"effect": f"{turn}.c", "cut": cut, "usage": Usage(input=300, output=50), **fields}
    return saying(turn=turn, attempt=attempt, text="So far.").model_copy(update=fields)


def beginning(turn=2, attempt=1, grant=None):
    return ModelStarted(effect=f"{turn}.c", attempt=attempt, grant=grant)


def used(tokens, spec=AGENT):
    """Return a session whose second call took so many tokens, and whose tool has returned."""
    past = given().when(started(spec), asking(), filling(100, "look"), running("1.0", "look"))
    past.when(returned("1.0"), asking(2), filling(tokens, "look", turn=2))
    return past.when(running("2.0", "look"), returned("2.0"))


def calls(past):
    return [(e.effect, e.attempt, e.fallback) for e in due(past.state) if isinstance(e, CallModel)]


# 002-021: every call keeps its result.
def test_a_window_used_to_80_percent_is_summarised_before_the_next_request():
    past = used(800).then(ToolReturned, ModelRequested)
    assert [("2.c", 1, 0)] == calls(past)

    past.when(beginning(), summing_up())

    past.then(ModelReplied, ContextCompacted, COMPACTED, ModelRequested)
    done = past.facts[1]
    assert ("2.c", CUT, "window", 800) == (done.effect, done.cut, done.reason, done.tokens)
    assert ("3.m", "") == (past.facts[3].effect, past.facts[3].prefix_digest)
    assert (2, 3) == (past.state.used.turns, past.state.turn.number)


@pytest.mark.parametrize(
    ("tokens", "spec"),
    [
        (799, AGENT),
        (5000, agent()),
        (1000, AGENT.model_copy(update={"compact_at": 0.0})),
        (899, AGENT.model_copy(update={"compact_at": 0.9})),
    ],
)
def test_nothing_is_summarised_below_the_share_or_without_a_window(tokens, spec):
    assert [("3.m", 1, 0)] == calls(used(tokens, spec))


def test_a_message_to_an_idle_session_waits_for_the_summary():
    past = given().when(started(AGENT, open=True), asking(), filling(900))

    past.when(said(2)).then(MessageReceived, ModelRequested)
    assert ("1.c", ()) == (past.facts[1].effect, past.facts[1].messages)
    past.when(beginning(1), said(3), summing_up(1, cut=Cut(messages=1, of=2)))

    assert (2, 3) == past.facts[-1].messages


def test_a_summary_that_fails_for_good_is_left_out():
    past = used(900).when(beginning())

    past.when(failing("overloaded", turn=2).model_copy(update={"effect": "2.c"}))

    past.then(ModelFailed, ModelRequested)
    assert [("3.m", 1, 0)] == calls(past)


def test_after_a_failure_the_next_summary_comes_when_more_of_the_window_is_used():
    past = used(900).when(beginning())
    past.when(failing("refused", turn=2).model_copy(update={"effect": "2.c"}), asking(3))
    past.when(filling(940, "look", turn=3), running("3.0", "look"), returned("3.0"))
    assert [("4.m", 1, 0)] == calls(past)

    past.when(asking(4), filling(950, "look", turn=4), running("4.0", "look"), returned("4.0"))

    assert [("4.c", 1, 0)] == calls(past)


def test_a_summary_that_left_too_much_is_not_repeated_at_once():
    past = used(900).when(beginning(), summing_up(), asking(3))
    past.when(filling(810, "look", turn=3), running("3.0", "look"), returned("3.0"))
    assert [("4.m", 1, 0)] == calls(past)

    past.when(asking(4), filling(860, "look", turn=4), running("4.0", "look"), returned("4.0"))

    assert [("4.c", 1, 0)] == calls(past)


def test_a_summary_is_retried_as_any_model_call():
    past = used(900, agent(context_window=1000)).when(beginning())
    past.when(failing("overloaded", turn=2).model_copy(update={"effect": "2.c"}))

    past.when(SessionContinued(by="deadline", at=later(1))).then(SessionContinued, ModelRequested)

    assert [("2.c", 2, 0)] == calls(past)


def test_a_summary_lost_with_its_host_is_requested_again():
    past = used(900).when(beginning(), SessionTakenOver(epoch=2, at=NOW))

    past.then(SessionTakenOver, ModelRequested)
    assert [("2.c", 2, 0)] == calls(past)


def test_a_session_is_stopped_while_it_summarises():
    past = used(900).when(beginning(), received(2, StopAsked()))
    lost = failing("cancelled", turn=2).model_copy(update={"effect": "2.c"})

    past.when(lost).then(ModelFailed, SessionStopped)


def test_a_steer_while_it_summarises_is_told_with_the_next_request():
    past = used(900).when(beginning(), received(2, MessageSent(lane="steer", text="No.")))

    past.when(summing_up())

    assert (2,) == past.facts[-1].messages


def test_a_breaker_sends_the_whole_prompt_to_the_fallback():
    spec = agent(context_window=1000, fallbacks=1, on_open="fallback")
    past = used(900, spec).when(wait_for_breaker("2.c", NOW, reserved=False))

    past.then(SessionWaiting, PromptPrefixChanged, ModelRequested)
    assert [("3.m", 1, 1)] == calls(past)


def test_a_smaller_model_summarises_what_was_not_too_much_before():
    past = used(700, agent(context_window=10_000)).when(asking(3))
    small = ModelChoice(provider="scripted", model="small", context_window=800)
    past.when(received(2, ModelChangeAsked(model=small)), filling(700, "look", turn=3))

    past.when(running("3.0", "look"), returned("3.0"))

    assert [("3.c", 1, 0)] == calls(past)


def test_another_model_takes_over_an_open_summary():
    past = used(900, agent(context_window=1000)).when(beginning())
    past.when(failing("overloaded", turn=2).model_copy(update={"effect": "2.c"}))

    past.when(received(2, ModelChangeAsked(model=ModelChoice(provider="other", model="n"))))

    past.then(MessageReceived, AgentChanged, ModelRequested)
    assert [("2.c", 2, 0)] == calls(past)


# I8
def test_the_cost_of_a_summary_is_reserved_and_settled():
    limited = LIMITED.model_copy(update={"context_window": 1000})
    past = given().when(started(limited), asking().model_copy(update={"grant": "g"}))
    past.when(filling(900, "look"), closed(), running("1.0", "look"), returned("1.0"))
    assert [ReserveBudget("1.c", 1)] == due(past.state)

    past.when(beginning(1, grant="g"), summing_up(1))

    assert [CloseReservation] == [type(effect) for effect in due(past.state)]
    paid = ReservationClosed(effect="1.c", attempt=1, outcome="settled")
    past.when(paid).then(ReservationClosed, COMPACTED, ModelRequested)


# A prompt that was too long.


def too_long(spec=AGENT):
    return used(100, spec).when(asking(3), failing("context_too_long", turn=3))


def test_a_prompt_that_was_too_long_is_summarised_and_sent_in_a_new_turn():
    past = too_long(agent(max_retries=0)).then(ModelFailed, ModelRequested)
    assert [("3.c", 1, 0)] == calls(past)

    past.when(beginning(3), summing_up(3))

    past.then(ModelReplied, ContextCompacted, COMPACTED, ModelRequested)
    assert ("too_long", "4.m") == (past.facts[1].reason, past.facts[3].effect)


def test_a_prompt_that_is_still_too_long_waits_for_a_person():
    past = too_long().when(beginning(3), summing_up(3), asking(4))

    past.when(failing("context_too_long", turn=4)).then(ModelFailed, SessionWaiting)


def test_a_prompt_that_cannot_be_summarised_goes_to_the_fallback():
    spec = AGENT.model_copy(update={"fallback": (Fallback(provider="scripted", model="b"),)})
    past = too_long(spec).when(beginning(3))
    past.when(failing("no_old_messages", turn=3).model_copy(update={"effect": "3.c"}))
    assert [("4.m", 1, 0)] == calls(past)

    past.when(asking(4), failing("context_too_long", turn=4))

    assert [("4.m", 2, 1)] == calls(past)


# What the model is sent.


def prompt_of(*facts):
    prompt = Prompt()
    for fact in facts:
        prompt.add(fact)
    return prompt


def conversation(turns=8):
    """Return a prompt of a goal and turns of two calls each."""
    facts = [started(AGENT)]
    for turn in range(1, turns + 1):
        asks = [ToolCall(id=f"{turn}-{n}", name="look") for n in range(2)]
        facts.append(
            ModelRequested(
                effect=f"{turn}.m",
                attempt=1,
                messages=(1,) if turn == 1 else (),
                digest="",
                prefix_digest="",
            )
        )
        facts.append(ModelReplied(effect=f"{turn}.m", attempt=1, calls=tuple(asks), stop_reason=""))
        facts += [returned(f"{turn}.{n}", "x" * 100) for n in range(2)]
    return facts


def roles(messages):
    return [json.loads(message)["role"] for message in messages]


@pytest.mark.parametrize("too_long", [False, True])
def test_the_cut_keeps_the_newest_messages_and_parts_no_call_from_its_result(too_long):
    prompt = prompt_of(*conversation())

    compaction = compaction_of(prompt, too_long=too_long)

    cut, size = compaction.cut, len(prompt.transcript)
    kept = prompt.transcript[cut.messages :]
    share = sum(map(len, kept)) / sum(map(len, prompt.transcript))
    assert size == cut.of
    assert share <= (0.5 if too_long else 0.25)
    assert "assistant" == roles(kept)[0]
    assert prompt.transcript[: cut.messages] == compaction.messages[:-1]
    assert ASK == json.loads(compaction.messages[-1])["text"]


# A long result counts as much as of it is sent, so that the next request has room again.
def test_a_long_result_counts_as_it_is_sent():
    facts = conversation(100)
    old = next(at for at, fact in enumerate(facts) if fact.type == "ToolReturned")
    facts[old] = facts[old].model_copy(update={"output": "x" * 1_000_000})
    prompt = prompt_of(*facts)

    cut = compaction_of(prompt, too_long=False, window=8_000).cut

    kept = sum(map(len, prompt.transcript[cut.messages :]))
    rest = sum(map(len, prompt.transcript)) - 1_000_000
    assert kept <= rest / 4 + 6_000 / 4


def test_a_cut_leaves_at_least_the_last_reply_and_its_calls():
    huge = conversation(3)
    huge[-1] = returned("3.1", "x" * 10_000)
    huge.append(ModelRequested(effect="4.m", attempt=1, digest="", prefix_digest=""))
    prompt = prompt_of(*huge)

    compaction = compaction_of(prompt, too_long=False)

    assert ["assistant", "tool", "tool"] == roles(prompt.transcript[compaction.cut.messages :])


@pytest.mark.parametrize("facts", [[], [started(AGENT)], conversation(1)[:2]])
def test_where_nothing_is_old_there_is_nothing_to_summarise(facts):
    assert compaction_of(prompt_of(*facts), too_long=False) is None


def compact(prompt, text):
    """Have *prompt* compacted; return the facts, too."""
    compaction = compaction_of(prompt, too_long=False)
    replied = summing_up(9, cut=compaction.cut, content=(TextBlock(text=text),))
    done = ContextCompacted(effect="9.c", cut=compaction.cut, reason="window", tokens=9, digest="d")
    prompt.add(replied)
    prompt.add(done)
    return compaction


def test_requests_begin_with_the_summary_and_the_transcript_stays_whole():
    prompt = prompt_of(*conversation())
    before = list(prompt.transcript)

    compaction = compact(prompt, "Two turns.")

    summary, *kept = prompt.messages
    assert f"{SUMMARY}\n\nTwo turns." == json.loads(summary)["text"]
    assert before[compaction.cut.messages :] == kept
    assert before == prompt.transcript
    assert "d" == prompt.digest


def test_a_second_summary_replaces_the_first():
    prompt = prompt_of(*conversation())
    first = compact(prompt, "One.").cut

    second = compact(prompt, "Two.")

    assert first.messages < second.cut.messages <= second.cut.of == first.of
    assert "One." in second.messages[0].decode()
    assert "Two." in prompt.messages[0].decode()
    assert len(prompt.transcript) - second.cut.messages + 1 == len(prompt.messages)


def test_a_summary_alone_is_not_summarised():
    prompt = prompt_of(started(AGENT), asking_for_one(), saying("look"))
    compact(prompt, "One.")

    assert compaction_of(prompt, too_long=False) is None


def asking_for_one():
    return ModelRequested(effect="1.m", attempt=1, messages=(1,), digest="", prefix_digest="")


def test_an_unknown_use_starts_no_summary():
    past = used(900)
    past.when(beginning(), summing_up(), asking(3), saying("look", turn=3))

    assert 0 == past.state.context.tokens
    assert Status.RUNNING is past.state.status
