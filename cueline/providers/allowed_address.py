"""What an agent's file may have sent, and where: to its vendor, this machine, or where allowed."""

from collections.abc import Collection, Mapping
from typing import Protocol

from cueline.address import is_of_this_machine
from cueline.errors import ConfigError
from cueline.events.header import variables_in
from cueline.providers.registry import DEFAULT, provider_named


class SendsKey(Protocol):
    """A model of an agent."""

    @property
    def provider(self) -> str | None:
        """The provider's name; None for the default provider."""

    @property
    def base_url(self) -> str | None:
        """The address; None for the provider's usual one."""

    @property
    def key_variable(self) -> str | None:
        """The variable with the key; None for the provider's usual one."""

    @property
    def headers(self) -> Mapping[str, str]:
        """What is sent beside it, with the names of variables."""


def check_allowed(asking: SendsKey, allowed: Collection[str], *, file: str) -> None:
    """Raise if a *file* sends a key to an address that a person has not *allowed*.

    Raises:
        ConfigError: allow the address, or correct the file.
    """
    url = asking.base_url
    if url is None or is_of_this_machine(url):
        return
    endpoint = provider_named(asking.provider or DEFAULT).endpoint
    vendor = () if endpoint is None else (endpoint.url,)
    if url.rstrip("/") in {each.rstrip("/") for each in (*allowed, *vendor)}:
        return
    key = f"the value of {asking.key_variable}" if asking.key_variable else "the provider's key"
    raise ConfigError(
        file,
        f"key 'base_url': it has {key} sent to {url}; if you trust that address, allow it with "
        f"--allow-base-url {url}, or in cueline.toml with allow_base_urls",
    )


def check_variables(asking: SendsKey, allowed: Collection[str], *, file: str) -> None:
    """Raise if a *file* sends a variable that neither its provider names nor a person *allowed*.

    Raises:
        ConfigError: allow the variable, or correct the file.
    """
    named = [("key_variable", asking.key_variable)] if asking.key_variable else []
    named += (("headers", each) for each in variables_in(asking.headers))
    for key, name in named:
        endpoint = provider_named(asking.provider or DEFAULT).endpoint
        if name not in {*allowed, *(() if endpoint is None else endpoint.variables)}:
            raise ConfigError(
                file,
                f"key {key!r}: it has the value of {name} sent to a provider; if it may be, name "
                "it in CUELINE_ALLOW_KEY_VARIABLES, or in your settings with allow_key_variables",
            )
