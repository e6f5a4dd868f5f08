"""Describes the machine of a measurement, and the versions of the measured programs."""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench.peer import PYTHON
from cueline.sqlite_library import sqlite_library

PARTS = ("pydantic", "ray")
PEERS = ("langgraph", "langgraph-checkpoint-sqlite", "dbos", "eventsourcing")
_ASK = f"""
import json, sqlite3
from importlib.metadata import version
versions = {{name: version(name) for name in {PEERS}}}
print(json.dumps(versions | {{"SQLite": sqlite3.sqlite_version}}))
"""


def told() -> str:
    """Return the machine and the versions, with one sentence on each line."""
    ours = {"Python": platform.python_version(), "SQLite": sqlite_library().sqlite_version}
    ours |= {name: version(name) for name in PARTS}
    system = f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}"
    machine = f"{_processor()}, {os.cpu_count()} cores, {_memory()} GB of memory"
    return "\n".join(
        [
            f"Measured on {datetime.now(UTC):%Y-%m-%d}: {machine}, {system}, {_file_system()}.",
            f"Load average of the last five minutes, at the end: {os.getloadavg()[1]:.1f}.",
            f"Versions: {_list(ours)}.",
            f"Peers, in an environment of their own: {_list(_peers())}.",
        ]
    )


def commit() -> str:
    """Return the current commit, with a `+` at its end if files differ from it."""

    def git(*asked: str) -> str:
        command = ["git", *asked]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs")
    return git("rev-parse", "--short=8", "HEAD") + ("+" if changed else "")


def _list(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9)


def _file_system() -> str:
    command = ["df", "--output=fstype", "."]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return told.split()[-1]


def _peers() -> dict[str, str]:
    if not PYTHON.exists():
        return {"none": "installed"}
    asked = subprocess.run([str(PYTHON), "-c", _ASK], check=True, capture_output=True, text=True)
    versions: dict[str, str] = json.loads(asked.stdout)
    return versions
