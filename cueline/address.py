"""Addresses to which a provider's key may be sent: its vendor, this machine, allowed ones."""

import re
from collections.abc import Collection
from typing import Final, Protocol

from cueline.errors import ConfigError

VENDORS: Final = {"anthropic": "https://api.anthropic.com"}
"""The address of each provider's vendor."""
# Without user and password, because the address is recorded.
URL: Final = re.compile(r"(https?)://([\w.-]+|\[[\da-fA-F:]+\])(:\d+)?(/[^\s?#]*)?")
_LOOPBACK: Final = re.compile(r"localhost|127(\.\d{1,3}){3}|\[::1\]")


def is_of_this_machine(url: str) -> bool:
    """Whether requests to *url* stay on this machine."""
    matched = URL.fullmatch(url)
    return matched is not None and _LOOPBACK.fullmatch(matched[2]) is not None


def is_readable_on_the_way(url: str) -> bool:
    """Whether others on the network can read requests to *url*."""
    return not url.startswith("https://") and not is_of_this_machine(url)


class SendsKey(Protocol):
    """A model of an agent."""

    @property
    def provider(self) -> str:
        """The provider's name."""
        ...

    @property
    def base_url(self) -> str | None:
        """The address; None for the provider's usual one."""
        ...

    @property
    def key_variable(self) -> str | None:
        """The variable with the key; None for the provider's usual one."""
        ...


def check_allowed(asking: SendsKey, allowed: Collection[str], *, file: str) -> None:
    """Raise if a *file* sends a key to an address that a person has not *allowed*.

    Raises:
        ConfigError: allow the address, or correct the file.
    """
    url = asking.base_url
    known = {each.rstrip("/") for each in (*allowed, VENDORS.get(asking.provider, ""))}
    if url is None or url.rstrip("/") in known or is_of_this_machine(url):
        return
    key = f"the value of {asking.key_variable}" if asking.key_variable else "the provider's key"
    raise ConfigError(
        file,
        f"key 'base_url': it has {key} sent to {url}; if you trust that address, allow it with "
        f"--allow-base-url {url}, or in cueline.toml with allow_base_urls",
    )
