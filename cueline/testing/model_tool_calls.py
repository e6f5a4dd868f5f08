"""Contract tests of tool calls and their results."""

# ruff: noqa: SIM300 - a test's name is the fact; what is expected stands first

import json
from itertools import pairwise

import pytest

from cueline.events.message import (
    AssistantMessage,
    ImageBlock,
    Message,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from cueline.testing.model_example import HELLO, PARIS, ROME, TEXT, WEATHER, Asker, ModelCases, case
from cueline.testing.model_replies import PIXEL
from cueline.testing.model_server import ModelServer, RecordedServer

OPAQUE = OpaqueBlock(provider="another", data={"theirs": "opaque"})
BROKEN: dict[str, tuple[Message, ...]] = {
    "a call without a result": (
        HELLO,
        AssistantMessage(calls=(ToolCall(id="lost", name="get_weather"),)),
        UserMessage(text="And?"),
    ),
    "a result without a call": (HELLO, ToolMessage(call="lost", text="21"), UserMessage(text="?")),
    "one id twice": (
        HELLO,
        AssistantMessage(calls=(PARIS, ROME)),
        ToolMessage(call="", text="21"),
        UserMessage(text="careful"),
        ToolMessage(call="", text="24"),
    ),
    "blank texts": (
        UserMessage(text=" "),
        AssistantMessage(content=(TextBlock(text=""),)),
        UserMessage(text="\n"),
        AssistantMessage(calls=(PARIS,)),
        ToolMessage(call="", text=""),
    ),
    "content of another vendor": (
        HELLO,
        AssistantMessage(
            content=(ThinkingBlock(text="theirs", signature="s", provider="another"), OPAQUE),
            calls=(ToolCall(id="functions.x:0", name="get_weather", opaque=OPAQUE),),
        ),
        ToolMessage(call="functions.x:0", text="21"),
    ),
    "only content of another vendor": (
        HELLO,
        AssistantMessage(content=(OPAQUE,)),
        UserMessage(text="And?"),
    ),
    "malformed arguments": (
        HELLO,
        AssistantMessage(calls=(ToolCall(id="a", name="get weather!", malformed='{"ci'),)),
        ToolMessage(call="a", text="no", failed=True),
    ),
}


class ToolContract(ModelCases):
    """Calls, results, and transcripts that a vendor would refuse unchanged."""

    @case("Tool calls", needs="tools")
    async def test_a_tool_is_called_and_its_result_answered(
        self, server: ModelServer, ask: Asker
    ) -> None:
        server.call(PARIS)
        asked = await ask(HELLO, tools=(WEATHER,))
        (call,) = asked.calls

        server.say(TEXT)
        said = AssistantMessage(content=asked.content, calls=asked.calls)
        result = ToolMessage(call=call.id, text="21 degrees")
        answered = await ask(HELLO, said, result, tools=(WEATHER,))

        assert (PARIS.name, PARIS.arguments) == (call.name, call.arguments)
        assert ("tool_use", "end_turn") == (asked.stop_reason, answered.stop_reason)
        assert "21 degrees" in json.dumps(server.requests[-1])

    @case("Parallel tool calls", needs="parallel_tools")
    async def test_several_calls_come_in_one_reply(self, server: ModelServer, ask: Asker) -> None:
        server.call(PARIS, ROME)
        asked = await ask(HELLO, tools=(WEATHER,))

        server.say(TEXT)
        said = AssistantMessage(content=asked.content, calls=asked.calls)
        results = [
            ToolMessage(call=call.id, text=f"{n} degrees") for n, call in enumerate(asked.calls)
        ]
        await ask(HELLO, said, *reversed(results), tools=(WEATHER,))

        assert [PARIS.arguments, ROME.arguments] == [call.arguments for call in asked.calls]
        sent = json.dumps(server.requests[-1])
        assert sent.index("Paris") < sent.index("0 degrees") < sent.index("1 degrees")

    @case("Tool errors", needs="tools")
    async def test_a_failed_result_is_sent(self, server: ModelServer, ask: Asker) -> None:
        server.say(TEXT)
        said = AssistantMessage(calls=(PARIS.model_copy(update={"id": "a"}),))

        await ask(HELLO, said, ToolMessage(call="a", text="no such city", failed=True))

        assert "no such city" in json.dumps(server.requests[-1])

    @case("Malformed arguments", needs="tools")
    async def test_arguments_that_are_not_json_are_kept(
        self, server: ModelServer, ask: Asker
    ) -> None:
        server.spoil_call()

        (call,) = (await ask(HELLO, tools=(WEATHER,))).calls

        assert {} == call.arguments
        assert call.malformed

    @case("Cut calls", needs="tools", recorded="cut")
    async def test_a_call_that_was_cut_off_does_not_run(
        self, recorder: RecordedServer, ask_recorder: Asker
    ) -> None:
        recorder.answers.append(self.recorded["cut"])

        (call,) = (await ask_recorder(HELLO, tools=(WEATHER,))).calls

        assert "limits.max_output_tokens" in (call.problem or "")

    @case("Results with images", needs="images")
    async def test_an_image_in_a_result_is_sent(self, server: ModelServer, ask: Asker) -> None:
        server.say(TEXT)
        image = ImageBlock(media_type="image/png", data=PIXEL)
        said = AssistantMessage(calls=(PARIS.model_copy(update={"id": "a"}),))

        await ask(HELLO, said, ToolMessage(call="a", text="a map", attachments=(image,)))

        assert PIXEL in json.dumps(server.requests[-1])

    @case("Any transcript")
    @pytest.mark.parametrize("messages", BROKEN.values(), ids=BROKEN.keys())
    async def test_no_transcript_is_refused(
        self, server: ModelServer, ask: Asker, messages: tuple[Message, ...]
    ) -> None:
        server.say(TEXT)

        reply = await ask(*messages, tools=(WEATHER,))

        assert "end_turn" == reply.stop_reason
        assert "theirs" not in json.dumps(server.requests[-1])

    @case("Stable prompt")
    def test_a_request_begins_as_the_one_before(self) -> None:
        if self.provider.request is None:
            pytest.skip(f"{self.provider.name}: sends no request")
        answer = AssistantMessage(content=(TextBlock(text=TEXT),))
        broken = (*BROKEN["one id twice"], *BROKEN["malformed arguments"])
        talk = (*broken, answer, HELLO, answer)
        ends = [n for n, message in enumerate(talk) if message.role == "assistant"]
        bodies = [self.stable(self.body(*talk[:end])) for end in ends]

        assert 2 < len(bodies)
        for before, after in pairwise(bodies):
            assert before.keys() == after.keys()
            for name, value in before.items():
                kept = after[name][: len(value)] if isinstance(value, list) else after[name]
                assert value == kept, name
