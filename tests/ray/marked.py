"""Commands that start a Ray of their own: in a place of their own, and all of it bears a mark."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from uuid import uuid4

import psutil


class Marked:
    """Where such commands run, with the processes that they leave."""

    def __init__(self):
        # Not the folder that pytest would give: sockets have to have short names.
        self.place = Path(tempfile.mkdtemp(prefix="cd-", dir="/tmp"))
        self._mark = uuid4().hex
        environ = {name: each for name, each in os.environ.items() if not name.startswith("RAY_")}
        environ |= {"RAY_TMPDIR": str(self.place), "TMPDIR": str(self.place)}
        environ["RAY_memory_monitor_refresh_ms"] = "0"  # see `cluster`
        # Who has lost the head looks for it so long, instead of a minute.
        environ["RAY_gcs_rpc_server_reconnect_timeout_s"] = "2"
        self.environ = {**environ, "MARKED_BY_A_TEST": self._mark, "COLUMNS": "160"}

    def start(self, *words, **options):
        """Start a Python program, in a session of its own."""
        return subprocess.Popen(
            [sys.executable, *words],
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            **options,
        )

    def living(self):
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process):
        try:
            ours = self._mark == process.environ().get("MARKED_BY_A_TEST")
        except psutil.Error:
            return False
        return ours and process.status() != psutil.STATUS_ZOMBIE

    def close(self):
        for process in self.living():
            process.kill()
        shutil.rmtree(self.place, ignore_errors=True)
