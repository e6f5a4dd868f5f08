"""`make demo`: it holds what it promises, and Ctrl-C leaves nothing behind."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from cueline.testing.wait import PATIENCE_SECONDS, wait_until

ROOT = Path(__file__).parents[2]


class Demo:
    """The demo as a process, in a place of its own; all that it starts bears a mark."""

    def __init__(self, place):
        self.place = place
        self._mark = uuid4().hex
        environ = {name: each for name, each in os.environ.items() if not name.startswith("RAY_")}
        environ |= {"RAY_TMPDIR": str(place), "TMPDIR": str(place), "CUELINE_DEMO": self._mark}
        environ["RAY_memory_monitor_refresh_ms"] = "0"  # see `cluster`
        self._process = subprocess.Popen(
            [sys.executable, "-u", "examples/demo/demo.py"],
            cwd=ROOT,
            env={**environ, "COLUMNS": "160"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.told = ""

    def end(self):
        """Read on to the end, and return the exit code."""
        self.told += self._process.communicate(timeout=2 * PATIENCE_SECONDS)[0]
        return self._process.returncode

    def until(self, word):
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.told += line
            if word in line:
                return
        raise AssertionError(self.told)

    def ctrl_c(self):
        """Send it where a terminal does: to everything in the foreground."""
        os.killpg(self._process.pid, signal.SIGINT)

    def living(self):
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process):
        try:
            ours = self._mark == process.environ().get("CUELINE_DEMO")
        except psutil.Error:
            return False
        return ours and process.status() != psutil.STATUS_ZOMBIE

    def close(self):
        for process in self.living():
            process.kill()
        self._process.communicate()


@pytest.fixture
def demo():
    # Not the folder that pytest would give: sockets have to have short names.
    place = tempfile.mkdtemp(prefix="cd-", dir="/tmp")
    demo = Demo(Path(place))
    yield demo
    demo.close()
    shutil.rmtree(place)


def test_the_demo_loses_what_it_kills_and_carries_on(demo):
    code = demo.end()

    assert 0 == code, demo.told
    assert 1 == demo.told.count("SIGKILL host")
    assert 2 == demo.told.count("SIGKILL runner")
    assert 3 == len(re.findall(r"│ (report|index|notice) +│ completed", demo.told))
    assert "no undeclared effect ran twice: yes" in demo.told
    assert "the idempotent call ran again under one key: yes" in demo.told
    assert "Try next:\n  .venv/bin/cueline show notice --log " in demo.told
    wait_until(lambda: not demo.living())


def test_ctrl_c_leaves_neither_a_process_nor_a_folder(demo):
    demo.until("asks for")

    demo.ctrl_c()

    assert 130 == demo.end(), demo.told
    assert demo.told.endswith("stopped; nothing is left behind\n")
    wait_until(lambda: not demo.living())
    assert [] == list(demo.place.glob("cueline-demo-*"))
