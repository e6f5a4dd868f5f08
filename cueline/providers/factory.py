"""The model of an agent, by the name of its provider."""

import hmac
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from cueline.actors.model_port import Model, ModelFactory
from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec, Fallback, each_model
from cueline.providers.anthropic.model import AnthropicAccount, AnthropicModel, account_of, end_of
from cueline.providers.prices import SCRIPTED
from cueline.providers.scripted import Pause, ScriptedModel, script_of
from cueline.suggestion import known_instead

ANTHROPIC = "anthropic"


class NamesModels(Protocol):
    """An agent, as its author writes it or as it is recorded, or the settings."""

    @property
    def provider(self) -> str | None:
        """Who has its model."""
        ...

    @property
    def model(self) -> str | None:
        """The provider's name for it."""
        ...

    @property
    def fallback(self) -> tuple[Fallback, ...]:
        """Its other models."""
        ...


def known_providers() -> tuple[str, ...]:
    """Return the names an agent may give as its provider."""
    return (ANTHROPIC, SCRIPTED)


def model_factory(environ: Mapping[str, str], pause: Pause) -> ModelFactory:
    """Return a factory whose models share connections, one for each key and address.

    A client of its own takes 30 ms and megabytes; a host has thousands of sessions.
    """
    shared: dict[AnthropicAccount, AnthropicModel] = {}

    def make(agent: AgentSpec) -> Model:
        match agent.provider:
            case "scripted":
                return ScriptedModel(script_of(agent), pause)
            case "anthropic":
                account = account_of(agent, environ)
                return shared.setdefault(account, AnthropicModel(account))
            case unknown:
                known = known_instead(unknown, known_providers())
                raise ConfigError("provider", f"{unknown!r} is unknown{known}")

    return make


def check_agent(agent: AgentSpec, environ: Mapping[str, str]) -> None:
    """Check *agent*, and whoever it falls back to, before anything of it is recorded.

    Whether the vendor has the model shows only when it is asked.

    Raises:
        ConfigError: mend the setting, file or variable it names.
    """
    make = model_factory(environ, never)
    for asking in each_model(agent):
        make(asking)


def check_recorded_agent(agent: AgentSpec, environ: Mapping[str, str]) -> None:
    """Check that a session can go on here: one of the agent's models will do.

    Raises:
        ConfigError: none will; mend what it names, which its own model lacks.
    """
    make = model_factory(environ, never)
    lacking: list[ConfigError] = []
    for asking in each_model(agent):
        try:
            make(asking)
        except ConfigError as error:
            lacking.append(error)
        else:
            return
    raise lacking[0]


def retirements(agent: NamesModels) -> Iterator[str]:
    """Say of each of the models of *agent* that its vendor ends when that will be."""
    asking: list[NamesModels | Fallback] = [agent, *agent.fallback]
    named = dict.fromkeys((each.provider, each.model) for each in asking)
    for provider, model in named:
        if provider == ANTHROPIC and model is not None and (day := end_of(model)) is not None:
            yield f"{provider} ends the model {model} on {day}; name another as `model`"


async def never(_seconds: float) -> None:
    """Stand in for a clock where no model is asked."""


def account_names(environ: Mapping[str, str], *, salt: str) -> Callable[[AgentSpec], str]:
    """Return what names whose key an agent uses: the same for the same key and address.

    It is a short digest, salted by the log: nobody learns a key from it, nor
    that two logs use the same one.
    """

    def name(agent: AgentSpec) -> str:
        if agent.provider != ANTHROPIC:
            return ""
        try:
            account = account_of(agent, environ)
        except ConfigError:
            return ""  # the first call says so, and is recorded as having failed
        told = f"{account.base_url}\n{account.key.get_secret_value()}".encode()
        return hmac.new(salt.encode(), told, "sha256").hexdigest()[:8]

    return name
