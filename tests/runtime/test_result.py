"""What a result holds: the output as it was declared, and what the session used."""

from decimal import Decimal

import pytest
from pydantic import BaseModel

from cueline import Agent
from cueline.errors import ConfigError
from tests.scripted import scripted


class Party(BaseModel):
    guests: int


NOBODY = {"name": "a", "provider": "scripted", "model": "m"}
SCHEMA = {"type": "object", "properties": {"guests": {"type": "integer"}}, "required": ["guests"]}


def says(text):
    return scripted(f"reply = [{{ text = '''{text}''', usage = {{ input = 5, output = 2 }} }}]")


async def result_of(runtime, text, output):
    async with runtime() as here:
        return await (await here.start(says(text), "Go", output=output)).result()


@pytest.mark.parametrize("text", ['{"guests": 7}', '```json\n{"guests": 7}\n```'])
@pytest.mark.parametrize(("output", "read"), [(Party, Party(guests=7)), (SCHEMA, {"guests": 7})])
async def test_what_was_said_last_is_read_as_it_was_declared(runtime, text, output, read):
    result = await result_of(runtime, text, output)

    assert (read, "", text) == (result.output, result.problem, result.text)


@pytest.mark.parametrize("output", [Party, SCHEMA])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Seven.", "it is no JSON"),
        ('{"guests": "many"}', "guests"),
        ("[" * 100_000, "it is no JSON"),
    ],
)
async def test_a_text_that_is_no_such_output_says_why(runtime, output, text, why):
    result = await result_of(runtime, text, output)

    assert (None, True) == (result.output, why in result.problem)


async def test_a_result_tells_what_the_session_used(runtime):
    result = await result_of(runtime, "Done.", None)

    assert (Decimal(0), 7, 1) == (result.cost, result.tokens, result.turns)


async def test_the_form_of_an_output_is_recorded_with_the_agent_who_is_told_of_it(runtime):
    async with runtime() as here:
        agent = says('{"guests": 7}')
        session = await here.start(agent, "Go", id="one", open=True, output=Party)
        await session.result()

    async with runtime() as here:
        resumed = await (await here.resume("one")).result()
        looked_up = await here.session("one").result()
        forked = await (await here.fork("one", at=1)).result()
        [asked] = [row async for row in here.log.journal().read("inbox-default/one", until=1)]

    assert {"guests": 7} == resumed.output == looked_up.output == forked.output
    assert '"guests"' in asked[1].agent.instructions


async def test_an_agent_may_declare_the_output_of_each_of_its_sessions(runtime):
    agent = says("Seven.").model_copy(update={"output": Agent(**NOBODY, output=Party).output})

    async with runtime() as here:
        result = await (await here.start(agent, "Go")).result()

    assert (None, True) == (result.output, "it is no JSON" in result.problem)


@pytest.mark.parametrize("output", [Party(guests=7), "Party", {"type": "whatever"}])
async def test_what_is_no_form_of_an_output_is_refused(runtime, output):
    with pytest.raises(ConfigError, match="output"):
        await result_of(runtime, "Seven.", output)
