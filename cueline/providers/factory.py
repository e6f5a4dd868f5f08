"""The model of an agent, by the name of its provider."""

from collections.abc import Mapping

from cueline.actors.model import Model, ModelFactory
from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec
from cueline.events.message import Usage
from cueline.providers.anthropic.model import Account, AnthropicModel, account_of
from cueline.providers.prices import SCRIPTED, cost_of
from cueline.providers.scripted import Pause, ScriptedModel, script_of

ANTHROPIC = "anthropic"


def known_providers() -> tuple[str, ...]:
    """Return the names an agent may give as its provider."""
    return (ANTHROPIC, SCRIPTED)


def make_model(agent: AgentSpec, environ: Mapping[str, str], pause: Pause) -> Model:
    """Return a model for *agent*; it connects when it is first asked.

    Raises:
        ConfigError: mend the setting, file or variable it names.
    """
    return model_factory(environ, pause)(agent)


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


def check_agent(agent: AgentSpec, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Check *agent* before anything of it is recorded, and return what to warn of.

    Whether the vendor has the model shows only when it is asked.

    Raises:
        ConfigError: mend the setting, file or variable it names.
    """
    make_model(agent, environ, never)
    if cost_of(agent.model, Usage(), agent.provider) is None:
        return (f"{agent.model}: no price is known, its cost will not be counted",)
    return ()


async def never(_seconds: float) -> None:
    """Stand in for a clock where no model is asked."""
