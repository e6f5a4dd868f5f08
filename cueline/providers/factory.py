"""Creates the model of an agent, by the name of its provider.

A wrong setting, file or variable raises `ConfigError`, which names it.
"""

import hmac
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from cueline.actors.model_port import Model, ModelFactory
from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec, Fallback, each_model
from cueline.providers.account import NOWHERE, Account, account_of
from cueline.providers.provider import Pause
from cueline.providers.registry import provider_named


class NamesModels(Protocol):
    """An agent or settings with a model."""

    @property
    def provider(self) -> str | None:
        """The provider's name."""

    @property
    def model(self) -> str | None:
        """The provider's name for the model."""

    @property
    def fallback(self) -> tuple[Fallback, ...]:
        """The other models."""


def account_for(agent: AgentSpec, environ: Mapping[str, str]) -> Account:
    """Return the account that *agent* uses."""
    provider = provider_named(agent.provider)
    provider.check(agent)
    if provider.endpoint is None:
        return NOWHERE
    return account_of(provider.endpoint, agent, environ)


def model_factory(environ: Mapping[str, str], pause: Pause) -> ModelFactory:
    """Return a factory whose models share connections, one for each key and address.

    A client takes 30 ms and megabytes; a host has thousands of sessions.
    """
    shared: dict[tuple[str, Account], Model] = {}

    def make(agent: AgentSpec) -> Model:
        account = account_for(agent, environ)
        named = agent.provider, account
        if named not in shared:
            shared[named] = provider_named(agent.provider).make(account, pause)
        return shared[named]

    return make


def check_agent(agent: AgentSpec, environ: Mapping[str, str]) -> None:
    """Check *agent* and its fallbacks before anything is recorded.

    A model that the vendor does not have fails only at the first call.
    """
    make = model_factory(environ, never)
    for asking in each_model(agent):
        make(asking)


def check_recorded_agent(agent: AgentSpec, environ: Mapping[str, str]) -> None:
    """Check that at least one of a recorded agent's models can be used here."""
    make = model_factory(environ, never)
    lacking: list[ConfigError] = []
    for asking in each_model(agent):
        try:
            make(asking)
        except ConfigError as error:
            lacking.append(error)
        else:
            return
    if lacking:
        raise lacking[0]


def retirements(agent: NamesModels) -> Iterator[str]:
    """Yield a text for each model of *agent* that its vendor retires."""
    asking: list[NamesModels | Fallback] = [agent, *agent.fallback]
    for provider, model in dict.fromkeys((each.provider, each.model) for each in asking):
        if not provider or not model:
            continue
        if (day := provider_named(provider).ends_on(model)) is not None:
            yield f"{provider} ends the model {model} on {day}; name another as `model`"


async def never(_seconds: float) -> None:
    """Replace the clock's pause if no model is called."""


def account_names(environ: Mapping[str, str], *, salt: str) -> Callable[[AgentSpec], str]:
    """Return a function that names an agent's provider account: the same for equal key and address.

    The name is a short digest, salted by the log: it reveals no key, nor that two logs use
    the same key.
    """

    def name(agent: AgentSpec) -> str:
        try:
            account = account_for(agent, environ)
        except ConfigError:
            return ""  # the first call raises this error, and records it
        if account is NOWHERE:
            return ""
        sent = [account.key, *(value for _, value in account.headers)]
        told = "\n".join([account.base_url, *(each.get_secret_value() for each in sent)]).encode()
        return hmac.new(salt.encode(), told, "sha256").hexdigest()[:8]

    return name
