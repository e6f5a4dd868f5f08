"""Sessions that have worked for a while, or for some turns."""

from cueline.testing.given import given
from tests.session_example import (
    agent,
    asking,
    returned,
    running,
    saying,
    started,
    up_to_reply,
)


def working(seconds, *, of=100.0, **limits):
    """Return a session that has worked for *seconds*, all in one tool call."""
    spec = agent(max_active_seconds=of, **limits)
    return (
        given()
        .when(*up_to_reply("look", spec=spec), running("1.0", "look"))
        .when(returned("1.0", seconds=seconds))
    )


def turns(number, spec):
    """Return the commands that bring a session to the end of that turn."""
    yield started(spec)
    for turn in range(1, number + 1):
        yield asking(turn)
        yield saying("look", turn=turn)
        yield running(f"{turn}.0", "look")
        yield returned(f"{turn}.0")
