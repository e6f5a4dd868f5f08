"""Kills a process in the middle of a call that declares nothing, and resumes it.

    python -m bench.peers.kill --write

Every program has its defaults. The call notes each of its beginnings in a file.
Restate's server is the npm package `@restatedev/restate-server`: name it in RESTATE_SERVER.
Temporal is left out: its development server is downloaded from temporal.download.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.peer import PYTHON, ROOT

PROGRAMS = {"cueline": sys.executable, "langgraph": str(PYTHON), "dbos": str(PYTHON)}
PATIENCE_SECONDS = 60
PAGE = ROOT / "docs/reliability.md"
HEADING = "## What do other programs do?\n"


class Outcome(NamedTuple):
    """What became of the call."""

    program: str
    began: int
    """How often the call began."""
    told: str
    """What the program returns for the call."""


def wait_for(path: Path) -> None:
    """Wait until there is something in the file.

    Raises:
        TimeoutError: there is nothing after a minute.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not path.exists() or not path.stat().st_size:
        if time.monotonic() > deadline:
            raise TimeoutError(path)
        time.sleep(0.02)


def start(python: str, program: str, *words: str) -> subprocess.Popen[str]:
    """Start a program of this folder."""
    command = [python, "-m", f"bench.peers.kill_{program}", *words]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE)


def killed(program: str) -> Outcome:
    """Kill *program* in the middle of the call, resume it, and return what became of the call."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = start(PROGRAMS[program], program, name, "begin")
        wait_for(folder / "journal")
        first.send_signal(signal.SIGKILL)
        first.communicate()
        (folder / "go").touch()
        second = start(PROGRAMS[program], program, name, "resume")
        said = second.communicate(timeout=PATIENCE_SECONDS)[0].splitlines()[-1]
        version, _, told = said.partition("\t")
        began = len((folder / "journal").read_text().splitlines())
    return Outcome(f"{program} {version}", began, told)


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def ask(url: str, body: object = None) -> str:
    """Send a request again and again until it is answered."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    while True:
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
                return str(answer.read().decode())
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


@contextmanager
def restate_server(server: str, folder: str) -> Iterator[tuple[str, str]]:
    """Run Restate's server; yield the URLs of its two ports."""
    ports = {"RESTATE_INGRESS__BIND_PORT": free_port(), "RESTATE_ADMIN__BIND_PORT": free_port()}
    ports["RESTATE_BIND_PORT"] = free_port()
    words = [server, "--base-dir", folder, "--node-name", "bench"]
    environ = os.environ | {name: str(port) for name, port in ports.items()}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(words, cwd=folder, env=environ, stdout=quiet, stderr=quiet) as process:
        ingress, admin, _ = ports.values()
        try:
            yield f"http://127.0.0.1:{ingress}", f"http://127.0.0.1:{admin}"
        finally:
            process.kill()


def killed_restate(server: str) -> Outcome:
    """Kill the service of Restate in the middle of the call; its server goes on."""
    said = subprocess.run([server, "--version"], check=True, capture_output=True, text=True)
    with (
        tempfile.TemporaryDirectory() as name,
        restate_server(server, name) as (ingress, admin),
    ):
        folder, port = Path(name), str(free_port())
        first = start(str(PYTHON), "restate", name, "begin", port)
        ask(f"{admin}/deployments", {"uri": f"http://127.0.0.1:{port}", "use_http_11": True})
        sent = json.loads(ask(f"{ingress}/agent/run/send", "Pay."))
        wait_for(folder / "journal")
        first.send_signal(signal.SIGKILL)
        first.communicate()
        (folder / "go").touch()
        second = start(str(PYTHON), "restate", name, "resume", port)
        try:
            told = ask(f"{ingress}/restate/invocation/{sent['invocationId']}/attach")
        finally:
            second.kill()
            second.communicate()
        began = len((folder / "journal").read_text().splitlines())
    return Outcome(f"restate {said.stdout.split()[1]}", began, json.loads(told))


def outcomes() -> Iterator[Outcome]:
    """Yield the outcome of each program that is installed."""
    for program in PROGRAMS:
        yield killed(program)
    if server := os.environ.get("RESTATE_SERVER") or shutil.which("restate-server"):
        yield killed_restate(server)
    else:
        print("Restate is left out: RESTATE_SERVER names no server", file=sys.stderr)


def main() -> None:
    """Print the table, or write it into the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.kill", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}")
    lines = ["| program | the call began | its result |", "| --- | --- | --- |"]
    asked = parser.parse_args()
    for each in outcomes():
        times = "once" if each.began == 1 else f"{each.began} times"
        lines.append(f"| {each.program} | {times} | {each.told} |")
        print(lines[-1])
    if asked.write:
        before, found, after = PAGE.read_text().partition(HEADING)
        head, _, rest = after.partition("| program |")
        rest = rest[rest.index("\n\n") :]
        PAGE.write_text(before + found + head + "\n".join(lines) + rest)


if __name__ == "__main__":
    main()
