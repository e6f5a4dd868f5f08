"""Google's Gemini models."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from cueline.events.agent import AgentSpec
from cueline.providers.account import Account, Endpoint
from cueline.providers.gemini.request import Json, request_body
from cueline.providers.lazy_model import CountingModel, names_of_models
from cueline.providers.patience import check_parameters
from cueline.providers.provider import Capabilities, Provider
from cueline.providers.tool_protocol import as_asked

CLIENT: Final = "cueline.providers.gemini.connection:GeminiClient"
ELSEWHERE: Final = {
    "candidateCount": "cueline reads one answer",
    "contents": "cueline makes them",
    "maxOutputTokens": "use limits.max_output_tokens",
    "systemInstruction": "use instructions",
}


def request(agent: AgentSpec, messages: Iterable[bytes], _account: Account) -> Json:
    """Return the JSON of the next request."""
    return request_body(*as_asked(agent, messages))


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
    make=CountingModel.of(CLIENT),
    request=request,
    endpoint=Endpoint(
        url="https://generativelanguage.googleapis.com",
        url_variable="GEMINI_BASE_URL",
        key_variable="GEMINI_API_KEY",
        other_key_variables=("GOOGLE_API_KEY",),
    ),
    default_model="gemini-3.8-flash",
    looked_up="2026-11-24",
    model_variable="GEMINI_MODEL",
    check=partial(check_parameters, prompts=True, elsewhere=ELSEWHERE),
    models=partial(names_of_models, CLIENT),
    prices="google",
)
