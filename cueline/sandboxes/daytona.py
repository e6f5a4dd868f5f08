"""Sandboxes of Daytona, by its REST API, as of the API's client 0.231.

The key is in `DAYTONA_API_KEY`; the URL is in `DAYTONA_API_URL`, or it is that of Daytona's cloud.
`image` is an image of a registry, from which Daytona builds a snapshot at the first use, or
`snapshot:NAME`; without it Daytona takes its own snapshot. A snapshot has its own number of
processors and its own memory. The workspace is the folder in which Daytona runs commands. The
request for a command is open until the command ends.

It was run against a server with the paths, fields and states of Daytona's clients, never against
Daytona itself.
"""

import json
import math
import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from cueline.actors.sandbox_port import (
    NAME_LABEL,
    VOLUME_PATH,
    Executed,
    FoundSandbox,
    SandboxState,
)
from cueline.errors import SandboxError, SandboxGoneError
from cueline.events.sandbox import SandboxSpec
from cueline.sandboxes.rest import (
    GRACE_SECONDS,
    RestClient,
    Vendor,
    executed,
    shell_run,
    unique_name,
)

KEY: Final = "DAYTONA_API_KEY"
URL: Final = "DAYTONA_API_URL"
CLOUD: Final = "https://app.daytona.io/api"
SNAPSHOT: Final = "snapshot:"
"""The beginning of an `image` that names a snapshot."""
DAYTONA: Final = Vendor(
    name="Daytona",
    url_variable=URL,
    url=CLOUD,
    key_variables=(KEY,),
    timeout_seconds=60.0,
    patience_seconds=600.0,
    poll_seconds=0.5,
)
STARTED: Final = frozenset({"started"})
STOPPED: Final = frozenset({"stopped", "paused"})
GONE: Final = frozenset(
    {"archived", "archiving", "build_failed", "destroyed", "destroying", "error"}
)
"""The other states pass."""
_PAGE: Final = 100
_VOLUME_FAILED: Final = frozenset({"error", "deleting", "deleted", "pending_delete"})


