"""The known providers by name: cueline's own, and those of installed packages."""

from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from cueline.errors import ConfigError
from cueline.errors.suggestion import known_instead
from cueline.providers.provider import Provider

GROUP: Final = "cueline.providers"
DEFAULT: Final = "anthropic"
"""The provider of agents that name none."""
OWN: Final = ("anthropic", "gemini", "ollama", "openai", "replay", "scripted")
"""Cueline's own providers, which run no code from an agent's folder."""


@cache
def _entries() -> dict[str, EntryPoint]:
    """Return the entry point of each provider; cueline's own take precedence."""
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    own = {
        name: EntryPoint(name, f"cueline.providers.{name}.provider:PROVIDER", GROUP) for name in OWN
    }
    return {**found, **own}


def known_providers() -> tuple[str, ...]:
    """Return the names of all providers, cueline's own first."""
    return (*OWN, *sorted(_entries().keys() - set(OWN)))


@cache
def provider_named(name: str) -> Provider:
    """Return the provider of that name.

    Raises:
        ConfigError: there is no such provider, or its package is broken.
    """
    if name not in _entries():
        known = known_instead(name, known_providers())
        raise ConfigError("provider", f"{name!r} is unknown{known}")
    entry = _entries()[name]
    try:
        provider = entry.load()
    except Exception as error:
        why = f"{name!r} cannot be loaded from {entry.value}: {type(error).__name__}: {error}"
        raise ConfigError("provider", why) from error
    if not isinstance(provider, Provider):
        raise ConfigError("provider", f"{name!r}: {entry.value} is no cueline Provider")
    return provider


@cache
def secret_variables() -> frozenset[str]:
    """Return the environment variables that may hold a secret of any provider.

    A provider that cannot be loaded makes no calls, so it is skipped.
    """
    found: set[str] = set()
    for name in known_providers():
        with suppress(ConfigError):
            if (endpoint := provider_named(name).endpoint) is not None:
                found |= endpoint.variables
    return frozenset(found)


def providers() -> tuple[Provider, ...]:
    """Return all providers that can be loaded.

    Raises:
        ConfigError: the package of a provider is broken.
    """
    return tuple(map(provider_named, known_providers()))
