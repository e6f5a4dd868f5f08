"""What a tool may see of its runner's environment."""

import re
from collections.abc import Collection, Mapping

HIDDEN = re.compile(
    r"RAY_.*|CUELINE_.*|(.*_)?(KEY|TOKEN|SECRET|PASSWORD)|PYTHONBREAKPOINT|OMP_NUM_THREADS",
    re.IGNORECASE,
)
"""Keys, the way into the cluster, and what Ray sets for its own workers."""


def scrubbed(environment: Mapping[str, str], secrets: Collection[str] = ()) -> dict[str, str]:
    """Return *environment* without what no tool may see, and without *secrets*."""
    return {
        name: value
        for name, value in environment.items()
        if name not in secrets and HIDDEN.fullmatch(name) is None
    }
