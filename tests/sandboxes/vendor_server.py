"""What the servers that stand for vendors of sandboxes share: folders, processes, and faults."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

import uvicorn
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.responses import JSONResponse

from cueline.testing.wait import wait_until

MARK = "VENDOR_SANDBOX"
"""The variable by which the processes of a sandbox are known."""


class Machine:
    """The folders and processes of sandboxes, on this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, sandbox: str) -> Path:
        made = self.root / sandbox
        made.mkdir(exist_ok=True, parents=True)
        return made

    def start(
        self, sandbox: str, command: list[str], environment: Mapping[str, str], **how: Any
    ) -> subprocess.Popen[bytes]:
        own = {"PATH": os.environ["PATH"], MARK: sandbox, **environment}
        return subprocess.Popen(
            command,
            cwd=self.folder(sandbox),
            env=own,
            stdout=subprocess.PIPE,
            process_group=0,
            **how,
        )

    def kill(self, sandbox: str) -> None:
        """Kill the processes of a sandbox, and see them dead."""
        wait_until(lambda: not [kill(pid) for pid in alive(sandbox)])

    def delete(self, sandbox: str) -> None:
        self.kill(sandbox)
        shutil.rmtree(self.root / sandbox, ignore_errors=True)


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):  # it has ended since it was found
        os.kill(pid, signal.SIGKILL)


def alive(sandbox: str) -> Iterator[int]:
    mark = f"{MARK}={sandbox}".encode()
    for each in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in each.read_bytes().split(b"\0"):
                yield int(each.parent.name)


@dataclass
class Fault:
    """What happens instead of the next answer to a request."""

    method: str
    path: str
    """A regular expression."""
    status: int = 0
    """0: the answer does not come."""
    body: Any = None
    text: str = ""
    """The body, if it is no JSON."""
    carried_out: bool = False
    """Whether the vendor does what it was asked for, all the same."""


@dataclass
class VendorServer:
    """An app of a vendor, whose answers can be replaced."""

    app: Starlette
    machine: Machine
    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    """The method and the path of each."""
    released: Event = field(default_factory=Event)
    url: str = ""

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        method, path = scope["method"], scope["path"]
        self.requests.append((method, path))
        for fault in self.faults:
            if fault.method == method and re.search(fault.path, path):
                self.faults.remove(fault)
                return await self._fail(fault, scope, receive, send)
        return await self.app(scope, receive, send)

    async def _fail(self, fault: Fault, scope, receive, send) -> None:
        if fault.carried_out:
            await self.app(scope, receive, unheard)
        if not fault.status:
            await run_sync(self.released.wait)
        answer = JSONResponse(fault.body, fault.status or 200)
        if fault.text:
            answer.body = fault.text.encode()
            answer.init_headers({"content-type": "text/html"})
        await answer(scope, receive, send)


async def unheard(_) -> None:
    """Send nothing."""


@contextmanager
def served(server: VendorServer) -> Iterator[VendorServer]:
    """Serve on a free port of this machine."""
    config = uvicorn.Config(server, port=0, log_level="error", ws="none", lifespan="off")
    runner = uvicorn.Server(config)
    thread = Thread(target=runner.run, daemon=True)
    thread.start()
    try:
        wait_until(lambda: runner.started)
        port = runner.servers[0].sockets[0].getsockname()[1]
        server.url = f"http://127.0.0.1:{port}"
        yield server
    finally:
        server.released.set()
        runner.should_exit = True
        thread.join()
        for each in server.machine.root.glob("*"):
            server.machine.kill(each.name)
