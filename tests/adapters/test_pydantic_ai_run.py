"""What of a pydantic-ai agent is an effect: toolsets, dependencies, outputs, retries."""

import signal
import sys
from functools import partial
from itertools import count

import pytest
from pydantic_ai import ModelRetry, RunContext, TextPart, exceptions
from pydantic_ai.messages import ToolReturnPart

import cueline
from cueline.actors.model_port import ModelRequest
from cueline.adapters.pydantic_ai import from_pydantic_ai
from cueline.adapters.pydantic_ai_model import PydanticAIModel
from cueline.errors import ToolFailedError
from cueline.events.agent import ToolSpec
from cueline.events.message import (
    AssistantMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    canonical_json,
)
from cueline.testing.crash import Outside
from cueline.testing.fakes import JournalingExecutor
from cueline.testing.wait import await_until
from cueline.tools.recorded_tool import load_recorded
from cueline.tools.result import failure_of
from cueline.tools.tool import ToolContext
from tests.adapters import desk, outputs
from tests.adapters.outputs import calls
from tests.crash.undisturbed import Undisturbed

ALL = "peer pear count sell 1 sell 3"
NUMBERS = count()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


async def run(agent, *, messages=()):
    """Return the result of a session of *agent*, and its facts."""
    async with cueline.open_runtime("memory:", on="inline") as runtime:
        session = await runtime.start(agent, "Sell", open=bool(messages))
        result = await session.result()
        for message in messages:
            await session.send(message)
            result = await session.result()
        return result, [event async for _, event in session.events()]


def here(*turns, **parts):
    """Return an agent of this process, whose model replies with *turns*, and its translation."""
    name = f"given_{next(NUMBERS)}"  # because a process loads each tool once
    globals()[name] = made = outputs.scripted(*turns, **parts)
    return made, partial(from_pydantic_ai, f"{__name__}:{name}", name="desk")


def translated(name):
    return from_pydantic_ai(f"{outputs.__name__}:{name}", name="desk")


def results():
    parts = [part for message in outputs.SEEN for part in message.parts]
    return [(each.outcome, each.content) for each in parts if isinstance(each, ToolReturnPart)]


# A whole session, with tools in workers.


@pytest.mark.usefixtures("folder")
async def test_the_parts_that_take_a_context_run_as_effects():
    result, facts = await run(desk.translated())

    ends = [each for each in facts if each.type in ("ToolReturned", "ToolFailed")]
    said = [getattr(each, "output", None) or f"{each.kind}: {each.message}" for each in ends]
    assert {
        "retry: There is no peer",
        "2 for price in 2.0",
        "100 of fruit",
        "retry: 1 is too little",
        '{"output":{"total":5}}',
    } == set(said)
    assert ("completed", {"total": 5}) == (result.status, result.output)
    assert set(ALL.split()) == set(desk.RAN.read_text().split())


# I5
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("turn", [1, 2, 3])
async def test_a_session_killed_after_an_outcome_goes_on_from_it(turn, popen):
    desk.STOP.write_text(f"model {turn}")
    killed = popen([sys.executable, desk.__file__])
    await await_until(lambda: desk.STOPPED.exists() or killed.poll() is not None)
    killed.kill()
    assert -signal.SIGKILL == killed.wait()

    async with cueline.open_runtime("log.db", on="inline") as runtime:
        result = await (await runtime.resume("sale")).result()

    assert ("completed", {"total": 5}) == (result.status, result.output)
    assert sorted(ALL.split()) == sorted(desk.RAN.read_text().split())


async def act(order):
    match order.arguments:
        case {"item": "peer"} | {"usd": 1}:
            raise ToolFailedError("retry", "again")
        case {"usd": usd}:
            return f'{{"output":{{"total":{usd}}}}}'
    return "2"


def outside(said=None):
    tools = dict.fromkeys(("price", "stock_count", "final_result"), act)
    return Outside.new(PydanticAIModel(), JournalingExecutor(tools)), desk.translated().spec()


WHOLE = Undisturbed(outside)


# I5
@WHOLE.after_every_event
async def test_a_session_that_was_cut_asks_its_model_the_same(position):
    place = await WHOLE.cut(position, None)

    await WHOLE.check_told(place)


# Retries.


async def test_the_model_reads_a_retry_as_pydantic_ai_shows_it():
    made, agent = here(calls("find", word="a"), calls("find"), TextPart("Done."), retries=2)

    @made.tool_plain
    async def find(word: str) -> str:
        raise ModelRetry("Ask for b")

    result, _ = await run(agent())

    first, (outcome, said) = results()
    assert ("retried", "Ask for b") == first
    assert ("retried", True) == (outcome, '"word" is a required property' in said)
    assert "Done." == result.text


@pytest.mark.parametrize(("retries", "asked"), [(0, 1), (1, 2), (3, 4)])
async def test_a_session_fails_when_the_retries_are_used_up(retries, asked):
    made, agent = here(*[calls("refuse")] * 9, retries=retries)

    @made.tool_plain
    async def refuse() -> str:
        raise ModelRetry("no")

    result, facts = await run(agent())

    assert "failed" == result.status
    assert f"`refuse` asked {asked} times in a row" in facts[-1].message
    assert asked == [each.type for each in facts].count("ToolFailed")


