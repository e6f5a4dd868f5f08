"""Anthropic, and servers with its protocol."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec
from cueline.providers.account import Account, Endpoint
from cueline.providers.anthropic.request import PROMPT_CACHE, Json, request_body
from cueline.providers.lazy_model import CountingModel, names_of_models
from cueline.providers.patience import check_parameters
from cueline.providers.provider import Capabilities, Provider

CLIENT: Final = "cueline.providers.anthropic.connection:AnthropicClient"


def request(agent: AgentSpec, messages: Iterable[bytes], account: Account) -> Json:
    """Return the JSON of the next request."""
    return request_body(agent, messages, is_vendor=account.is_vendor)


def end_of(model: str) -> str | None:
    """Return the day on which the vendor retires *model*, as text; None if the SDK knows none."""
    from anthropic.resources.messages import DEPRECATED_MODELS  # noqa: PLC0415 - it is slow

    return DEPRECATED_MODELS.get(model)


def check(agent: AgentSpec) -> None:
    """Check the parameters of *agent*.

    Raises:
        ConfigError: move or correct the parameter that it names.
    """
    check_parameters(agent)
    value = agent.parameters.get(PROMPT_CACHE, True)
    if not isinstance(value, bool):
        raise ConfigError(f"parameters.{PROMPT_CACHE}", f"is {value!r}, neither true nor false")


PROVIDER: Final = Provider(
    name="anthropic",
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
        url="https://api.anthropic.com",
        url_variable="ANTHROPIC_BASE_URL",
        key_variable="ANTHROPIC_API_KEY",
        secret_variables=("ANTHROPIC_AUTH_TOKEN",),
    ),
    default_model="claude-sonnet-5-5",
    looked_up="2026-11-24",
    model_variable="ANTHROPIC_MODEL",
    check=check,
    models=partial(names_of_models, CLIENT),
    ends_on=end_of,
)
