"""`make setup` where there is no uv."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = ("Makefile", "pyproject.toml", "requirements.lock", "README.md", "LICENSE")


@pytest.mark.long
def test_without_uv_make_sets_up_an_environment_with_venv_and_pip(tmp_path):
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path)
    for name in ("cueline", "deploy"):
        shutil.copytree(ROOT / name, tmp_path / name)
    environ = {name: each for name, each in os.environ.items() if not name.startswith("MAKE")}
    # What is installed is hardly run here: to compile it takes longer than all the rest.
    environ |= {"PIP_NO_COMPILE": "1", "PIP_RETRIES": "1"}

    made = run(tmp_path, environ, "make", "setup", "UV=", f"PYTHON={sys.executable}")
    if "Failed to establish a new connection" in made.stdout:
        pytest.skip("needs a package index")
    asked = "import cueline; print(cueline.__file__)"
    found = run(tmp_path, environ, ".venv/bin/python", "-P", "-c", asked)

    assert 0 == made.returncode, made.stdout
    assert f"{tmp_path}/cueline/__init__.py" == found.stdout.strip()
    assert 0 == run(tmp_path, environ, ".venv/bin/cueline", "--version").returncode


def run(folder, environ, *command):
    return subprocess.run(
        command,
        cwd=folder,
        env=environ,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
