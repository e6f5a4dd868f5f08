"""`cueline init`: what it writes runs, and nothing is overwritten."""

import subprocess
import sys

FILES = ["agent.toml", "script.toml", "tools.py", "test_agent.py"]


def test_the_written_agent_runs(shell, monkeypatch):
    assert 0 == shell("init", "mine").exit_code
    monkeypatch.chdir(shell.folder / "mine")

    done = shell("run", "How many words?", "--agent", "agent.toml", "--inline")

    assert 0 == done.exit_code, done.output
    assert "It has 6 words." in done.stdout


def test_the_written_test_passes(shell):
    shell("init", "mine")
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=mine"]

    done = subprocess.run(
        [*pytest, "mine"], cwd=shell.folder, capture_output=True, text=True, check=False
    )

    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_it_says_what_was_written_and_what_to_type_next(shell):
    told = shell("init", "my agent").stdout

    assert "wrote my agent/agent.toml, my agent/script.toml" in told
    assert "  cd 'my agent'\n  cueline run " in told
    assert told.endswith("  python -m pytest\n")


def test_without_a_folder_it_writes_here(shell):
    written = shell.json("init")

    assert {"files": FILES} == written
    assert all((shell.folder / name).exists() for name in FILES)


def test_a_file_that_exists_is_not_overwritten_and_nothing_is_written(shell):
    (shell.folder / "tools.py").write_text("mine")

    done = shell("init")

    assert 2 == done.exit_code
    assert "error: tools.py: it exists already; name another folder" in done.stderr
    assert ["tools.py"] == [each.name for each in shell.folder.iterdir() if each.is_file()]
    assert "mine" == (shell.folder / "tools.py").read_text()
