"""Stores the same payloads with the `eventsourcing` package, and gets the aggregate back."""

import json
import time
from importlib.metadata import version
from pathlib import Path
from uuid import UUID

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event

from bench.peer import Answer, serve

Payload = dict[str, object]
_APPEND = 500
_kept: dict[str, tuple[Application[UUID], UUID]] = {}


class Talk(Aggregate):
    """A session that only counts its events."""

    events: int

    @event("Begun")
    def __init__(self) -> None:
        self.events = 0

    @event("ModelRequested")
    def model_requested(self, fact: Payload) -> None:
        """Count."""
        self.count(fact)

    @event("ModelStarted")
    def model_started(self, fact: Payload) -> None:
        """Count."""
        self.count(fact)

    @event("ModelReplied")
    def model_replied(self, fact: Payload) -> None:
        """Count."""
        self.count(fact)

    @event("ToolStarted")
    def tool_started(self, fact: Payload) -> None:
        """Count."""
        self.count(fact)

    @event("ToolReturned")
    def tool_returned(self, fact: Payload) -> None:
        """Count."""
        self.count(fact)

    def count(self, fact: Payload) -> None:
        """Apply a fact, and count it."""
        self.events += bool(fact)


def keep(payloads: str, path: str) -> Answer:
    """Store the payloads of a file in a new database; each line has a type and a JSON object."""
    application: Application[UUID] = Application(
        env={"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": path}
    )
    told = {
        "ModelRequested": Talk.model_requested,
        "ModelStarted": Talk.model_started,
        "ModelReplied": Talk.model_replied,
        "ToolStarted": Talk.tool_started,
        "ToolReturned": Talk.tool_returned,
    }
    talk = Talk()
    for number, line in enumerate(Path(payloads).read_text().splitlines(), 1):
        name, fact = json.loads(line)
        told[name](talk, fact)
        if number % _APPEND == 0:
            application.save(talk)
    application.save(talk)
    _kept[path] = application, talk.id
    return {"events": talk.version}


def get(path: str) -> Answer:
    """Get the aggregate, and measure the time."""
    application, talk = _kept[path]
    began = time.perf_counter()
    got = application.repository.get(talk)
    return {"seconds": time.perf_counter() - began, "events": got.version}


def play(path: str, payloads: str = "") -> Answer:
    """Store payloads, or get them back."""
    return keep(payloads, path) if payloads else get(path)


if __name__ == "__main__":
    serve(version("eventsourcing"), play)
