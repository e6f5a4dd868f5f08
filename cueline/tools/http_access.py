"""What the HTTP tools of an agent may reach: the rules of its file, and the check of addresses.

Every address of a name is checked, and the connection goes to a checked address. So a second
answer of the DNS changes nothing.
"""

import asyncio
import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator, Field

from cueline.errors import ToolFailedError
from cueline.events.fact import Part, Whole

if TYPE_CHECKING:
    import httpx2

_PORTS: Final = {"http": 80, "https": 443}
_HOST: Final = r"(?:\*\.)?[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]"
_RULE: Final = re.compile(rf"(?:(https?)://)?(\*|{_HOST})(?::(\d+))?")
_PLACE: Final = re.compile(rf"(?!\*)({_HOST})(?::(\d+))?")
_UNICAST: Final = ip_network("2000::/3")
"""The only addresses of IPv6 that are public; some parts of them are not."""
_NAT64: Final = ip_network("64:ff9b::/96")
_NOT_PUBLIC: Final = tuple(map(ip_network, ("168.63.129.16", "192.0.0.0/24", "192.88.99.0/24")))
"""Addresses that `ipaddress` counts as global: metadata services of clouds, and old relays."""

Address = IPv4Address | IPv6Address


def _rule(text: str) -> str:
    if _RULE.fullmatch(text) is None:
        form = "api.example.com, *.example.com, example.com:8443 or http://example.com"
        raise ValueError(f"{text!r} is no rule for a host; write it as {form}")
    return text


def _place(text: str) -> str:
    if _PLACE.fullmatch(text) is None:
        raise ValueError(f"{text!r} is no host; write it as 10.1.2.3, [fd00::1] or localhost:8080")
    return text


class HttpAccess(Part):
    """What the tools `http_get` and `http_request` of an agent may reach."""

    allow: tuple[Annotated[str, AfterValidator(_rule)], ...] | None = None
    """The hosts that calls may name; None: all, but each call needs an approval."""
    private: tuple[Annotated[str, AfterValidator(_place)], ...] = ()
    """The hosts, perhaps with a port, that may have an address that is not public."""
    max_bytes: Whole = Field(default=1_000_000, ge=1, le=50_000_000)
    """The most bytes of an answer that are read."""

    def check(self, url: "httpx2.URL") -> None:
        """Raise if no call may name *url*.

        Raises:
            ToolFailedError: the message says what is wrong, and what is allowed.
        """
        if url.scheme not in _PORTS or not url.host:
            raise refusal(f"{url} is no address of http or https")
        if url.userinfo:
            why = "has a user or a password in it, which would be recorded; use a header"
            raise refusal(f"the address of {host_of(url)} {why}")
        if self.allow is not None and not any(_matches(rule, url) for rule in self.allow):
            known = ", ".join(self.allow) or "nothing"
            port = "" if url.port is None else f":{url.port}"
            raise refusal(
                f"{url.scheme}://{host_of(url)}{port} is not allowed here; allowed is {known}"
            )

    async def addresses_of(self, url: "httpx2.URL") -> list[str]:
        """Resolve the host of *url* once, and return its addresses, all of them checked.

        Raises:
            ToolFailedError: there is none, or one of them is not public and not allowed.
        """
        fix = '[http] private = ["{where}"]'
        return await checked_addresses(host_of(url), port_of(url), private=self.private, fix=fix)


async def checked_addresses(
    host: str, port: int, *, private: Sequence[str] = (), fix: str
) -> list[str]:
    """Resolve *host* once, and return its addresses, all of them public or among *private*.

    Raises:
        ToolFailedError: there is none, or one is neither; the message has *fix*, which may name
            the address as `{where}` and the `{port}`.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port)
    except (OSError, OverflowError, UnicodeError) as error:
        raise ToolFailedError("network", f"{host} has no address: {error}") from None
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    for address in map(ip_address, addresses):
        if not (is_public(address) or _is_private_allowed(private, host, port, address)):
            named = f"{host} is {address}, which" if host != str(address) else f"{host}"
            where = f"[{address}]" if address.version == 6 else f"{address}"  # noqa: PLR2004 - IPv6
            allowing = f"allow it in the agent's file: {fix.format(where=where, port=port)}"
            raise refusal(f"{named} is no public address; a person can {allowing}")
    return addresses


def _is_private_allowed(private: Sequence[str], host: str, port: int, address: Address) -> bool:
    for place in private:
        found = _PLACE.fullmatch(place)
        assert found is not None, "the form was checked"
        named = found[1].strip("[]").lower().rstrip(".")
        if found[2] in (None, str(port)) and (named == host or _is_address(named, address)):
            return True
    return False


def _matches(rule: str, url: "httpx2.URL") -> bool:
    found = _RULE.fullmatch(rule)
    assert found is not None, "the form was checked"
    scheme, named, port = found[1] or "https", found[2].strip("[]").lower().rstrip("."), found[3]
    host = host_of(url)
    fits = named in ("*", host) or (named.startswith("*.") and host.endswith(named[1:]))
    return fits and scheme == url.scheme and int(port or _PORTS[scheme]) == port_of(url)


def _is_address(text: str, address: Address) -> bool:
    try:
        return ip_address(text) == address
    except ValueError:
        return False


def host_of(url: "httpx2.URL") -> str:
    """Return the host as the DNS knows it: in ASCII, without a dot at its end."""
    return url.raw_host.decode().lower().rstrip(".")


def port_of(url: "httpx2.URL") -> int:
    """Return the port of *url*, or the usual one of its scheme."""
    return url.port or _PORTS[url.scheme]


def is_public(address: Address) -> bool:
    """Whether *address* belongs to a machine that anybody can reach.

    An address of IPv6 that stands for one of IPv4 is judged by that one.
    """
    if isinstance(address, IPv4Address):
        apart = address.is_multicast or any(address in each for each in _NOT_PUBLIC)
        return address.is_global and not apart
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    if address in _NAT64:
        return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
    tunnelled = address.sixtofour is not None or address.teredo is not None
    return address in _UNICAST and address.is_global and not tunnelled


def refusal(reason: str) -> ToolFailedError:
    """Return the error for the model."""
    return ToolFailedError("tool_error", reason)
