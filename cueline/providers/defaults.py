"""Finds the provider and model of agents and settings that name none.

A provider that is unknown, has no usual model, or whose stored key cannot be used raises
`ConfigError`; the message says what to do.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from cueline.errors import ConfigError, ProviderRefusedError, ProviderUnavailableError
from cueline.events.agent import AgentSpec, Fallback, ModelChoice
from cueline.providers.account import Endpoint, account_of
from cueline.providers.key_store import KeyStore
from cueline.providers.provider import Provider
from cueline.providers.registry import DEFAULT, known_providers, provider_named

LOCAL_SECONDS = 2.0
"""The longest wait for a server without a key."""


def default_model(provider: Provider, environ: Mapping[str, str]) -> str:
    """Return the default model of a provider; empty if agents have to name a model."""
    return environ.get(provider.model_variable, "").strip() or provider.default_model


def completed(
    provider: str | None, model: str | None, environ: Mapping[str, str], user: str
) -> tuple[str, str]:
    """Return *provider* and *model*, with defaults in place of missing ones.

    A model without a provider belongs to the default provider. Without both, the provider is
    the first with a key here; the default provider comes before all others.
    """
    if provider is None:
        keyed = None if model is not None else with_key(environ, user)
        provider = DEFAULT if keyed is None else keyed.name
    if model is None and not (model := default_model(provider_named(provider), environ)):
        raise ConfigError("model", f"it is missing, and {provider} has no usual one; name one")
    return provider, model


def with_key(environ: Mapping[str, str], user: str) -> Provider | None:
    """Return the first provider that has a key here and a usual model."""
    for provider in _usable():
        if default_model(provider, environ) and key_source(provider, environ, user):
            return provider
    return None


def key_source(provider: Provider, environ: Mapping[str, str], user: str) -> str:
    """Return the source of the key of *provider* for *user*; empty without a key."""
    if provider.endpoint is None:
        return ""
    if (stored := KeyStore(environ).owner(provider.name, user)) is not None:
        return f"stored for {stored.user}" if stored.user else "stored"
    variable = provider.endpoint.variable_in(environ)
    return variable if environ.get(variable, "").strip() else ""


async def usual_model(
    environ: Mapping[str, str], user: str, *, seconds: float = LOCAL_SECONDS
) -> tuple[str, str]:
    """Return a provider and its model that can be used here.

    This is the first provider with a key, else the first server without a key that answers,
    with the model that the environment names, or the first installed model.

    Raises:
        ConfigError: there is no such provider; the message says what to set.
    """
    if (keyed := with_key(environ, user)) is not None:
        return keyed.name, default_model(keyed, environ)
    local = [each for each in _usable() if each.endpoint and not each.endpoint.needs_key]
    for provider in local:
        assert provider.endpoint is not None, "it was looked for"
        if found := await _installed(provider, provider.endpoint, environ, seconds):
            return provider.name, environ.get(provider.model_variable, "").strip() or found[0]
    usual = provider_named(DEFAULT)
    assert usual.endpoint is not None, "it is a vendor"
    ways = f"set {usual.endpoint.key_variable} or run `cueline keys set {DEFAULT}`"
    first_steps = "; ".join(each.first_steps for each in local if each.first_steps)
    raise ConfigError(
        "no model",
        "no provider has a key here, and no server that needs none answers with a model\n"
        + (f"{ways}; without a key: {first_steps}" if first_steps else ways),
    )


async def _installed(
    provider: Provider, endpoint: Endpoint, environ: Mapping[str, str], seconds: float
) -> list[str]:
    """Return the models of a server; empty if it does not answer."""
    if provider.models is None:
        return []
    asking = AgentSpec(name=provider.name, provider=provider.name, model="")
    try:
        async with asyncio.timeout(seconds):
            return await provider.models(account_of(endpoint, asking, environ))
    except (ConfigError, ProviderRefusedError, ProviderUnavailableError, TimeoutError):
        return []


def _usable() -> list[Provider]:
    """Return the providers that can be loaded, the default provider first."""
    found = []
    for name in sorted(known_providers(), key=lambda name: name != DEFAULT):
        try:
            found.append(provider_named(name))
        except ConfigError:
            continue  # `cueline providers` shows the reason
    return found


Asks = TypeVar("Asks", AgentSpec, Fallback, ModelChoice)


def find_model_file(table: object, folder: Path) -> None:
    """Make the path of a model in the *table* of a file relative to *folder*, if it is a file."""
    if not isinstance(table, dict):
        return
    provider, model = table.get("provider"), table.get("model")
    if isinstance(provider, str) and isinstance(model, str) and model and has_model_files(provider):
        table["model"] = str(folder / model)


def with_model_file(asks: Asks) -> Asks:
    """Return *asks* with the content of its model's file, so that a resume does not need the file.

    Raises:
        ConfigError: the provider is unknown, or the file cannot be used.
    """
    record = provider_named(asks.provider).record_file
    if record is None:
        return asks
    path = Path(asks.model)
    parameters = record(asks.parameters, path)
    if parameters == asks.parameters:
        return asks
    # The content is kept; its former path means nothing elsewhere.
    return asks.model_copy(update={"parameters": parameters, "model": path.name})


def has_model_files(provider: str) -> bool:
    """Whether the models of a provider are files of this machine."""
    try:
        return provider_named(provider).record_file is not None
    except ConfigError:
        return False  # the use of the provider raises the error
