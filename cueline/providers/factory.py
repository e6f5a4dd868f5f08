"""Creates the model of an agent by the name of its provider."""

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
    """An agent or settings with a model."""

    @property
    def provider(self) -> str | None:
        """The provider's name."""
        ...

    @property
    def model(self) -> str | None:
        """The provider's name for the model."""
        ...

    @property
    def fallback(self) -> tuple[Fallback, ...]:
        """The other models."""
        ...


def known_providers() -> tuple[str, ...]:
    """Return the names of all providers."""
    return (ANTHROPIC, SCRIPTED)


def model_factory(environ: Mapping[str, str], pause: Pause) -> ModelFactory:
    """Return a factory whose models share connections, one for each key and address.

    A client takes 30 ms and megabytes; a host has thousands of sessions.
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
    """Check *agent* and its fallbacks before anything is recorded.

    Whether the vendor has the model shows only at the first call.

    Raises:
        ConfigError: correct the setting, file or variable that it names.
    """
    make = model_factory(environ, never)
    for asking in each_model(agent):
        make(asking)


def check_recorded_agent(agent: AgentSpec, environ: Mapping[str, str]) -> None:
    """Check that at least one of a recorded agent's models can be used here.

    Raises:
        ConfigError: none can; it names what the agent's own model lacks.
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
    """Yield a text for each model of *agent* that its vendor retires."""
    asking: list[NamesModels | Fallback] = [agent, *agent.fallback]
    named = dict.fromkeys((each.provider, each.model) for each in asking)
    for provider, model in named:
        if provider == ANTHROPIC and model is not None and (day := end_of(model)) is not None:
            yield f"{provider} ends the model {model} on {day}; name another as `model`"


async def never(_seconds: float) -> None:
    """Stand in for a clock where no model is called."""


def account_names(environ: Mapping[str, str], *, salt: str) -> Callable[[AgentSpec], str]:
    """Return a function that names an agent's provider account: the same for equal key and address.

    The name is a short digest, salted by the log: it reveals no key, nor that two logs use
    the same one.
    """

    def name(agent: AgentSpec) -> str:
        if agent.provider != ANTHROPIC:
            return ""
        try:
            account = account_of(agent, environ)
        except ConfigError:
            return ""  # the first call fails with this, and is recorded
        told = f"{account.base_url}\n{account.key.get_secret_value()}".encode()
        return hmac.new(salt.encode(), told, "sha256").hexdigest()[:8]

    return name
