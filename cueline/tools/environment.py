"""The environment variables that tools see."""

import re
from collections.abc import Collection, Mapping

OURS = re.compile(r"RAY_.*|CUELINE_.*|PYTHONBREAKPOINT|OMP_NUM_THREADS", re.IGNORECASE)
"""Access to the cluster, and variables that Ray sets for its workers."""
CREDENTIAL = re.compile(
    r"(?!(OLD)?PWD$).*(PASS|PWD|TOKEN|SECRET|KEY|CREDENTIAL).*"
    r"|(.*_)?(PAT|DSN)|(.*_)?(DATABASE|DB|POSTGRES|MYSQL|MONGO|MONGODB|REDIS|AMQP)_UR[IL]",
    re.IGNORECASE,
)
"""Matches names of variables that hold keys, or passwords in addresses."""


def scrub_environment(
    environment: Mapping[str, str], secrets: Collection[str] = (), passed: Collection[str] = ()
) -> dict[str, str]:
    """Return *environment* without *secrets* and credentials, except those *passed* on."""
    return {
        name: value
        for name, value in environment.items()
        if name in passed or not (name in secrets or _is_hidden(name))
    }


def _is_hidden(name: str) -> bool:
    return OURS.fullmatch(name) is not None or CREDENTIAL.fullmatch(name) is not None
