"""Addresses of providers: whether they are of this machine, and who else reads what is sent."""

import re
from typing import Final

# Without user and password, because the address is recorded.
URL: Final = re.compile(r"(https?)://([\w.-]+|\[[\da-fA-F:]+\])(:\d+)?(/[^\s?#]*)?(\?[^\s#]*)?")
_LOOPBACK: Final = re.compile(r"localhost|127(\.\d{1,3}){3}|\[::1\]")


def is_of_this_machine(url: str) -> bool:
    """Whether requests to *url* stay on this machine."""
    matched = URL.fullmatch(url)
    return matched is not None and _LOOPBACK.fullmatch(matched[2]) is not None


def is_readable_on_the_way(url: str) -> bool:
    """Whether others on the network can read requests to *url*."""
    return not url.startswith("https://") and not is_of_this_machine(url)
