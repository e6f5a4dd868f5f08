"""Finds the secrets of an agent, and checks the addresses to which its file sends a key."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Protocol

from pydantic import SecretStr

from cueline.config.environment import HERE
from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec, Fallback, Policy, url_variable
from cueline.events.agent_parts import McpServer, variables_in
from cueline.events.inbox import SecretsWaived
from cueline.events.sandbox import SandboxSpec
from cueline.events.sanitize import SHORTEST_SECRET, Redactor
from cueline.providers.account import is_of_this_machine
from cueline.providers.key_store import KeyStore
from cueline.providers.registry import DEFAULT, provider_named, secret_variables
from cueline.tools.worker_protocol import CREDENTIAL

_OURS: Final = frozenset(
    {"CUELINE_ENCRYPTION_KEY", "DAYTONA_API_KEY", "RAY_AUTH_TOKEN", "RAY_SANDBOX_API_TOKEN"}
)


class KeepsSecrets(Protocol):
    """An agent with secrets, in its written or recorded form."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The environment variables whose values are never recorded."""

    @property
    def environment(self) -> tuple[str, ...]:
        """The variables that are passed to the agent's tools."""

    @property
    def key_variable(self) -> str | None:
        """The variable with the provider's key."""

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the agent's requests."""

    @property
    def fallback(self) -> tuple[Fallback, ...]:
        """The fallback models of the agent."""

    @property
    def mcp(self) -> dict[str, McpServer]:
        """The MCP servers of the agent."""

    @property
    def sandbox(self) -> SandboxSpec | None:
        """The sandbox of the agent's sessions."""

    @property
    def policy(self) -> Policy:
        """The approval policy of the agent, with hooks."""


def secret_names(agent: KeepsSecrets | None) -> set[str]:
    """Return the variables with hidden values: those of the agent and of every provider."""
    if agent is None:
        return {*_OURS, *secret_variables()}
    models: list[KeepsSecrets | Fallback] = [agent, *agent.fallback]
    keys = [each.key_variable for each in models]
    keys += [name for each in models for name in variables_in(each.headers)]
    keys += [name for server in agent.mcp.values() for name in server.variables]
    urls = (url_variable(hook) for hook in agent.policy.hooks)
    there = agent.sandbox.variables if agent.sandbox is not None else ()
    shown = filter(CREDENTIAL.fullmatch, (*agent.environment, *there))
    return {*_OURS, *secret_variables(), *agent.secrets, *shown, *filter(None, (*keys, *urls))}


def secret_values(names: Iterable[str], environ: Mapping[str, str]) -> list[SecretStr]:
    """Return the values of the variables in *names* that are set."""
    return [SecretStr(environ[name]) for name in names if environ.get(name)]


def redactor_of(agent: KeepsSecrets | None) -> Redactor:
    """Return a redactor of the agent's secrets and of all stored keys with values known here."""
    return Redactor([*secret_values(secret_names(agent), HERE), *KeyStore(HERE).secrets()])


def check_secrets(
    agent: AgentSpec, waived: Collection[str], environ: Mapping[str, str] = HERE
) -> None:
    """Raise if a secret of the agent has no value here, and no person *waived* the secret.

    Raises:
        ConfigError: set the variable that the message names, or continue without it.
    """
    for name in agent.secrets:
        if name in waived:
            continue
        length = len(environ.get(name, "").strip())
        if length < SHORTEST_SECRET:
            why = "is not set here"
            if length:
                why = f"is shorter than {SHORTEST_SECRET} characters, which occur in any text"
            ways = (
                f"set it, leave it out of `secrets`, or go on without it: --without-secret {name}"
            )
            raise ConfigError(
                name,
                f"{why}, so its value cannot be kept out of the log; "
                f"{ways} (in Python, `without_secrets`)",
            )


def waiver(agent: AgentSpec, names: Collection[str], by: str) -> SecretsWaived | None:
    """Return the message that waives the secrets *names*; None without names.

    Raises:
        ConfigError: a name is not a secret of the agent.
    """
    for name in names:
        if name not in agent.secrets:
            known = ", ".join(agent.secrets) or "none"
            raise ConfigError("--without-secret", f"{name} is no secret of {agent.name}: {known}")
    return SecretsWaived(names=tuple(dict.fromkeys(names)), by=by) if names else None


class SendsKey(Protocol):
    """A model of an agent, with the address and key of its provider."""

    @property
    def provider(self) -> str | None:
        """The provider's name; None for the default provider."""

    @property
    def base_url(self) -> str | None:
        """The address; None for the provider's usual address."""

    @property
    def key_variable(self) -> str | None:
        """The variable with the key; None for the provider's usual variable."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the model's requests, with the names of variables."""


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
    """Raise if a *file* sends a variable that its provider does not name and no person *allowed*.

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
