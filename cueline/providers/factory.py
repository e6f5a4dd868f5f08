"""The model of an agent, by the name of its provider."""

import hmac
from collections.abc import Callable, Mapping

from cueline.actors.model import Model, ModelFactory
from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec, each_model
from cueline.providers.anthropic.model import Account, AnthropicModel, account_of
from cueline.providers.prices import SCRIPTED
from cueline.providers.scripted import Pause, ScriptedModel, script_of

ANTHROPIC = "anthropic"


def known_providers() -> tuple[str, ...]:
    """Return the names an agent may give as its provider."""
    return (ANTHROPIC, SCRIPTED)


def model_factory(environ: Mapping[str, str], pause: Pause) -> ModelFactory:
    """Return a factory whose models share connections, one for each key and address.

    A client of its own takes 30 ms and megabytes; a host has thousands of sessions.
    """
    shared: dict[Account, AnthropicModel] = {}

    def make(agent: AgentSpec) -> Model:
        match agent.provider:
            case "scripted":
                return ScriptedModel(script_of(agent), pause)
            case "anthropic":
                account = account_of(agent, environ)
                return shared.setdefault(account, AnthropicModel(account))
            case unknown:
                known = ", ".join(known_providers())
                raise ConfigError("provider", f"{unknown!r} is unknown; known are {known}")

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
