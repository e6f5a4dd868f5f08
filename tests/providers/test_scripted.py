"""The model that answers from a file."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from cueline.errors import ConfigError, ProviderRefusedError, ProviderUnavailableError
from cueline.events.message import TextBlock, ThinkingBlock, ToolCall, Usage
from cueline.providers.scripted.model import ScriptedModel, read_script, record_script, script_of


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def model(pauses):
    async def pause(seconds):
        pauses.append(seconds)

    class OfScript:
        def __init__(self, text):
            self.text = text

        async def reply(self, request):
            parameters = {"script": self.text}
            agent = request.agent.model_copy(update={"parameters": parameters, "model": "script"})
            return await ScriptedModel(pause).reply(replace(request, agent=agent))

    return OfScript


async def test_a_turn_is_answered_by_the_reply_in_its_place(model, request_for):
    scripted = model('[[reply]]\ntext = "one"\n[[reply]]\ntext = "two"')

    reply = await scripted.reply(request_for(turn=2))

    assert (TextBlock(text="two"),) == reply.content
    assert ("end_turn", "script") == (reply.stop_reason, reply.model)


async def test_asking_again_gives_the_same_answer(model, request_for):
    scripted = model('[[reply]]\ntext = "one"\n[[reply]]\ntext = "two"')

    first, again = [await scripted.reply(request_for(turn=1)) for _ in range(2)]

    assert first == again


async def test_thoughts_come_before_words(model, request_for):
    scripted = model('[[reply]]\ntext = "Yes."\nthinking = "Hm."')

    reply = await scripted.reply(request_for())

    assert (ThinkingBlock(text="Hm."), TextBlock(text="Yes.")) == reply.content


async def test_calls_have_ids_by_turn_and_place(model, request_for):
    scripted = model(
        '[[reply]]\nturn = 3\ncalls = [{name = "look", arguments = {at = "a"}}, {name = "go"}]'
    )

    reply = await scripted.reply(request_for(turn=3))

    look = ToolCall(id="call_3_0", name="look", arguments={"at": "a"})
    assert (look, ToolCall(id="call_3_1", name="go")) == reply.calls
    assert reply.stop_reason == "tool_use"


async def test_a_call_may_name_its_id_and_be_malformed(model, request_for):
    scripted = model("""[[reply]]\ncalls = [{name = "go", id = "mine", malformed = '{"to'}]""")

    reply = await scripted.reply(request_for())

    assert (ToolCall(id="mine", name="go", malformed='{"to'),) == reply.calls


FAILS_ONCE = """
[[reply]]
turn = 1
attempt = 1
fail = {kind = "rate_limited", message = "slow down", retry_after = 2.5}

