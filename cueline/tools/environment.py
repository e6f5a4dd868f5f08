"""What a tool may see of its runner's environment."""

import re
from collections.abc import Collection, Mapping

OURS = re.compile(r"RAY_.*|CUELINE_.*|PYTHONBREAKPOINT|OMP_NUM_THREADS", re.IGNORECASE)
"""The way into the cluster, and what Ray sets for its own workers."""
CREDENTIAL = re.compile(
    r"(?!(OLD)?PWD$).*(PASS|PWD|TOKEN|SECRET|KEY|CREDENTIAL).*"
    r"|(.*_)?(PAT|DSN)|(.*_)?(DATABASE|DB|POSTGRES|MYSQL|MONGO|MONGODB|REDIS|AMQP)_UR[IL]",
    re.IGNORECASE,
)
"""What the name of a variable looks like that holds a key, or a password in an address."""


def scrub_environment(
    environment: Mapping[str, str], secrets: Collection[str] = (), passed: Collection[str] = ()
) -> dict[str, str]:
    """Return *environment* without *secrets* and what no tool sees unless it is *passed* on."""
    return {
        name: value
        for name, value in environment.items()
        if name in passed or not (name in secrets or _is_hidden(name))
    }


def _is_hidden(name: str) -> bool:
    return OURS.fullmatch(name) is not None or CREDENTIAL.fullmatch(name) is not None
