"""`make demo`: it holds what it promises, and Ctrl-C leaves nothing behind."""

import os
import re
import signal
from pathlib import Path

import pytest

from cueline.testing.wait import PATIENCE_SECONDS, wait_until
from tests.ray.marked import Marked

ROOT = Path(__file__).parents[2]


class Demo(Marked):
    """The demo as a process."""

    def __init__(self):
        super().__init__()
        self._process = self.start("-u", "examples/demo/demo.py", cwd=ROOT)
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

    def close(self):
        super().close()
        self._process.communicate()


@pytest.fixture
def demo():
    demo = Demo()
    yield demo
    demo.close()


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


@pytest.mark.long
def test_ctrl_c_leaves_neither_a_process_nor_a_folder(demo):
    demo.until("asks for")

    demo.ctrl_c()

    assert 130 == demo.end(), demo.told
    assert demo.told.endswith("stopped; nothing is left behind\n")
    wait_until(lambda: not demo.living())
    assert [] == list(demo.place.glob("cueline-demo-*"))
