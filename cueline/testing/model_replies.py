"""Contract tests of replies."""

# ruff: noqa: SIM300 - a test's name is the fact; what is expected stands first

import base64
import json

import pytest

from cueline.events.message import (
    AssistantMessage,
    FileBlock,
    ImageBlock,
    ThinkingBlock,
    ToolMessage,
    Usage,
    UserMessage,
)
from cueline.testing.model_example import HELLO, TEXT, Asker, ModelCases, case, text_of
from cueline.testing.model_server import ModelServer, RecordedServer
from cueline.testing.wait import await_until

PIXEL = base64.b64encode(
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f"
    b"\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d"
    b"\x00\x00\x00\x00IEND\xaeB`\x82"
).decode()
PAGE = base64.b64encode(b"%PDF-1.4\n%%EOF\n").decode()


class ReplyContract(ModelCases):
    """Text, thoughts, attachments and usage."""

    @case("Text")
    async def test_text_comes_whole_with_its_usage(self, server: ModelServer, ask: Asker) -> None:
        server.say(TEXT)

        reply = await ask(HELLO)

        assert TEXT == text_of(reply)
        assert ("end_turn", ()) == (reply.stop_reason, reply.calls)

    @case("Stream", needs="streaming")
    async def test_the_pieces_joined_are_the_text(self, server: ModelServer, ask: Asker) -> None:
        server.say(TEXT)

        reply = await ask(HELLO)

        assert text_of(reply) == ask.told("text")
        assert 1 < len(ask.deltas)

    @case("Stream", needs="streaming", recorded="text")
    async def test_a_piece_comes_before_the_reply_ends(
        self, recorder: RecordedServer, ask_recorder: Asker
    ) -> None:
        recorder.answers.append(self.recorded["text"])
        recorder.may_end.clear()

        async with self.asking(ask_recorder, HELLO) as asking:
            await await_until(lambda: ask_recorder.deltas)
            assert not asking.done()
            recorder.may_end.set()
            reply = await asking

        assert TEXT == text_of(reply) == ask_recorder.told("text")

    @case("Thinking", needs="thinking", recorded="thinking")
    async def test_thoughts_are_told_apart_from_text(
        self, recorder: RecordedServer, ask_recorder: Asker
    ) -> None:
        recorder.answers.append(self.recorded["thinking"])

        reply = await ask_recorder(HELLO)

        thoughts = [block.text for block in reply.content if isinstance(block, ThinkingBlock)]
        assert ["Paris, then."] == thoughts
        assert ("Paris, then.", "Let me see.") == (ask_recorder.told("thinking"), text_of(reply))

    @case("Thinking kept", needs="thinking", recorded="thinking")
    async def test_what_a_vendor_signed_goes_back_unchanged(
        self, recorder: RecordedServer, ask_recorder: Asker
    ) -> None:
        recorder.answers.extend([self.recorded["thinking"], self.recorded["text"]])
        reply = await ask_recorder(HELLO)
        results = [ToolMessage(call=call.id, text="21 degrees") for call in reply.calls]

        said = AssistantMessage(content=reply.content, calls=reply.calls)
        await ask_recorder(HELLO, said, *results, UserMessage(text="And now?"))

        assert self.signature in json.dumps(recorder.requests[-1])

    @case("Usage with cache", needs="prompt_cache", recorded="cached")
    async def test_tokens_of_the_cache_are_counted_apart(
        self, recorder: RecordedServer, ask_recorder: Asker
    ) -> None:
        recorder.answers.append(self.recorded["cached"])

        usage = (await ask_recorder(HELLO)).usage

        assert Usage(input=9, output=33, cache_read=70) == usage.model_copy(
            update={"cache_write": 0}
        )

    @case("Stop reasons", recorded="limit")
    async def test_a_reply_that_reached_the_limit_says_so(
        self, recorder: RecordedServer, ask_recorder: Asker
    ) -> None:
        recorder.answers.append(self.recorded["limit"])

        reply = await ask_recorder(HELLO)

        assert "max_tokens" == reply.stop_reason
        assert text_of(reply)

    @case("Images", needs="images")
    async def test_an_image_is_sent(self, server: ModelServer, ask: Asker) -> None:
        server.say(TEXT)
        image = ImageBlock(media_type="image/png", data=PIXEL)

        await ask(UserMessage(text="What is this?", attachments=(image,)))

        assert PIXEL in json.dumps(server.requests[-1])

    @case("Files", needs="files")
    async def test_a_document_is_sent(self, server: ModelServer, ask: Asker) -> None:
        server.say(TEXT)
        page = FileBlock(media_type="application/pdf", name="page.pdf", data=PAGE)

        await ask(UserMessage(text="What is this?", attachments=(page,)))

        assert PAGE in json.dumps(server.requests[-1])

    @case("Files of text")
    async def test_a_file_of_text_is_sent_to_every_model(
        self, server: ModelServer, ask: Asker
    ) -> None:
        server.say(TEXT)
        data = base64.b64encode(b"Open at eight.").decode()
        note = FileBlock(media_type="text/plain", name="note.txt", data=data)

        await ask(UserMessage(text="What is this?", attachments=(note,)))

        told = json.dumps(server.requests[-1])
        assert "Open at eight." in told or data in told

    @case("Model list")
    async def test_the_server_names_its_models(self, server: ModelServer) -> None:
        if self.provider.models is None:
            pytest.skip(f"{self.provider.name}: cannot be asked for its models")

        names = await self.provider.models(self.account(server.base_url))

        assert names
        assert all(names)
