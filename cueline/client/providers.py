"""Lists the providers that are known here, with their abilities and keys."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from cueline.config.environment import HERE, user_name
from cueline.config.settings import Settings
from cueline.errors import ConfigError, ProviderUnavailableError
from cueline.events.agent import AgentSpec
from cueline.providers.account import account_of, needs_key_at, url_of
from cueline.providers.defaults import default_model, key_source
from cueline.providers.patience import LIST_SECONDS
from cueline.providers.provider import Capabilities, Provider
from cueline.providers.registry import known_providers, provider_named


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRow:
    """One provider."""

    name: str
    needs_key: bool = False
    key: str = ""
    """The source of the provider's key: `stored`, `stored for USER`, a variable; empty: no key."""
    key_variable: str = ""
    """The environment variable for the provider's key; empty: the provider needs no key."""
    model: str = ""
    """The default model; empty: agents have to name a model."""
    looked_up: str = ""
    """The day on which `model` was looked up; empty: a variable names it, or there is no model."""
    base_url: str = ""
    """The address of the provider's server; empty: the provider is not called over a network."""
    capabilities: Capabilities | None = None
    """The abilities; None: the provider cannot be loaded."""
    problem: str = ""
    """The reason why the provider cannot be used, apart from a missing key."""


SettingsOf = Callable[[str], Settings]
"""Returns the settings of the agents of a provider."""


def _defaults(_: str) -> Settings:
    return Settings()


def provider_rows(
    environ: Mapping[str, str] = HERE, user: str | None = None, settings_of: SettingsOf = _defaults
) -> tuple[ProviderRow, ...]:
    """Return all providers for *user*, cueline's own first; None is the current user."""
    who = user or user_name()
    return tuple(_row(name, environ, who, settings_of) for name in known_providers())


def _row(name: str, environ: Mapping[str, str], user: str, settings_of: SettingsOf) -> ProviderRow:
    try:
        provider = provider_named(name)
    except ConfigError as error:
        return ProviderRow(name=name, problem=error.reason)
    endpoint, problem, base_url, key = provider.endpoint, "", "", ""
    if endpoint is not None:
        try:
            asking = _asking(provider, user, settings_of)
            base_url = url_of(endpoint, asking, environ)
            key = key_source(provider, environ, user)
            if own := asking.key_variable:
                key = own if environ.get(own) else ""
        except ConfigError as error:
            problem = str(error)
    model = default_model(provider, environ)
    return ProviderRow(
        name=name,
        needs_key=endpoint is not None and needs_key_at(endpoint, base_url),
        key=key,
        key_variable="" if endpoint is None else endpoint.key_variable,
        model=model,
        looked_up=provider.looked_up if model == provider.default_model else "",
        base_url=base_url,
        capabilities=provider.capabilities,
        problem=problem,
    )


async def models_of(
    name: str,
    environ: Mapping[str, str] = HERE,
    *,
    seconds: float = LIST_SECONDS,
    settings_of: SettingsOf = _defaults,
) -> list[str]:
    """Return the names of the models from a provider's server.

    Raises:
        ConfigError: the provider is unknown, has no list of models, or has no key.
        ProviderUnavailableError: the server does not answer; try again.
        ProviderRefusedError: the server refuses.
    """
    provider = provider_named(name)
    if provider.endpoint is None or provider.models is None:
        raise ConfigError(name, "has no list of models that can be asked for")
    account = account_of(provider.endpoint, _asking(provider, user_name(), settings_of), environ)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await provider.models(account)
    raise ProviderUnavailableError(
        "timeout", f"{account.base_url} has not answered in {seconds:g} s"
    )


def _asking(provider: Provider, user: str, settings_of: SettingsOf) -> AgentSpec:
    settings = settings_of(provider.name)
    return AgentSpec(
        name=provider.name,
        provider=provider.name,
        model="",
        key_owner=user,
        base_url=settings.base_url,
        key_variable=settings.key_variable,
        headers=settings.headers,
    )