async def test_a_success_or_a_message_of_a_person_gives_the_retries_back():
    turns = [calls("find", word=word) for word in ("a", "b", "a")]
    made, agent = here(*turns, TextPart("Well."), turns[0], TextPart("Done."))

    @made.tool_plain
    async def find(word: str) -> str:
        if word != "b":
            raise ModelRetry("Ask for b")
        return word

    result, _ = await run(agent(), messages=["Again"])

    assert ("Done.", ["retried", "success", "retried", "retried"]) == (
        result.text,
        [outcome for outcome, _ in results()],
    )


# What a call can end with.


def validate(context: RunContext[desk.Deps], n: int) -> None:
    if n > context.deps.least:
        raise ModelRetry(f"at most {context.deps.least}")


async def end(context: RunContext[desk.Deps], n: int) -> str:
    match n:
        case 0:
            raise exceptions.ToolFailed("there is none")
        case 1:
            raise exceptions.ApprovalRequired
        case 2:
            return str(context.messages)
    return f"{context.deps.goods} {context.run_id} {context.max_retries}"


@pytest.mark.parametrize(
    ("n", "kind", "said"),
    [
        (9, "retry", "^retry: at most 2$"),
        (0, "tool_error", "there is none"),
        (1, "tool_error", "ApprovalRequired in a call: declare `requires_approval=True`"),
        (2, "tool_error", "`RunContext.messages` depends on the run"),
        ("x", "invalid_arguments", "n: Input should be a valid integer"),
    ],
)
async def test_a_call_that_gives_no_result_says_why(n, kind, said):
    call = prepared(deps=desk.Deps("fruit", 2))

    with pytest.raises(Exception, match=said) as raised:
        await call({"n": n})
    assert kind == failure_of(raised.value).kind


async def make_figs():
    return desk.Deps("figs", 9)


@pytest.mark.parametrize("given", [{"deps": desk.Deps("figs", 9)}, {"deps": make_figs}])
async def test_dependencies_are_recorded_or_made_where_the_call_runs(given):
    assert "figs session-x/y 1" == await prepared(**given)({"n": 3})


def prepared(**given):
    """Return the function of a tool of an agent with dependencies, from its recorded form."""
    made, agent = here(deps_type=desk.Deps)
    made.tool(args_validator=validate)(end)
    (spec,) = agent(**given).spec().tools
    spec = ToolSpec.model_validate_json(spec.model_dump_json())
    context = ToolContext(
        session="session-x/y", effect="1.0", attempt=1, key="k", options=spec.options
    )
    return lambda arguments: load_recorded(spec).run(arguments, context)


# The output.


async def test_a_validator_reads_the_last_words_as_a_call():
    result, facts = await run(translated("short"))

    assert "SHORT" == result.text
    assert 2 == [each.type for each in facts].count("ToolStarted")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("text", '["a", "b"]', ["a", "b"]),
        ("named", '["a"]', ["a"]),
        ("several", '["a"]', ["a"]),
        ("prompted", '{"total": 2}', {"total": 2}),
    ],
)
async def test_an_output_function_makes_the_last_reply(name, text, value):
    result, _ = await run(translated(name))

    assert (text, value) == (result.text, result.output)


async def test_words_that_are_no_output_come_back_to_the_model():
    result, _ = await run(translated("checked"))

    assert {"total": 1} == result.output
    assert "retried" == results()[0][0]


OUTPUT = '{"output":{"total":1}}'


def after(agent, said, *messages, effect="1.m"):
    """Return the request for the turn after the result *said* of the agent's output."""
    called = AssistantMessage(calls=(ToolCall(id="c1", name="final_result"),))
    told = [UserMessage(text="Sell"), called, ToolMessage(call="c1", text=said), *messages]
    spec = translated(agent).spec()
    return ModelRequest("session-x/y", effect, 1, 1, spec, list(map(canonical_json, told)))


async def test_the_output_ends_the_run_without_the_model():
    outputs.SEEN.clear()

    reply = await PydanticAIModel().reply(after("checked", OUTPUT))

    assert ('{"total": 1}', (), []) == (reply.content[0].text, reply.calls, outputs.SEEN)


@pytest.mark.parametrize("said", ["The outcome of this call is unknown", '"output"', "[1]"])
async def test_a_result_that_is_not_the_output_ends_nothing(said):
    reply = await PydanticAIModel().reply(after("checked", said))

    assert [("final_result", {"total": 1})] == [(each.name, each.arguments) for each in reply.calls]


async def test_a_person_who_speaks_before_the_end_is_heard_first():
    reply = await PydanticAIModel().reply(after("checked", OUTPUT, UserMessage(text="Wait")))

    assert ["final_result"] == [each.name for each in reply.calls]


async def test_a_summary_is_not_a_call():
    outputs.SEEN.clear()

    reply = await PydanticAIModel().reply(after("checked", OUTPUT, effect="3.c"))

    assert ((), '{"total": 1}') == (reply.calls, reply.content[0].text)
    assert outputs.SEEN
