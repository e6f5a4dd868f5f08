"""What is said by a shell that lacks a secret is cleaned by the host that reads it (I11)."""

import pytest

from cueline.actors.inbox import post
from cueline.events.codec import Codec, Redacted
from cueline.events.inbox import DecisionGiven, MessageSent
from cueline.events.journal import Journal
from cueline.events.sanitize import REDACTED
from cueline.events.session import MessageReceived
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SESSION, SessionHarness

CANARY = "canary-3f9c1e77aa"
INBOX = "inbox-default/s"


async def say_unclean(scene, message):
    """Post a message from where the secret is not known."""
    outside = scene.outside
    await post(Journal(outside.store, Codec(), outside.clock.now), SESSION, message)
    await scene.clock.settle()


async def kept(scene):
    """Return all bytes of the log and its blobs."""
    events = [event async for event in scene.outside.store.read_all()]
    blobs = scene.outside.store._tables.blobs.values()
    return b"".join([*(event.payload or b"" for event in events), *(blob for blob, _ in blobs)])


@pytest.mark.parametrize("padding", [0, 20_000])
async def test_a_message_with_a_secret_is_recorded_cleaned_and_redacted_in_the_inbox(padding):
    scene = SessionHarness([says("Yes?"), says("I see."), says("Yes.")], secrets=[CANARY])
    world = await scene.begin(open=True)
    said = MessageSent(lane="note", text=f"{'p' * padding} It is {CANARY}.")

    await say_unclean(scene, said)
    await world.kill()
    await scene.world()
    await scene.say(MessageSent(lane="note", text="Did you read it?"))

    read = [
        fact for fact in await scene.outside.facts(SESSION) if isinstance(fact, MessageReceived)
    ]
    inbox = [fact async for _, fact in scene.outside.journal.read(INBOX)]
    assert [f"{'p' * padding} It is {REDACTED}.", "Did you read it?"] == [
        fact.message.text for fact in read
    ]
    assert [Redacted("MessageSent"), read[1].message] == inbox[1:]
    assert CANARY.encode() not in await kept(scene)
    assert "idle" == (await scene.state()).status


async def test_what_goes_with_a_decision_is_cleaned_before_it_is_handed_over():
    scene = SessionHarness([asks_for(("deploy", {})), says("Done.")], secrets=[CANARY])
    await scene.begin()
    (call,) = (await scene.state()).open_calls
    asked = call.approval

    await say_unclean(
        scene,
        DecisionGiven(
            approval=asked.id, digest=asked.digest, verdict="grant", by="ann", note=f"use {CANARY}"
        ),
    )

    assert CANARY.encode() not in await kept(scene)
    assert f"use {REDACTED}" in "".join(map(bytes.decode, await scene.outside.transcript(SESSION)))
    assert "completed" == (await scene.state()).status
