"""A server with the paths, fields and codes of `ray.experimental.sandbox.http`.

Sandboxes are folders of this machine, and `/workspace` is the folder. As in Ray, a time limit kills
the first process of a command alone, and output that is no text is an error.
"""

import hashlib
import subprocess
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.sandboxes.vendor_server import Machine, VendorServer

TOKEN = "right"
PREFIX = "/api/v1/sandboxes"


class RayService:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.sandboxes: dict[str, dict[str, Any]] = {}
        self.environments: dict[str, dict[str, str]] = {}
        self.execs: dict[str, dict[str, Any]] = {}
        self.ended: dict[str, threading.Event] = {}
        self.bodies: list[tuple[str, dict[str, Any]]] = []
        """The path and the fields of the requests with JSON."""
        self.answers: list[tuple[str, dict[str, Any]]] = []
        """The kind and the fields of the answers."""
        self.boots_as = ["pending", "pulling", "running"]
        """The states of a new sandbox, one for each question."""
        one = f"{PREFIX}/{{sandbox_id}}"
        routes = [
            ("POST", PREFIX, self.create),
            ("GET", PREFIX, self.page),
            ("GET", one, self.get),
            ("DELETE", one, self.delete),
            ("POST", f"{one}/execs", self.start_exec),
            ("GET", f"{one}/execs/{{exec_id}}", self.get_exec),
            ("PUT", f"{one}/files", self.put_file),
            ("GET", f"{one}/files", self.get_file),
        ]
        self.routes = [(method.lower(), path) for method, path, _ in routes]
        self.app = Starlette(
            routes=[
                Route(path, self._guarded(call), methods=[method]) for method, path, call in routes
            ]
        )

    def _guarded(self, call):
        async def answer(request: Request) -> Response:
            if request.headers.get("authorization") != f"Bearer {TOKEN}":
                return error(401, "unauthorized", "invalid or missing bearer token")
            if request.method == "POST":
                self.bodies.append((request.url.path, await request.json()))
            named = request.path_params.get("sandbox_id")
            if named and named not in self.sandboxes and request.method != "DELETE":
                return error(404, "sandbox_not_found", f"no sandbox with id {named!r}")
            return await call(request)

        return answer

    def _told(self, kind: str, fields: dict[str, Any], status: int = 200) -> Response:
        self.answers.append((kind, fields))
        return JSONResponse(fields, status)

    async def create(self, request: Request) -> Response:
        body = await request.json()
        made = f"sb-{hashlib.sha256(body['client_token'].encode()).hexdigest()[:22]}"
        if made in self.sandboxes:
            return self._told("SandboxInfo", self._info(made))
        self.environments[made] = body["env"]
        self.sandboxes[made] = {
            "sandbox_id": made,
            "image": body["image"],
            "created_at": "2026-01-01T00:00:00Z",
            "ttl_seconds": 604800,
            "expires_at": "2026-01-08T00:00:00Z",
            "network": body["network"],
            "labels": body["labels"],
            "coming": list(self.boots_as),
        }
        self.machine.folder(made)
        return self._told("SandboxInfo", self._info(made), 202)

    def _info(self, sandbox: str) -> dict[str, Any]:
        known = dict(self.sandboxes[sandbox])
        coming = known.pop("coming")
        status = coming[0] if len(coming) == 1 else coming.pop(0)
        return {**known, "status": status, "error": "no such image" if status == "error" else None}

    async def page(self, request: Request) -> Response:
        wanted = dict(each.split("=", 1) for each in request.query_params.getlist("label"))
        infos = [self._info(each) for each in self.sandboxes]
        found = [each for each in infos if wanted.items() <= each["labels"].items()]
        return self._told("SandboxList", {"sandboxes": found})

    async def get(self, request: Request) -> Response:
        return self._told("SandboxInfo", self._info(request.path_params["sandbox_id"]))

    async def delete(self, request: Request) -> Response:
        named = request.path_params["sandbox_id"]
        if self.sandboxes.pop(named, None):
            await run_in_threadpool(self.machine.delete, named)
        return JSONResponse({"sandbox_id": named, "status": "terminated"})

    async def start_exec(self, request: Request) -> Response:
        sandbox, body = request.path_params["sandbox_id"], await request.json()
        if (status := self._info(sandbox)["status"]) != "running":
            return error(409, "conflict", f"sandbox {sandbox} is {status}, not running")
        made = f"ex-{uuid4().hex[:12]}"
        empty = dict.fromkeys(("exit_code", "stdout", "stderr", "duration_seconds", "error"))
        cut = {"stdout_truncated": False, "stderr_truncated": False}
        self.execs[made] = {"exec_id": made, "status": "running", **empty, **cut}
        self.ended[made] = threading.Event()
        threading.Thread(target=self._run, args=(sandbox, made, body), daemon=True).start()
        return self._told("ExecStarted", {"exec_id": made, "status": "running"}, 202)

    def _run(self, sandbox: str, made: str, body: dict[str, Any]) -> None:
        environment = {**self.environments[sandbox], **body["env"]}
        how = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        with self.machine.start(sandbox, body["command"], environment, **how) as running:
            try:
                output, errors = running.communicate(timeout=body["timeout_seconds"])
                told = {"stdout": output.decode(), "stderr": errors.decode()}
                end = {"status": "completed", "exit_code": running.returncode, **told}
                end["duration_seconds"] = 0.1
            except subprocess.TimeoutExpired:
                running.kill()
                why = f"command timed out after {body['timeout_seconds']} seconds"
                end = {"status": "timeout", "error": why}
            except UnicodeDecodeError as undecoded:
                end = {"status": "error", "error": f"gVisor exec failed: {undecoded}"}
        self.execs[made] |= end
        self.ended[made].set()

    async def get_exec(self, request: Request) -> Response:
        named = request.path_params["exec_id"]
        if named not in self.execs:
            return error(404, "exec_not_found", f"unknown exec id {named!r}")
        wait = float(request.query_params.get("wait_seconds", 0))
        await run_in_threadpool(self.ended[named].wait, wait)
        return self._told("ExecInfo", dict(self.execs[named]))

    def _path(self, request: Request) -> Path:
        folder = self.machine.folder(request.path_params["sandbox_id"])
        path = request.query_params["path"]
        return folder / path.removeprefix("/workspace/")

    async def put_file(self, request: Request) -> Response:
        path = self._path(request)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(await request.body())
        return Response(status_code=204)

    async def get_file(self, request: Request) -> Response:
        path = self._path(request)
        if not path.exists():
            return error(404, "file_not_found", f"File not found or read error '{path}'")
        return Response(path.read_bytes(), media_type="application/octet-stream")


def error(status: int, code: str, message: str) -> Response:
    return JSONResponse({"error": {"code": code, "message": message}}, status)


def ray_server(root: Path) -> tuple[RayService, VendorServer]:
    service = RayService(Machine(root))
    return service, VendorServer(service.app, service.machine)
