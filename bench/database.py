"""A PostgreSQL server for benches: Debian's, durable, on the disk of this folder."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from cueline.events.log_url import LogUrl
from cueline.stores.postgres.migration import migrate
from cueline.stores.postgres.place import place_of

DEBIAN = Path("/usr/lib/postgresql")
_USER = "nobody"  # a server refuses to run as root


class Server:
    """A running server."""

    def __init__(self, folder: Path, process: psutil.Process) -> None:
        self._folder = folder
        self.process = process
        self._made = 0

    def new_log(self, _: Path) -> str:
        """Return the URL of a new log."""
        self._made += 1
        url = f"postgresql://ada@/postgres?host={self._folder}&schema=t{self._made}"
        migrate(place_of(LogUrl.of(url)))
        return url


@contextmanager
def database(**settings: str) -> Iterator[Server]:
    """Run a server that only its socket leads to."""
    programs = max(DEBIAN.glob("*/bin"))
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # not in memory
    root = {"user": _USER, "group": "nogroup"} if os.geteuid() == 0 else {}
    if root:
        shutil.chown(folder, _USER, "nogroup")
    data = str(folder / "data")
    settings = {"listen_addresses": "", "unix_socket_directories": str(folder), **settings}
    initdb = [programs / "initdb", "-D", data, "-U", "ada", "-A", "trust", "-E", "UTF8"]
    ready = [programs / "pg_isready", "-q", "-h", str(folder)]
    serve = [programs / "postgres", "-D", data, *(f"--{k}={v}" for k, v in settings.items())]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/", **root}
    subprocess.run(initdb, check=True, **quiet)
    process = subprocess.Popen(serve, **quiet)
    try:
        while subprocess.run(ready, check=False, **quiet).returncode:
            assert process.poll() is None, "the server has ended"
        yield Server(folder, psutil.Process(process.pid))
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait()
        shutil.rmtree(folder)
