"""pydantic-ai agents whose output their own code makes or checks, with scripted replies."""

from pydantic_ai import (
    Agent,
    ModelResponse,
    ModelRetry,
    PromptedOutput,
    RunContext,
    TextOutput,
    TextPart,
    ToolCallPart,
    ToolOutput,
)
from pydantic_ai.models.function import FunctionModel

from tests.adapters.desk import Receipt

SEEN = []


def scripted(*turns, **parts):
    """Return an agent whose model replies with *turns*, and notes what it was asked."""

    async def answer(messages, info):
        SEEN[:] = messages
        turn = sum(isinstance(each, ModelResponse) for each in messages)
        return ModelResponse(parts=[turns[turn]])

    return Agent(FunctionModel(answer), **parts)


def calls(name, **arguments):
    return ToolCallPart(name, arguments)


def words(text: str) -> list[str]:
    return text.split()


text = scripted(TextPart("a b"), output_type=TextOutput(words))
named = scripted(calls("put", text="a"), output_type=ToolOutput(words, name="put"))
several = scripted(calls("final_result_words", text="a"), output_type=[Receipt, words])
prompted = scripted(
    TextPart('```json\n{"total": 2}\n```'), output_type=PromptedOutput([Receipt, words])
)
checked = scripted(TextPart("Well."), TextPart('{"total": 1}'), output_type=Receipt)
short = scripted(TextPart("Too long."), TextPart("Short"))


@checked.output_validator
def accept(receipt: Receipt) -> Receipt:
    return receipt


@short.output_validator
def shout(context: RunContext, said: str) -> str:
    if len(said) > 5:
        raise ModelRetry("Say less")
    return said.upper()
