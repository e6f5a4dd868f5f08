"""Records the deaths of nodes that Ray reports by its export of events."""

from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from cueline.errors import ConfigError, KeyReusedError
from cueline.events.fleet import FLEET_STREAM, NodeDied
from cueline.events.journal import FactWrite
from cueline.events.store import ANY
from cueline.runtime.open_log import OpenLog

_ACTOR = "system:ray"


async def record_deaths(log: OpenLog, events: Sequence[Mapping[str, Any]]) -> int:
    """Record the deaths of nodes among exported *events* of Ray; return how many there are.

    An event that Ray sends again is recorded once.

    Raises:
        ForbiddenError: it needs the whole log, and the scope `runner`.
        ConfigError: an event does not have the form that Ray gives it.
    """
    log.check_whole()
    log.check_may("runner")
    deaths = []
    for event in events:
        if event.get("eventType") == "NODE_LIFECYCLE_EVENT":
            try:
                deaths += [(f"ray-{event['eventId']}", fact) for fact in _deaths(event)]
            except (KeyError, TypeError, ValueError) as error:
                why = f"it is no event of a node: {type(error).__name__}: {error}"
                raise ConfigError("events", why) from error
    for key, fact in deaths:
        write = FactWrite(FLEET_STREAM, [[fact]], ANY, actor=_ACTOR)
        with suppress(KeyReusedError):  # of another time of this process's clock
            await log.journal().append([write], key=key)
    return len(deaths)


def _deaths(event: Mapping[str, Any]) -> Iterator[NodeDied]:
    told = event["nodeLifecycleEvent"]
    for change in told["stateTransitions"]:
        if change["state"] == "DEAD":
            info = change.get("deathInfo") or {}
            yield NodeDied(
                node=b64decode(told["nodeId"], validate=True).hex(),
                reason=str(info.get("reason", "unspecified")).lower(),
                message=str(info.get("reasonMessage", "")),
                at=change["timestamp"],
            )
