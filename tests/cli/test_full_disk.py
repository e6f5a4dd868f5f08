"""A run whose disk is full: nothing is recorded meanwhile, and nothing is lost."""

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from cueline.testing.wait import PATIENCE_SECONDS, wait_until

ACTS = Path(__file__).parents[1] / "ray" / "acts.py"
SCRIPT = """
[[reply]]
text = "I act."
calls = [{ name = "undeclared" }]

[[reply]]
text = "Done."
"""


@pytest.fixture
def disk(shell):
    """A disk of 2 MB."""
    folder = shell.folder / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount a small disk")
    yield folder
    shell.close()
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk):
    with (disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while True:
            filler.write(bytes(512))
    assert 0 == shutil.disk_usage(disk).free


def test_a_run_on_a_full_disk_says_so_and_goes_on_when_there_is_room(shell, disk):
    agent = shell.agent(SCRIPT, tools=(f"{ACTS}:undeclared",))
    log = ("--log", str(disk / "log.db"))
    running = shell.start("run", "Go", "--agent", agent, "--inline", "--id", "one", *log)
    journal = shell.folder / "work" / "journal"
    wait_until(journal.exists)

    fill(disk)
    (shell.folder / "work" / "go").touch()
    told = next(line for line in running.stdout if line.startswith("warning:"))
    (disk / "filler").unlink()
    said, _ = running.communicate(timeout=PATIENCE_SECONDS)

    assert "the disk is full; make room" in told
    assert (0, True) == (running.returncode, "Done." in said), said
    assert 1 == len(journal.read_text().splitlines())
    assert 0 == shell("audit", "verify", *log).exit_code


def test_a_command_on_a_full_disk_says_that_it_is_full(shell, disk):
    log = ("--log", str(disk / "log.db"))
    run = ("run", "Go", "--agent", shell.agent(shell.hello), "--inline", *log)
    assert 0 == shell(*run, "--id", "one").exit_code
    fill(disk)

    for words in (run, ("send", "one", "Hi", *log), ("resume", "one", "--inline", *log)):
        refused = shell(*words)
        assert 2 == refused.exit_code
        assert "log.db: the disk is full; make room, then ask again" in refused.stderr
    listed = shell("list", *log)

    assert (0, True) == (listed.exit_code, "the disk is full" in listed.stderr)
    assert "the disk failed" not in listed.stderr
