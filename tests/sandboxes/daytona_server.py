"""A server with the paths, fields and states of Daytona's API and of its toolbox.

Sandboxes are folders of this machine. It has no mounts: a command has the volume's folder where it
names the mount path. A sandbox needs two questions to start or stop, as if it took a while.
"""

import json
import subprocess
from pathlib import Path
from typing import Any
from uuid import uuid4

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from tests.sandboxes.vendor_server import Machine, VendorServer

KEY = "dtn_right"
PAGE = 2
"""The sandboxes of a page, at most."""


class Daytona:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.sandboxes: dict[str, dict[str, Any]] = {}
        self.coming: dict[str, list[str]] = {}
        """The states that a sandbox will have, one for each question."""
        self.volumes: dict[str, dict[str, Any]] = {}
        self.bodies: list[tuple[str, dict[str, Any]]] = []
        """The path and the fields of the requests with JSON."""
        self.starts_as = ["creating", "started"]
        """The states of a new sandbox."""
        one = "/api/sandbox/{sandbox}"
        box = "/toolbox/{sandbox}"
        routes = [
            ("POST", "/api/sandbox", self.create),
            ("GET", "/api/sandbox", self.page),
            ("GET", one, self.get),
            ("DELETE", one, self.delete),
            ("POST", f"{one}/start", self.start),
            ("POST", f"{one}/stop", self.stop),
            ("POST", f"{one}/last-activity", self.activity),
            ("GET", "/api/volumes/by-name/{volume}", self.get_volume),
            ("POST", "/api/volumes", self.create_volume),
            ("POST", f"{box}/process/execute", self.execute),
            ("POST", f"{box}/files/upload-v2", self.upload),
            ("GET", f"{box}/files/download", self.download),
        ]
        self.app = Starlette(
            routes=[
                Route(path, self._guarded(call), methods=[method]) for method, path, call in routes
            ]
        )

    def _guarded(self, call):
        async def answer(request: Request) -> Response:
            if request.headers.get("authorization") != f"Bearer {KEY}":
                return error(request, 401, "Invalid credentials")
            if request.method == "POST" and request.headers.get("content-type") == (
                "application/json"
            ):
                self.bodies.append((request.url.path, await request.json()))
            named = request.path_params.get("sandbox", "")
            if named and not (sandbox := self._find(named)):
                return error(request, 404, f"Sandbox with ID or name {named} not found")
            if named:
                request.state.sandbox = sandbox
            return await call(request)

        return answer

    def _find(self, named: str) -> dict[str, Any] | None:
        """Return the sandbox of this id or name, one state further on its way."""
        found = self.sandboxes.get(named) or next(
            (each for each in self.sandboxes.values() if each["name"] == named), None
        )
        if found and (coming := self.coming[found["id"]]):
            found["state"] = coming.pop(0)
        return found

    async def create(self, request: Request) -> Response:
        body = await request.json()
        if any(each["name"] == body["name"] for each in self.sandboxes.values()):
            return error(request, 409, f"Sandbox with name {body['name']} already exists")
        made = str(uuid4())
        proxy = str(request.url.replace(path="/toolbox"))
        first, *coming = self.starts_as
        self.sandboxes[made] = {
            "id": made,
            "organizationId": "org",
            "user": "daytona",
            "public": False,
            "target": "us",
            "cpu": body.get("cpu", 1),
            "gpu": 0,
            "memory": body.get("memory", 1),
            "disk": 3,
            "kvm": False,
            "state": first,
            "desiredState": "started",
            "errorReason": None,
            "toolboxProxyUrl": proxy,
            **{key: body[key] for key in ("name", "labels", "env", "networkBlockAll")},
            "volumes": body.get("volumes", []),
        }
        self.coming[made] = coming
        self.machine.folder(made)
        return JSONResponse(self.sandboxes[made])

    async def page(self, request: Request) -> Response:
        wanted = json.loads(request.query_params["labels"])
        after = int(request.query_params.get("cursor", 0))
        found = [s for s in self.sandboxes.values() if wanted.items() <= s["labels"].items()]
        items = [
            {k: v for k, v in each.items() if k not in {"env", "volumes", "kvm"}}
            for each in found[after : after + PAGE]
        ]
        following = str(after + PAGE) if after + PAGE < len(found) else None
        return JSONResponse({"items": items, "nextCursor": following})

    async def get(self, request: Request) -> Response:
        return JSONResponse(request.state.sandbox)

    async def delete(self, request: Request) -> Response:
        sandbox = request.state.sandbox
        if sandbox["state"] == "destroying":
            del self.sandboxes[sandbox["id"]]
            return error(request, 404, f"Sandbox with ID or name {sandbox['id']} not found")
        await run_in_threadpool(self.machine.delete, sandbox["id"])
        sandbox.update(state="destroying", name=f"DESTROYED_{sandbox['name']}")
        sandbox["labels"] = {}
        return JSONResponse(sandbox)

    async def start(self, request: Request) -> Response:
        return self._changed(request, "stopped", "starting", "started")

    async def stop(self, request: Request) -> Response:
        answer = self._changed(request, "started", "stopping", "stopped")
        await run_in_threadpool(self.machine.kill, request.state.sandbox["id"])
        return answer

    def _changed(self, request: Request, before: str, meanwhile: str, after: str) -> Response:
        sandbox = request.state.sandbox
        if sandbox["state"] != sandbox["desiredState"]:
            return error(request, 400, "Sandbox state change in progress")
        if sandbox["state"] != before:
            return error(request, 400, f"Sandbox is not {before}")
        sandbox["desiredState"] = after
        self.coming[sandbox["id"]] = [before, meanwhile, after]
        return JSONResponse(sandbox)

    async def activity(self, _: Request) -> Response:
        return Response(status_code=201)

    async def get_volume(self, request: Request) -> Response:
        volume = self.volumes.get(request.path_params["volume"])
        if not volume:
            return error(request, 404, "Volume not found")
        seen = dict(volume)
        if volume["state"] == "pending_create":
            volume["state"] = "ready"
        return JSONResponse(seen)

    async def create_volume(self, request: Request) -> Response:
        name = (await request.json())["name"]
        times = {"createdAt": "2026-01-01", "updatedAt": "2026-01-01", "errorReason": None}
        made = {"id": f"volume-{uuid4()}", "name": name, "organizationId": "org", **times}
        self.volumes[name] = {**made, "state": "pending_create"}
        return JSONResponse(self.volumes[name])

    async def execute(self, request: Request) -> Response:
        sandbox, body = request.state.sandbox, await request.json()
        if sandbox["state"] != "started":
            return error(request, 400, "bad request: sandbox is not running")
        return await run_in_threadpool(self._execute, request, sandbox, body)

    def _execute(self, request: Request, sandbox: dict[str, Any], body: dict[str, Any]) -> Response:
        command = body["command"]
        for each in sandbox["volumes"]:
            command = command.replace(each["mountPath"], str(self._mounted(each["volumeId"])))
        environment = {**sandbox["env"], **body.get("envs", {})}
        how = {"stdin": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with self.machine.start(sandbox["id"], ["/bin/sh"], environment, **how) as running:
            try:
                output, _ = running.communicate(command.encode(), body["timeout"])
            except subprocess.TimeoutExpired:
                self.machine.kill(sandbox["id"])
                return error(request, 408, "command execution timeout")
        return JSONResponse({"exitCode": running.returncode, "result": output.decode()})

    def _mounted(self, volume: str) -> Path:
        return self.machine.folder(volume)

    def _path(self, request: Request) -> Path:
        return self.machine.folder(request.state.sandbox["id"]) / request.query_params["path"]

    async def upload(self, request: Request) -> Response:
        async with request.form() as form:
            content = await form["file"].read()
        path = self._path(request)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return JSONResponse({"name": path.name, "path": str(path), "type": "file"})

    async def download(self, request: Request) -> Response:
        path = self._path(request)
        if not path.exists():
            return error(request, 404, f"stat {path}: no such file or directory")
        return FileResponse(path)


def error(request: Request, status: int, message: str) -> Response:
    said = {"path": request.url.path, "timestamp": "2026-01-01T00:00:00Z", "statusCode": status}
    return JSONResponse({**said, "error": "Error", "message": message}, status)


def daytona_server(root: Path) -> tuple[Daytona, VendorServer]:
    daytona = Daytona(Machine(root))
    return daytona, VendorServer(daytona.app, daytona.machine)
