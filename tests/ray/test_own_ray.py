"""Commands that start a Ray of their own, as a user without a cluster types them."""

import json
import os
import signal
from pathlib import Path

import psutil
import pytest

from cueline.runtime.up_record import find_up
from cueline.testing.wait import PATIENCE_SECONDS, wait_until
from tests.ray.marked import Marked

ACTS = Path(__file__).with_name("acts.py")
HEAD = ("gcs_server", "raylet")
SCRIPT = """
[[reply]]
text = "I act."
calls = [{ name = "repeatable" }]

[[reply]]
text = "Done."
"""


class Typed(Marked):
    """Somebody who types commands beside an agent with a log."""

    def __init__(self):
        super().__init__()
        self.log = self.place / "log.db"
        self.work = self.place / "work"
        self.work.mkdir()
        (self.place / "script.toml").write_text(SCRIPT)
        (self.place / "agent.toml").write_text(
            'name = "worker"\nprovider = "scripted"\nmodel = "script.toml"\n'
            f'workspace = "work"\ntools = ["{ACTS}:repeatable"]\n'
        )

    def __call__(self, *words):
        """Run a command to its end, and return its exit code and what it said."""
        running = self.start("-m", "cueline", *words, "--log", str(self.log), cwd=self.place)
        said, _ = running.communicate(timeout=2 * PATIENCE_SECONDS)
        return running.returncode, said

    def status(self, session):
        _, said = self("list", "--json")
        return {each["id"]: each["status"] for each in json.loads(said)}[session]


@pytest.fixture
def cueline():
    typed = Typed()
    yield typed
    typed.close()


def test_a_run_a_resume_and_a_fork_each_start_a_ray_and_leave_nothing(cueline):
    (cueline.work / "go").touch()

    ran = cueline("run", "Go", "--agent", "agent.toml", "--id", "one", "--max-turns", "1")
    cueline("budget", "raise", "one", "--max-turns", "5")
    resumed = cueline("resume", "one")
    forked = cueline("fork", "one", "--at", "3", "--id", "two")

    assert (3, True) == (ran[0], "session one: paused" in ran[1]), ran[1]
    assert (0, True) == (resumed[0], "session one: completed" in resumed[1]), resumed[1]
    assert (0, True) == (forked[0], "session two: completed" in forked[1]), forked[1]
    wait_until(lambda: not cueline.living())
    assert [] == list(cueline.place.glob("cl-*"))  # what Ray keeps


@pytest.mark.long
def test_sessions_go_on_by_themselves_when_up_comes_back_after_rays_head_was_killed(cueline):
    assert 0 == cueline("up", "--detach")[0]
    keeper = psutil.Process(find_up(cueline.log).keeper.pid)
    cueline("run", "Go", "--agent", "agent.toml", "--id", "one", "--detach")
    wait_until((cueline.work / "journal").exists)

    for process in keeper.children():
        if process.name() in HEAD:
            os.kill(process.pid, signal.SIGKILL)
    psutil.wait_procs([keeper], PATIENCE_SECONDS)
    (cueline.work / "go").touch()
    again = cueline("up", "--detach")
    wait_until(lambda: cueline.status("one") == "completed")
    down = cueline("down")

    assert 0 == again[0], again[1]
    attempts = [line.split()[1] for line in (cueline.work / "journal").read_text().splitlines()]
    assert ["1", "2"] == attempts
    assert (0, "down\n") == down
    assert find_up(cueline.log) is None