[[reply]]
turn = 1
text = "now"
"""


async def test_a_reply_for_this_attempt_goes_before_one_for_any(model, request_for):
    scripted = model(FAILS_ONCE)

    with pytest.raises(ProviderUnavailableError) as caught:
        await scripted.reply(request_for(attempt=1))
    later = await scripted.reply(request_for(attempt=3))

    assert ("rate_limited", "slow down", 2.5, None) == caught.value.args
    assert (TextBlock(text="now"),) == later.content


async def test_a_refusal_is_a_permanent_error(model, request_for):
    scripted = model('[[reply]]\nfail = {kind = "context_too_long"}')

    with pytest.raises(ProviderRefusedError) as caught:
        await scripted.reply(request_for())

    told = "the script says context_too_long"
    assert ("context_too_long", told, None, None) == caught.value.args


async def test_half_a_reply_is_a_failed_attempt(model, request_for):
    scripted = model('[[reply]]\ntext = "I was going to"\ncut = true')

    with pytest.raises(ProviderUnavailableError, match="malformed_reply"):
        await scripted.reply(request_for())


async def test_more_than_there_is_is_refused(model, request_for):
    scripted = model('[[reply]]\ntext = "one"')

    with pytest.raises(ProviderRefusedError) as caught:
        await scripted.reply(request_for(turn=5))

    lack = "the script script has no reply for turn 5, attempt 1"
    assert ("invalid_request", lack, None, None) == caught.value.args


async def test_a_delay_is_waited_for_by_the_clock_that_was_handed_in(model, pauses, request_for):
    scripted = model('[[reply]]\ntext = "late"\ndelay_seconds = 30')

    await scripted.reply(request_for())

    assert [30] == pauses


async def test_usage_is_what_the_file_says(model, request_for):
    scripted = model('[[reply]]\ntext = "a"\nusage = {input = 7, output = 3, cache_read = 90}')

    reply = await scripted.reply(request_for())

    assert Usage(input=7, output=3, cache_read=90) == reply.usage


async def test_usage_is_else_a_token_for_every_four_bytes(model, request_for):
    scripted = model('[[reply]]\ntext = "12345"\ncalls = [{name = "go", arguments = {a = 1}}]')

    reply = await scripted.reply(request_for(messages=[b"12345678", b"1"], instructions="1234"))

    assert Usage(input=4, output=4) == reply.usage


MISTAKES = {
    "is not TOML": "[[reply",
    "has no [[reply]]": "",
    "the file has the unknown key 'replies'": "replies = []",
    "reply 2 has the unknown key 'txt'": '[[reply]]\ntext = "a"\n[[reply]]\ntxt = "b"',
    "reply 1 text is 7, not a text": "[[reply]]\ntext = 7",
    "reply 1 turn is true, not a whole number": '[[reply]]\nturn = true\ntext = "a"',
    "reply 1 is 1, not a table": "reply = [1]",
    "reply 1 counts from 0": '[[reply]]\nturn = 0\ntext = "a"',
    "reply 1 delay_seconds is nan": '[[reply]]\ntext = "a"\ndelay_seconds = nan',
    "reply 1 delay_seconds is -1": '[[reply]]\ntext = "a"\ndelay_seconds = -1',
    "reply 1 names an attempt; name its turn": '[[reply]]\nattempt = 2\ntext = "a"',
    "reply 1 says nothing": "[[reply]]\nturn = 1",
    "reply 1 is cut and fails": '[[reply]]\ncut = true\nfail = {kind = "timeout"}',
    "reply 1 fail kind is 'tired'": '[[reply]]\nfail = {kind = "tired"}',
    "reply 1 fail has no kind; known are auth": "[[reply]]\nfail = {}",
    "reply 1 fail kind is 3, not a text": "[[reply]]\nfail = {kind = 3}",
    "reply 1 fail is [], not a table": "[[reply]]\nfail = []",
    'reply 1 text is ["a"], not a text': '[[reply]]\ntext = ["a"]',
    'reply 1 text is "2026-01-02", not a text': "[[reply]]\ntext = 2026-01-02",
    'reply 1 delay_seconds is "1", not a number': '[[reply]]\ntext = "a"\ndelay_seconds = "1"',
    "reply 1 calls[0] is 3, not a table": "[[reply]]\ncalls = [3]",
    "the file reply is {}, not a list": "reply = {}",
    "reply 1 fail retry_after": '[[reply]]\nfail = {kind = "auth", retry_after = 1}',
    "reply 1 fail has the unknown key 'after'": '[[reply]]\nfail = {kind = "auth", after = 1}',
    "reply 1 calls[0] has no name": "[[reply]]\ncalls = [{}]",
    "reply 1 calls[1] has the unknown key": '[[reply]]\ncalls = [{name = "a"}, {nam = "b"}]',
    "reply 1 calls[0] arguments hold what JSON has not": (
        '[[reply]]\ncalls = [{name = "a", arguments = {on = 2026-01-01}}]'
    ),
    "is nested too deep": f"reply = {'[' * 500}{']' * 500}",
    "reply 1 calls[0] arguments are nested too deep": (
        f'[[reply]]\ncalls = [{{name = "a", arguments = {{b = {"[" * 300}{"]" * 300}}}}}]'
    ),
    "reply 1 usage output is -3": '[[reply]]\ntext = "a"\nusage = {output = -3}',
    "reply 2 says again": '[[reply]]\ntext = "a"\n[[reply]]\nturn = 1\ntext = "b"',
}


@pytest.mark.parametrize(("reason", "text"), MISTAKES.items())
def test_a_mistake_in_the_file_is_named(reason, text):
    with pytest.raises(ConfigError) as caught:
        read_script(text, "demo.toml")

    assert caught.value.subject == "demo.toml"
    assert caught.value.reason.startswith(reason)


def test_the_recorded_agent_no_longer_needs_the_file(tmp_path, agent):
    path = tmp_path / "demo.toml"
    path.write_text('[[reply]]\ntext = "one"')
    recorded = record_script({"temperature": 0}, path)

    path.unlink()

    assert {"temperature": 0, "script": '[[reply]]\ntext = "one"'} == recorded
    script = script_of(agent(model=str(path), parameters=recorded))
    assert (1, None) in script.replies


def test_recording_again_changes_nothing(tmp_path):
    inline = {"script": '[[reply]]\ntext = "one"'}

    assert inline == record_script(inline, tmp_path / "absent.toml")


def test_a_script_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"absent\.toml: cannot be read \(No such file"):
        record_script({}, tmp_path / "absent.toml")


def test_a_script_that_is_no_text_is_named(tmp_path):
    (tmp_path / "demo.toml").write_bytes(b"\xff")

    with pytest.raises(ConfigError, match=r"demo\.toml: is not UTF-8"):
        record_script({}, tmp_path / "demo.toml")


def test_a_script_without_an_end_is_refused():
    with pytest.raises(ConfigError, match=r"^/dev/zero: it is a named pipe, a device or a socket"):
        record_script({}, Path("/dev/zero"))


def test_a_script_given_as_anything_but_text_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match=r"parameters\.script: is 7"):
        record_script({"script": 7}, tmp_path / "absent.toml")


def test_the_examples_of_the_guide_can_be_read():
    guide = Path(__file__).parents[2] / "docs/guides/scripted-provider.md"
    examples = re.findall(r"(?ms)^```toml\n(.*?)^```", guide.read_text())

    scripts = [read_script(example) for example in examples if "[[reply]]" in example]

    assert [2, 2] == [len(script.replies) for script in scripts]
