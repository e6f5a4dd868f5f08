"""The time limits of replies, and the parameters of an agent that are not sent to the vendor."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError

from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec
from cueline.events.fact import Time

CONNECT_SECONDS: Final = 10.0
REST_SECONDS: Final = 2.0
"""The wait for data that a gateway may send after a whole reply, for example the usage."""
TOTAL_SECONDS: Final = 600.0
CHUNK_SECONDS: Final = 60.0
COUNT_SECONDS: Final = 2.0
"""The longest wait for a token count; without one, the bytes are counted."""
LIST_SECONDS: Final = 20.0
"""The longest wait for a list of models."""
SECONDS: Final = {"timeout_seconds": TOTAL_SECONDS, "chunk_timeout_seconds": CHUNK_SECONDS}
"""cueline's own parameters: they limit the wait, and are not sent."""
TOOL_PROTOCOL: Final = "tool_protocol"
TOOL_PROTOCOLS: Final = ("native", "prompt")
"""The ways to call tools; `prompt` describes them in the instructions, for calls in the text."""
OWN: Final = frozenset({*SECONDS, TOOL_PROTOCOL})
"""All parameters that are cueline's own, and not sent."""
_TIME: Final = TypeAdapter[float](Annotated[Time, Field(gt=0)])

ELSEWHERE: Final = {
    "max_tokens": "use limits.max_output_tokens",
    "messages": "cueline makes them",
    "model": "use model",
    "stream": "cueline always streams",
    "system": "use instructions",
    "tools": "use tools",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The time limits of a reply, in seconds."""

    total: float = TOTAL_SECONDS
    chunk: float = CHUNK_SECONDS
    """The longest time between two pieces of the reply."""

    @property
    def of_a_count(self) -> "Patience":
        """The longest time for a count of a prompt."""
        return Patience(total=min(self.total, COUNT_SECONDS), chunk=min(self.chunk, COUNT_SECONDS))


def check_parameters(
    agent: AgentSpec, *, prompts: bool = False, elsewhere: Mapping[str, str] | None = None
) -> None:
    """Check the parameters of *agent* that are not passed on unchanged.

    Args:
        agent: the agent.
        prompts: whether the provider can describe tools in the instructions.
        elsewhere: what to do instead of setting a parameter of these names.

    Raises:
        ConfigError: move or correct the parameter that it names.
    """
    for name, instead in {**ELSEWHERE, **(elsewhere or {})}.items():
        if name in agent.parameters:
            raise ConfigError(f"parameters.{name}", f"is not set here: {instead}")
    for name in SECONDS:
        value = agent.parameters.get(name, 1)
        try:
            _TIME.validate_python(value)
        except ValidationError:
            raise ConfigError(f"parameters.{name}", f"is {value!r}, not seconds above 0") from None
    protocol = agent.parameters.get(TOOL_PROTOCOL, TOOL_PROTOCOLS[0])
    if TOOL_PROTOCOL in agent.parameters and not prompts:
        why = f"is not for {agent.provider}, whose models have tools of their own; leave it out"
        raise ConfigError(f"parameters.{TOOL_PROTOCOL}", why)
    if protocol not in TOOL_PROTOCOLS:
        why = f"is {protocol!r}, neither {' nor '.join(map(repr, TOOL_PROTOCOLS))}"
        raise ConfigError(f"parameters.{TOOL_PROTOCOL}", why)


def patience_of(agent: AgentSpec, usual: Mapping[str, float] = SECONDS) -> Patience:
    """Return the time limits of a reply, else the *usual* ones; the parameters were checked."""
    total, chunk = (agent.parameters.get(name, usual[name]) for name in SECONDS)
    return Patience(total=_TIME.validate_python(total), chunk=_TIME.validate_python(chunk))
