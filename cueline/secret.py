"""Which secrets of an agent are known here: only what is known can be kept out of the log (I11)."""

from collections.abc import Collection, Mapping

from cueline.environment import HERE
from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec
from cueline.events.clean import SHORTEST_SECRET
from cueline.events.inbox import SecretsWaived


def check_secrets(
    agent: AgentSpec, waived: Collection[str], environ: Mapping[str, str] = HERE
) -> None:
    """Refuse an agent of which a secret is not known here, unless a person *waived* it.

    Raises:
        ConfigError: set the variable that it names, or say that the session goes on without it.
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
    """Return what is recorded when *by* lets a session go on without the values of *names*.

    Raises:
        ConfigError: one of them is no secret of the agent.
    """
    for name in names:
        if name not in agent.secrets:
            known = ", ".join(agent.secrets) or "none"
            raise ConfigError("--without-secret", f"{name} is no secret of {agent.name}: {known}")
    return SecretsWaived(names=tuple(dict.fromkeys(names)), by=by) if names else None
