"""A real terminal, as a person has it."""

import os
import shlex
import shutil
import subprocess
import sys
from itertools import count

import pytest

from cueline.testing.wait import wait_until

RUN = ("run", "Tidy", "--agent", "agent.toml", "--inline", "--id", "one")

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")


class Terminal:
    """A terminal of 100 by 40 in tmux, with a shell in a folder."""

    def __init__(self, folder, name):
        self._tmux = ["tmux", "-L", name, "-f", os.devnull]
        self._run("new-session", "-d", "-x", "100", "-y", "40", "-c", str(folder), "sh")

    def type(self, *keys):
        self._run("send-keys", *keys)

    def command(self, *words):
        line = f"{shlex.quote(sys.executable)} -m cueline.cli {shlex.join(words)}"
        self.type(f"clear; {line}; echo exit $?", "Enter")

    @property
    def screen(self):
        # Joined: a path that is long wraps where the terminal ends.
        return self._run("capture-pane", "-p", "-J").stdout

    def sees(self, text):
        looks = count()
        # Each look is a process; one at every turn would keep a core busy.
        wait_until(lambda: next(looks) % 10 == 0 and text in self.screen)
        return self.screen

    def close(self):
        self._run("kill-server", check=False)

    def _run(self, *words, check=True):
        return subprocess.run([*self._tmux, *words], capture_output=True, text=True, check=check)
