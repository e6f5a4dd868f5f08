"""What is recorded of a tool's output: cleaned, capped, the whole in a blob (I11)."""

import base64

import pytest
from pydantic import SecretStr

from cueline.actors.rendered_output import CHARACTERS, render_output
from cueline.errors import ProviderRefusedError, ToolFailedError
from cueline.events.inbox import MessageSent
from cueline.events.sanitize import REDACTED, Redactor
from cueline.events.session import ModelFailed, ToolFailed, ToolReturned
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SessionHarness

CANARY = "canary-3f9c1e77aa"
BLOB = "b10b"


async def kept(content, truncated_from=None, secrets=()):
    blobs = []

    async def put(blob):
        blobs.append(blob)
        return BLOB

    return await render_output(
        content, truncated_from, Redactor(map(SecretStr, secrets)), put
    ), blobs


async def test_a_short_output_is_told_as_it_is():
    told, blobs = await kept("as it is: é".encode())

    assert ("as it is: é", None, False) == (told.text, told.whole, told.cleaned)
    assert [] == blobs


async def test_50_megabytes_are_capped_and_kept_whole_in_a_blob():
    content = b"x" * 50_000_000

    told, (blob,) = await kept(content)

    assert content == blob
    assert len(told.text) < CHARACTERS
    assert f"the whole output of 50,000,000 bytes is kept as blob {BLOB}" in told.text
    assert (50_000_000, None) == (told.size, told.kept)


async def test_what_the_runner_had_to_leave_out_is_said():
    told, (blob,) = await kept(b"y" * 60_000, truncated_from=200_000_000)

    assert "the first 60,000 bytes of 200,000,000 bytes" in told.text
    assert 60_000 == len(blob) == told.kept


async def test_an_output_that_shrank_when_it_was_cleaned_is_kept_whole():
    told, (blob,) = await kept(f"{CANARY} ".encode() * 100_000, secrets=[CANARY])

    assert len(blob) < told.size
    assert f"the whole output of {told.size:,} bytes is kept, cleaned, as blob" in told.text


async def test_binary_output_is_told_as_text_and_marked():
    told, _ = await kept(bytes(range(256)))

    assert told.cleaned
    assert "\0" not in told.text


@pytest.mark.parametrize("size", [0, 2_000_000])
async def test_secrets_are_taken_out_before_anything_is_kept(size):
    spelt = f"{CANARY} {base64.b64encode(CANARY.encode()).decode()}"

    told, blobs = await kept(b"z" * size + spelt.encode(), secrets=[CANARY])

    assert told.cleaned
    assert CANARY not in told.text
    assert all(CANARY.encode() not in blob for blob in blobs)


async def test_a_part_of_a_key_that_a_vendor_repeats_is_taken_out():
    refused = ProviderRefusedError("auth", f"bad key {CANARY[:9]}…{CANARY[-4:]}")
    scene = SessionHarness([refused], secrets=[CANARY])

    await scene.begin()

    assert f"bad key {REDACTED}…{CANARY[-4:]}" == (await scene.last(ModelFailed)).message


async def everything(scene):
    """Return all bytes of the log and its blobs."""
    events = [event async for event in scene.outside.store.read_all()]
    blobs = scene.outside.store._tables.blobs.values()
    return b"".join([*(event.payload for event in events), *(content for content, _ in blobs)])


@pytest.mark.parametrize("padding", [0, 100_000])
async def test_no_secret_of_a_tool_a_model_or_a_failure_is_ever_in_the_log(padding):
    # I11: planted wherever something comes from outside.
    async def leak(order):
        if order.arguments["n"] == 1:
            raise ToolFailedError("tool_error", f"no access with {CANARY}")
        return f"{'p' * padding}{CANARY}"

    calls = asks_for(("read", {"n": 1}), ("read", {"n": 2}), ("read", {"n": 3, "key": CANARY}))
    refused = ProviderRefusedError("auth", f"bad key {CANARY}")
    scene = SessionHarness(
        [calls, says(f"The key is {CANARY}."), refused], act=leak, secrets=[CANARY]
    )
    await scene.begin(open=True)
    await scene.say(MessageSent(lane="note", text="What was it?"))

    assert CANARY.encode() not in await everything(scene)
    assert (await scene.last(ToolFailed)).cleaned
    assert (await scene.last(ToolReturned)).cleaned