class DaytonaBackend:
    """See `SandboxBackend`."""

    def __init__(
        self, environ: Mapping[str, str] = os.environ, *, vendor: Vendor = DAYTONA
    ) -> None:
        """Use the key and the URL in *environ*; nothing is sent.

        Raises:
            SandboxError: there is no key.
        """
        if not environ.get(KEY):
            raise SandboxError("daytona", f"there is no key; set {KEY} to a key of Daytona")
        self._rest = RestClient(vendor, environ)

    def create(
        self, spec: SandboxSpec, labels: Mapping[str, str], environment: Mapping[str, str]
    ) -> str:
        """See `SandboxBackend.create`; one of the same name that is gone is deleted.

        Daytona does not see folders of this machine, so it has a workspace of its own.
        """
        named = labels[NAME_LABEL]
        # The name is unique at Daytona, while its list of labels may be late.
        name = unique_name(labels)
        try:
            place: str = self._rest.json(named, "GET", f"/sandbox/{name}")["id"]
            self.start(place)
        except SandboxGoneError as gone:
            if gone.place != named:
                self.delete(gone.place)
            place = self._create(name, spec, labels, environment)
            self.start(place)
        return place

    def _create(
        self,
        name: str,
        spec: SandboxSpec,
        labels: Mapping[str, str],
        environment: Mapping[str, str],
    ) -> str:
        body = {"name": name, "labels": {**labels}, "env": {**environment}, **_wanted(spec)}
        if spec.volume:
            mount = {"volumeId": self._volume(spec.volume), "mountPath": VOLUME_PATH}
            body["volumes"] = [mount]
        made: str = self._rest.json(labels[NAME_LABEL], "POST", "/sandbox", json=body)["id"]
        return made

    def start(self, place: str) -> None:
        self._bring(place, STARTED, "start")

    def stop(self, place: str) -> None:
        self._bring(place, STOPPED, "stop")

    def delete(self, place: str) -> None:
        with suppress(SandboxGoneError):
            self._rest.send(place, "DELETE", f"/sandbox/{place}")

    def state(self, place: str) -> SandboxState:
        try:
            return _state(self._settled(place, STARTED | STOPPED))
        except SandboxGoneError:
            return "gone"

    def find(self, labels: Mapping[str, str]) -> Collection[FoundSandbox]:
        """See `SandboxBackend.find`; Daytona may learn of changes a moment later."""
        found: list[FoundSandbox] = []
        query: dict[str, Any] = {"labels": json.dumps(dict(labels)), "limit": _PAGE}
        while True:
            page = self._rest.json("daytona", "GET", "/sandbox", params=query)
            found += [FoundSandbox(s["id"], s["labels"], _state(s)) for s in page["items"]]
            if not page["nextCursor"]:
                return found
            query["cursor"] = page["nextCursor"]

    def keep_alive(self, place: str) -> None:
        self._settled(place, STARTED | STOPPED)
        self._rest.send(place, "POST", f"/sandbox/{place}/last-activity", json={})

    def exec(
        self,
        place: str,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float,
    ) -> Executed:
        toolbox = self._toolbox(place)
        given = f"/tmp/cueline-{uuid4().hex}" if stdin else ""  # noqa: S108 - in the sandbox
        if stdin:
            self._upload(place, toolbox, given, stdin)
        body = {
            "command": shlex.join(shell_run(command, given, timeout_seconds)),
            "envs": {**(environment or {})},
            "timeout": math.ceil(timeout_seconds + GRACE_SECONDS),
        }
        path, patience = f"{toolbox}/process/execute", timeout_seconds + 2 * GRACE_SECONDS
        ended = self._rest.json(place, "POST", path, json=body, timeout=patience)
        return executed(place, ended["result"])

    def put(self, place: str, path: str, content: bytes) -> None:
        self._upload(place, self._toolbox(place), path, content)

    def get(self, place: str, path: str) -> bytes:
        where, query = f"{self._toolbox(place)}/files/download", {"path": path}
        try:
            return self._rest.send(place, "GET", where, params=query).content
        except SandboxGoneError:
            self._toolbox(place)  # the sandbox is there: the file is missing
            raise FileNotFoundError(path) from None

    def volume(self, name: str) -> None:
        self._volume(name)

    def _volume(self, name: str) -> str:
        """Return the id of a volume, which is made if there is none."""
        path = f"/volumes/by-name/{name}"
        try:
            self._rest.send(name, "GET", path)
        except SandboxGoneError:
            self._rest.send(name, "POST", "/volumes", json={"name": name})
        volume = self._rest.settled(name, path, {"ready", *_VOLUME_FAILED}, field="state")
        if volume["state"] in _VOLUME_FAILED:
            why = f"the volume is {volume['state']} ({volume['errorReason']}); use another name"
            raise SandboxError(name, why)
        return str(volume["id"])

    def _bring(self, place: str, wanted: frozenset[str], act: str) -> None:
        sandbox = self._settled(place, STARTED | STOPPED)
        if sandbox["state"] not in wanted:
            # It may be on its way: Daytona refuses a second request meanwhile.
            if sandbox.get("desiredState") not in wanted:
                self._rest.send(place, "POST", f"/sandbox/{place}/{act}")
            self._settled(place, wanted)

    def _settled(self, place: str, wanted: frozenset[str]) -> dict[str, Any]:
        """Return the sandbox as soon as its state is one of *wanted*.

        Raises:
            SandboxGoneError: it will never be.
            SandboxError: it was not within the patience.
        """
        sandbox = self._rest.settled(place, f"/sandbox/{place}", wanted | GONE, field="state")
        if sandbox["state"] in GONE:
            why = f"Daytona says {sandbox['state']} ({sandbox.get('errorReason') or 'no reason'})"
            raise SandboxGoneError(place, why)
        return sandbox

    def _toolbox(self, place: str) -> str:
        """Return the URL of what runs commands in the sandbox."""
        sandbox = self._settled(place, STARTED | STOPPED)
        if sandbox["state"] in STOPPED:
            raise SandboxError(place, f"it is {sandbox['state']}; start it first")
        return f"{sandbox['toolboxProxyUrl'].rstrip('/')}/{sandbox['id']}"

    def _upload(self, place: str, toolbox: str, path: str, content: bytes) -> None:
        form = {"params": {"path": path}, "files": {"file": ("file", content)}}
        self._rest.send(place, "POST", f"{toolbox}/files/upload-v2", **form)


def _state(sandbox: Mapping[str, Any]) -> SandboxState:
    """Return the state of a sandbox; one on its way takes room, as a started one does."""
    if sandbox["state"] in GONE:
        return "gone"
    return "stopped" if sandbox["state"] in STOPPED else "started"


def _wanted(spec: SandboxSpec) -> dict[str, Any]:
    """Return the fields of a request for a sandbox with *spec*."""
    fields = {
        "networkBlockAll": not spec.network,
        "autoStopInterval": math.ceil(spec.auto_stop_seconds / 60),
        "autoArchiveInterval": 0,  # the longest: an archived sandbox is gone for us
    }
    if spec.image.startswith(SNAPSHOT):
        return {**fields, "snapshot": spec.image.removeprefix(SNAPSHOT)}
    if not spec.image:
        return fields
    build = {"dockerfileContent": f"FROM {spec.image}\n"}
    memory = math.ceil(spec.memory_mb / 1024)
    return {**fields, "buildInfo": build, "cpu": math.ceil(spec.cpus), "memory": memory}
