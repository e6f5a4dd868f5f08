"""The address and key of a provider, as an agent and the environment give them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import SecretStr

from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec
from cueline.events.agent_parts import is_secret, problem_of, variables_in, with_values
from cueline.events.sanitize import Redactor
from cueline.providers.key_store import KeyStore

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


NO_KEY = SecretStr("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The address of a provider, and the variables with its address and key."""

    url: str
    """The vendor's own address."""
    url_variable: str
    """The environment variable with another address."""
    key_variable: str
    """The environment variable with the key."""
    other_key_variables: tuple[str, ...] = ()
    """Other variables with the key, in order of precedence after `key_variable`."""
    needs_key: bool = True
    needs_key_elsewhere: bool = True
    """Whether a server at another address also needs a key."""
    read_url: Callable[[str], str] = str
    """Converts the variable's value to an address."""
    secret_variables: tuple[str, ...] = ()
    """Other variables that may hold a secret of the provider."""

    @property
    def variables(self) -> frozenset[str]:
        """The environment variables that may hold a key or secret of the provider."""
        named = (self.key_variable, *self.other_key_variables, *self.secret_variables)
        return frozenset(named)

    def variable_in(self, environ: Mapping[str, str]) -> str:
        """Return the variable with the key; `key_variable` if none is set."""
        names = (self.key_variable, *self.other_key_variables)
        return next((name for name in names if environ.get(name, "").strip()), names[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An address and a key."""

    base_url: str
    key: SecretStr = NO_KEY
    is_vendor: bool = True
    """Whether the address is the vendor's own, not a gateway's."""
    headers: tuple[tuple[str, SecretStr], ...] = ()
    """The headers that are sent with each request."""
    secrets: tuple[SecretStr, ...] = ()
    """The values in `headers` that come from variables."""

    def url(self, path: str) -> str:
        """Return the address of *path*, with the query of `base_url`."""
        base, _, query = self.base_url.partition("?")
        return f"{base}{path}{'&' if '?' in path else '?'}{query}" if query else base + path

    def sent_headers(self, usual: Mapping[str, str]) -> dict[str, str]:
        """Return the *usual* headers and the account's headers, which take precedence."""
        own = {name.lower(): value.get_secret_value() for name, value in self.headers}
        return {name: text for name, text in usual.items() if name.lower() not in own} | own

    @property
    def redactor(self) -> Redactor:
        """The redactor that removes the account's key and secrets."""
        return Redactor([*([self.key] if self.key else []), *self.secrets])


NOWHERE = Account(base_url="")
"""The account of a provider that is not called over a network."""


def account_of(endpoint: Endpoint, agent: AgentSpec, environ: Mapping[str, str]) -> Account:
    """Return the address and the key for *agent* at *endpoint*.

    The key comes from the agent's own `key_variable`; without one, it is the stored key
    of the session's user, else that of all users, else the provider's variable (C47).
    An unneeded key is not sent over a network where others can read it.

    Raises:
        ConfigError: set the variable, or correct the setting, that it names.
    """
    base_url = url_of(endpoint, agent, environ)
    variable = agent.key_variable or endpoint.variable_in(environ)
    stored = None
    if agent.key_variable is None:
        stored = KeyStore(environ).key(agent.provider, agent.key_owner)
    key = stored or SecretStr(environ.get(variable, "").strip())
    needs_key = needs_key_at(endpoint, base_url) or agent.key_variable is not None
    if is_readable_on_the_way(base_url) and not needs_key:
        key = NO_KEY
    elif is_readable_on_the_way(base_url):
        what = f"the value of {variable}" if stored is None else f"the key of {agent.provider}"
        raise ConfigError("base_url", _would_get(base_url, what))
    if not key and needs_key:
        other = "name another variable as the agent's key_variable"
        if agent.key_variable is None:
            other = f"store it with `cueline keys set {agent.provider}`, or {other}"
        raise ConfigError(variable, f"is not set; put the key there, {other}")
    if key and not is_sendable(key):
        raise ConfigError(variable, "holds characters that no key has; set it again")
    secrets = header_secrets(agent, base_url, environ)
    headers = with_values(agent.headers, secrets)
    return Account(
        base_url=base_url,
        key=key,
        is_vendor=base_url.partition("?")[0] == endpoint.url,
        headers=tuple((name, SecretStr(text)) for name, text in headers.items()),
        secrets=tuple(map(SecretStr, secrets.values())),
    )


def header_secrets(agent: AgentSpec, base_url: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the variables in the agent's headers, by name."""
    if problem := problem_of(agent.headers):
        raise ConfigError("headers", problem)
    values = {name: environ.get(name, "").strip() for name in variables_in(agent.headers)}
    for name, value in values.items():
        if is_readable_on_the_way(base_url):
            raise ConfigError("base_url", _would_get(base_url, f"the value of {name}"))
        if not is_sendable(SecretStr(value)):
            raise ConfigError(name, "is not set, or no header can hold it; `headers` names it")
    return values


def _would_get(base_url: str, what: str) -> str:
    fix = "use https, or an address of this machine"
    return f"{base_url!r} would get {what} over a network, readable; {fix}"


def needs_key_at(endpoint: Endpoint, base_url: str) -> bool:
    """Whether the server at *base_url* needs a key."""
    return endpoint.needs_key and (base_url == endpoint.url or endpoint.needs_key_elsewhere)


def is_sendable(key: SecretStr) -> bool:
    """Whether a header can contain *key*; an error would quote other characters."""
    return re.fullmatch(r"[!-~]+", key.get_secret_value()) is not None


def url_of(endpoint: Endpoint, agent: AgentSpec, environ: Mapping[str, str]) -> str:
    """Return the address of *agent*: its own, else the environment's, else the vendor's.

    Raises:
        ConfigError: the address is not valid.
    """
    named = environ.get(endpoint.url_variable, "").strip()
    base_url = agent.base_url or (endpoint.read_url(named) if named else endpoint.url)
    if not URL.fullmatch(base_url):
        shown = re.sub("//[^/]*@", "//…@", base_url)
        raise ConfigError("base_url", f"{shown!r} is not http(s)://host[:port][/path][?query]")
    path, mark, query = base_url.partition("?")
    for name in filter(is_secret, re.findall(r"(?:^|&)([^=&]+)", query)):
        why = f"has {name!r} in its query, which is recorded; send it in `headers`"
        raise ConfigError("base_url", why)
    return f"{path.rstrip('/')}{mark}{query}"
