"""A request begins with the bytes of the one before: after a resume, a fork, and on another host.

Otherwise the vendor reads nothing from its cache, and the whole prompt costs its full price.
"""

import json
import os
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings

from cueline.deciders.prompt import Prompt
from cueline.deciders.session import evolve, session_of
from cueline.events.inbox import MessageSent
from cueline.events.message import (
    FileBlock,
    ImageBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
)
from cueline.events.session import PromptPrefixChanged
from cueline.providers.registry import provider_named
from tests.deciders.session_story import STARTS, simulate, stories
from tests.deciders.simulated_shell import SimulatedShell
from tests.deciders.simulation import load_prefix
from tests.drawn import drawn
from tests.providers.cached_prefix import (
    BUILDERS,
    MARK,
    STREAM,
    digests,
    is_turn,
    recorded,
    requests,
    through_snapshot,
)
from tests.session_example import asking, forked, returned, running, saying, started

FAST = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=drawn(40))
IMAGE = ImageBlock(media_type="image/png", data="iVBORw0KGgo=", name="photo.png")
FILE = FileBlock(media_type="text/plain", name="guests.txt", data="QWRh")
RECORDED = recorded()

each_builder = pytest.mark.parametrize("provider", BUILDERS, ids=lambda each: each.name)


def rich():
    """Return a session with every kind of content, and messages of every lane."""
    shell = SimulatedShell(STREAM)
    shell.take(started(open=True).model_copy(update={"attachments": (IMAGE,)}))
    for turn in range(1, 6):
        last = turn in (3, 5)
        shell.take(asking(turn))
        reply = saying(*(() if last else ("look", "peek")), turn=turn)
        shell.take(reply.model_copy(update=content(turn, reply.calls)))
        if last:
            shell.send(MessageSent(lane="note", text=f"Look {turn}.", attachments=(FILE, IMAGE)))
            continue
        shell.take(running(f"{turn}.0", "look"))
        shell.send(MessageSent(lane="note", text="A note."))
        shell.take(running(f"{turn}.1", "peek"))
        shell.take(returned(f"{turn}.1"))
        shell.take(returned(f"{turn}.0"))
    return facts_of(shell)


def content(turn, calls):
    """Return content of two vendors, and calls with what only one of them reads."""
    opaque = OpaqueBlock(provider="gemini", data={"thought_signature": "c2ln"})
    blocks = (
        ThinkingBlock(text="Hm.", signature="c2ln", provider="anthropic"),
        TextBlock(text=f"Turn {turn} — “well”."),
        OpaqueBlock(provider="anthropic", data={"type": "redacted_thinking", "data": "x"}),
        TextBlock(text="Next."),
    )
    told = [ToolCall(**{**call.model_dump(), "opaque": opaque}) for call in calls]
    return {"content": blocks[: 2 + turn % 3], "calls": tuple(told)}


def facts_of(shell):
    return [fact for step in shell.log for fact in step]


def check_growth(provider, facts):
    """Check that each request begins with the one before, or that a fact says why not."""
    sent = list(requests(provider, facts, session_of(STREAM), Prompt()))
    for before, after in pairwise(sent):
        assert after.changed or before.begins(after), (before, after)
    return sent


def check_resumes(provider, facts):
    """Check that whoever goes on after any fact sends the same bytes."""
    sent = [(each.head, each.messages) for each in check_growth(provider, facts)]
    state, prompt, made = session_of(STREAM), Prompt(), 0
    for cut, fact in enumerate(facts, start=1):
        state = evolve(state, fact)
        prompt.add(fact)
        made += is_turn(fact)
        following = requests(provider, facts[cut:], *through_snapshot(state, prompt))
        next_one = next(((each.head, each.messages) for each in following), None)
        assert next_one == (sent[made] if made < len(sent) else None)


def check_forks(provider, facts, agent):
    """Check that a fork at any version begins with the last request before it."""
    sent = list(requests(provider, facts, session_of(STREAM), Prompt()))
    made, changed = 0, False
    for cut, fact in enumerate(facts, start=1):
        changed = isinstance(fact, PromptPrefixChanged) or (changed and not is_turn(fact))
        made += is_turn(fact)
        if not made:
            continue
        shell = load_prefix(facts[:cut], "session-default/fork")
        before = shell.state, shell.prompt
        shell = load_prefix(facts[:cut], "session-default/fork")
        shell.mail = 1
        shell.take(forked(agent, "Try again.", version=cut))
        first = next(requests(provider, facts_of(shell), *before), None)
        if first is None:
            continue  # it asks for a summary first
        assert changed or first.changed or sent[made - 1].begins(first)


@each_builder
@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_session_sends_the_same_bytes_wherever_it_is_resumed(provider, name):
    check_resumes(provider, RECORDED[name])


# 002-021, D4
@each_builder
def test_every_kind_of_content_keeps_its_bytes_in_later_requests(provider):
    facts = rich()

    check_resumes(provider, facts)
    check_forks(provider, facts, facts[0].agent)


@each_builder
@FAST
@given(STARTS, stories(40))
def test_a_session_sends_the_same_bytes_wherever_it_is_resumed(provider, start, script):
    check_resumes(provider, facts_of(simulate(start, script)))


@each_builder
@FAST
@given(STARTS, stories(30))
def test_a_fork_begins_with_the_bytes_of_its_parent(provider, start, script):
    check_forks(provider, facts_of(simulate(start, script)), start.agent)


def test_another_process_sends_the_same_bytes():
    seed = {**os.environ, "PYTHONHASHSEED": "7"}
    words = [sys.executable, "-m", "tests.providers.cached_prefix"]

    done = subprocess.run(words, env=seed, capture_output=True, text=True, check=True)

    assert json.loads(done.stdout) == digests()


def test_the_marks_of_a_request_cover_all_of_it_and_the_end_of_the_one_before():
    sent = list(requests(provider_named("anthropic"), rich(), session_of(STREAM), Prompt()))

    ends = [0, *(len(each.body["messages"]) for each in sent)]
    for before, each in zip(ends, sent, strict=False):
        messages = each.body["messages"]
        marked = [n for n, m in enumerate(messages, 1) if MARK in m["content"][-1]]
        assert set(marked) <= {before, len(messages)}
        assert marked[-1] == len(messages)
        assert before in {0, *marked}
        assert MARK in (each.body.get("system") or each.body["tools"])[-1]
