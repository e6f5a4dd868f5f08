"""Texts for the model about a call that a breaker blocked, or whose runner is gone.

The texts are recorded, so they do not change later.
"""

from cueline.events.cause import Cause


def circuit_open(cause: Cause) -> str:
    """Return the result of a call that a breaker blocked."""
    match cause.code:
        case "breaker_held":
            does = f"asks to be left alone ({cause.failure})"
        case "breaker_probing":
            does = "is tried by one call"
        case _:
            does = f"keeps failing ({cause.failure})"
    return f"circuit_open: {cause.dependency} {does}"


def runner_gone(cause: Cause) -> str:
    """Return the result of a call whose runner did not come back."""
    if cause.code == "no_runner":
        return f"no runner offers {cause.unmet}" if cause.unmet else "there is no runner"
    return (
        f"runner {cause.runner} cannot be reached" if cause.runner else "no runner can be reached"
    )
