"""OpenAI, and servers with its protocol."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from cueline.events.agent import AgentSpec
from cueline.providers.account import Account, Endpoint
from cueline.providers.lazy_model import LazyModel, names_of_models
from cueline.providers.openai.content import Json
from cueline.providers.openai.servers import (
    DEFAULT_MODEL,
    check_server,
    dialect_of,
    end_of,
    server_of,
)
from cueline.providers.openai.servers import PROVIDER as NAME
from cueline.providers.patience import check_parameters
from cueline.providers.provider import Capabilities, Provider
from cueline.providers.tool_protocol import as_asked

CLIENT: Final = "cueline.providers.openai.connection:OpenAIClient"
ELSEWHERE: Final = {
    "input": "cueline makes it",
    "instructions": "use instructions",
    "max_completion_tokens": "use limits.max_output_tokens",
    "n": "cueline reads one answer",
    "max_output_tokens": "use limits.max_output_tokens",
    "previous_response_id": "cueline sends the whole conversation",
    "store": "cueline keeps the conversation, and the vendor does not",
}


def check(agent: AgentSpec) -> None:
    """Check the parameters of *agent*.

    Raises:
        ConfigError: move or correct the parameter that it names.
    """
    check_parameters(agent, prompts=True, elsewhere=ELSEWHERE)
    check_server(agent)


def request(agent: AgentSpec, messages: Iterable[bytes], account: Account) -> Json:
    """Return the JSON of the next request, in the dialect of the server."""
    from cueline.providers.openai.chat import chat_body
    from cueline.providers.openai.responses import responses_body

    asking, heard = as_asked(agent, messages)
    made = responses_body if dialect_of(agent, account) == "responses" else chat_body
    return made(asking, heard, server_of(agent, account))


_OTHER_VENDORS: Final = (
    *("AZURE_OPENAI", "CEREBRAS", "DEEPSEEK", "FIREWORKS", "GROQ", "LITELLM", "MISTRAL"),
    *("NVIDIA", "OPENROUTER", "PERPLEXITY", "TOGETHER", "XAI"),
)
"""The hosts of servers with this protocol."""

PROVIDER: Final = Provider(
    name=NAME,
    capabilities=Capabilities(
        images=True, files=True, thinking=True, prompt_cache=True, json_schema=True
    ),
    make=LazyModel.of(CLIENT),
    request=request,
    endpoint=Endpoint(
        url="https://api.openai.com/v1",
        url_variable="OPENAI_BASE_URL",
        key_variable="OPENAI_API_KEY",
        needs_key_elsewhere=False,
        secret_variables=tuple(f"{each}_API_KEY" for each in _OTHER_VENDORS),
    ),
    default_model=DEFAULT_MODEL,
    looked_up="2026-11-24",
    model_variable="OPENAI_MODEL",
    check=check,
    models=partial(names_of_models, CLIENT),
    ends_on=end_of,
)
