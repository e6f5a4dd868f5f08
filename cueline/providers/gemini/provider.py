"""Google's Gemini models."""

from collections.abc import Iterable
from typing import Final

from cueline.events.agent import AgentSpec
from cueline.providers.account import Account, Endpoint
from cueline.providers.gemini.conversation import Json
from cueline.providers.gemini.model import GeminiModel, connect
from cueline.providers.gemini.request import request_body
from cueline.providers.patience import check_parameters
from cueline.providers.provider import Capabilities, Pause, Provider
from cueline.providers.tool_protocol import as_asked

ELSEWHERE: Final = {
    "contents": "cueline makes them",
    "maxOutputTokens": "use limits.max_output_tokens",
    "systemInstruction": "use instructions",
}


def make(account: Account, _pause: Pause) -> GeminiModel:
    """Return the models of *account*."""
    return GeminiModel(account)


def check(agent: AgentSpec) -> None:
    """Check the parameters of *agent*.

    Raises:
        ConfigError: move or correct the parameter that it names.
    """
    check_parameters(agent, prompts=True, elsewhere=ELSEWHERE)


def request(agent: AgentSpec, messages: Iterable[bytes], _account: Account) -> Json:
    """Return the JSON of the next request."""
    return request_body(*as_asked(agent, messages))


async def models(account: Account) -> list[str]:
    """Return the names of the server's models."""
    client = connect(account)
    try:
        return await client.models()
    finally:
        await client.retire()


PROVIDER: Final = Provider(
    name="gemini",
    capabilities=Capabilities(
        images=True,
        files=True,
        thinking=True,
        prompt_cache=True,
        json_schema=True,
        token_counter=True,
    ),
    make=make,
    request=request,
    endpoint=Endpoint(
        url="https://generativelanguage.googleapis.com",
        url_variable="GEMINI_BASE_URL",
        key_variable="GEMINI_API_KEY",
        secret_variables=("GOOGLE_API_KEY",),
    ),
    default_model="gemini-3.8-flash",
    looked_up="2026-11-24",
    model_variable="GEMINI_MODEL",
    check=check,
    models=models,
    prices="google",
)
