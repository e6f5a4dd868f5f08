"""Sandboxes of Ray, by the REST API of `ray.experimental.sandbox.http`, as of Ray 2.60.

The URL of the service is in `RAY_SANDBOX_URL`. Its token, if it wants one, is in
`RAY_SANDBOX_API_TOKEN` or `RAY_AUTH_TOKEN`. Ray has no stop, no volumes and no limit of idle time.
So a stop deletes the sandbox with its files, and the session needs a fresh one. A sandbox that
nobody deletes lives as long as the service allows, by default a week. Only the workspace and `/tmp`
are writable.

It was run against a server with the schema of Ray's own app, never against the app itself, which
needs gVisor's `runsc`.
"""

import os
import posixpath
from collections.abc import Collection, Mapping, Sequence
from typing import Final
from uuid import uuid4

from cueline.actors.sandbox_port import NAME_LABEL, Executed, FoundSandbox, SandboxState
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

URL: Final = "RAY_SANDBOX_URL"
TOKEN: Final = "RAY_SANDBOX_API_TOKEN"  # noqa: S105 - the name of a variable
CLUSTER_TOKEN: Final = "RAY_AUTH_TOKEN"  # noqa: S105 - the name of a variable
IMAGE: Final = "python:3.12-slim"
"""The image, if the spec has none."""
WORKSPACE: Final = "/workspace"
RAY: Final = Vendor(
    name="Ray",
    url_variable=URL,
    key_variables=(TOKEN, CLUSTER_TOKEN),
    timeout_seconds=120.0,  # it waits for a change, and for the scheduling of an actor
    patience_seconds=900.0,
    wait_seconds=30.0,
)
_ROOT: Final = "/api/v1/sandboxes"
_BROKEN: Final = frozenset({"error", "terminated"})
_ENDED: Final = frozenset({"completed", "timeout", "error"})


class RayBackend:
    """See `SandboxBackend`; `stop` deletes."""

    def __init__(self, environ: Mapping[str, str] = os.environ, *, vendor: Vendor = RAY) -> None:
        """Use the URL and the token in *environ*; nothing is sent.

        Raises:
            SandboxError: there is no URL.
        """
        self._rest = RestClient(vendor, environ)

    def create(
        self, spec: SandboxSpec, labels: Mapping[str, str], environment: Mapping[str, str]
    ) -> str:
        """See `SandboxBackend.create`; one that failed to start is deleted.

        Ray does not see folders of this machine, so it has a workspace of its own.
        """
        named = labels[NAME_LABEL]
        if spec.volume:
            self.volume(spec.volume)
        body = {
            "image": spec.image or IMAGE,
            "env": {**environment},
            "workdir": WORKSPACE,
            "network": "public" if spec.network else "none",
            "resources": {"cpu_limit": spec.cpus, "memory_limit_mb": spec.memory_mb},
            "labels": {**labels},
            "client_token": unique_name(labels),
        }
        place: str = self._rest.json(named, "POST", _ROOT, json=body)["sandbox_id"]
        try:
            self._running(place)
        except SandboxGoneError:
            # The token would name the broken one for ever.
            self.delete(place)
            raise
        return place

    def start(self, place: str) -> None:
        self._running(place)

    def stop(self, place: str) -> None:
        """Delete the sandbox: Ray's are not stopped."""
        self._running(place)
        self.delete(place)

    def delete(self, place: str) -> None:
        self._rest.send(place, "DELETE", f"{_ROOT}/{place}")

    def state(self, place: str) -> SandboxState:
        try:
            self._running(place)
        except SandboxGoneError:
            return "gone"
        return "started"

    def find(self, labels: Mapping[str, str]) -> Collection[FoundSandbox]:
        """See `SandboxBackend.find`; not one for which the cluster has no room yet."""
        query = {"label": [f"{key}={value}" for key, value in labels.items()]}
        return [
            FoundSandbox(
                each["sandbox_id"],
                each["labels"],
                "gone" if each["status"] in _BROKEN else "started",
            )
            for each in self._rest.json("ray", "GET", _ROOT, params=query)["sandboxes"]
        ]

    def keep_alive(self, place: str) -> None:
        """Check that the sandbox is there: Ray counts no idle time."""
        self._running(place)

    def exec(
        self,
        place: str,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float,
    ) -> Executed:
        given = f"/tmp/cueline-{uuid4().hex}" if stdin else ""  # noqa: S108 - in the sandbox
        if stdin:
            self.put(place, given, stdin)
        limit = timeout_seconds + GRACE_SECONDS
        body = {
            "command": shell_run(command, given, timeout_seconds),
            "env": {**(environment or {})},
            "timeout_seconds": limit,
        }
        path = f"{_ROOT}/{place}/execs"
        path = f"{path}/{self._rest.json(place, 'POST', path, json=body)['exec_id']}"
        patience = limit + GRACE_SECONDS
        ended = self._rest.settled(place, path, _ENDED, field="status", seconds=patience)
        if ended["status"] != "completed":
            raise SandboxError(place, f"Ray did not run the command: {ended['error']}")
        return executed(place, ended["stdout"])

    def put(self, place: str, path: str, content: bytes) -> None:
        self._rest.send(place, "PUT", f"{_ROOT}/{place}/files", params=_at(path), content=content)

    def get(self, place: str, path: str) -> bytes:
        where = f"{_ROOT}/{place}/files"
        try:
            return self._rest.send(place, "GET", where, params=_at(path)).content
        except SandboxGoneError:
            self._running(place)  # the sandbox is there: the file is missing
            raise FileNotFoundError(path) from None

    def volume(self, name: str) -> None:
        """Refuse: Ray's sandboxes have no volumes."""
        why = "Ray's sandboxes have no volumes; leave `volume` out, or use another back-end"
        raise SandboxError(name, why)

    def _running(self, place: str) -> None:
        """Wait until the sandbox runs.

        Raises:
            SandboxGoneError: it failed to start, or was deleted.
        """
        lasting = {"running", *_BROKEN}
        info = self._rest.settled(place, f"{_ROOT}/{place}", lasting, field="status")
        if info["status"] != "running":
            raise SandboxGoneError(place, f"Ray says {info['status']}: {info['error']}")


def _at(path: str) -> dict[str, str]:
    """Return the query of a file; *path* is relative to the workspace, or absolute."""
    return {"path": posixpath.join(WORKSPACE, path)}
