"""What a result holds: the output as it was declared, and what the session used."""

from decimal import Decimal

import pytest
from pydantic import BaseModel

from tests.scripted import scripted


class Party(BaseModel):
    guests: int


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
    ("text", "why"), [("Seven.", "it is no JSON"), ('{"guests": "many"}', "guests")]
)
async def test_a_text_that_is_no_such_output_says_why(runtime, output, text, why):
    result = await result_of(runtime, text, output)

    assert (None, True) == (result.output, why in result.problem)


async def test_a_result_tells_what_the_session_used(runtime):
    result = await result_of(runtime, "Done.", None)

    assert (Decimal(0), 7, 1) == (result.cost, result.tokens, result.turns)
