"""All that runs is killed in the middle of sandboxes: nothing is left behind, and all ends."""

import os
import random
import signal
import subprocess
import sys

import pytest

from tests.sandboxes.podman import MISSING, podman
from tests.sandboxes.repository import git, repository

KILLS = [
    pytest.param("local", 2, id="local"),
    pytest.param("local", 20, id="local-20", marks=pytest.mark.long),
    pytest.param("worktree", 20, id="worktree-20", marks=pytest.mark.long),
    pytest.param(
        "container",
        20,
        id="container-20",
        marks=[pytest.mark.long, pytest.mark.skipif(bool(MISSING), reason=f"needs {MISSING}")],
    ),
]


@pytest.fixture
def address(request, tmp_path):
    """Have an engine, for sandboxes that are containers."""
    if request.node.callspec.params["backend"] != "container":
        yield ""
    else:
        with podman(tmp_path) as address:
            yield address


@pytest.mark.parametrize(("backend", "kills"), KILLS)
def test_kills_leave_no_sandbox_and_lose_no_session(address, tmp_path, backend, kills):
    """003-041, 003-045: 0 orphans within 60 s of the next start."""
    work = repository(tmp_path / "work")
    command = [sys.executable, "-m", "tests.sandboxes.killed"]
    command += [tmp_path / "log.db", work, backend]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "DOCKER_HOST": address}
    moments = random.Random(kills)

    for _ in range(kills):
        driver = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, start_new_session=True
        )
        assert driver.stdout is not None
        assert b"ready" in driver.stdout.readline()
        try:
            driver.wait(moments.uniform(0.05, 2))
        except subprocess.TimeoutExpired:
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        driver.stdout.close()
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=200, check=False
    )

    assert 0 == ended.returncode, ended.stderr
    assert 10 == ended.stdout.count("completed"), ended.stdout
    assert 1 == len(git(work, "worktree", "list").splitlines())
