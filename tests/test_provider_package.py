"""A package adds a provider: the example is installed, listed and used."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples/provider-package"
CUELINE = [sys.executable, "-m", "cueline.cli"]


@pytest.fixture
def installed(tmp_path):
    """Return what runs cueline where the example is installed, as pip lays out a wheel."""
    place = tmp_path / "site"
    about = place / "cueline_echo-0.1.0.dist-info"
    about.mkdir(parents=True)
    (place / "cueline_echo.py").write_text((EXAMPLE / "cueline_echo.py").read_text())
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: cueline-echo\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text(entry_points())
    path = os.pathsep.join([str(place), *filter(None, sys.path)])

    def run(*words):
        environ = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(
            [*CUELINE, *words],
            cwd=tmp_path,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert 0 == done.returncode, done.stdout + done.stderr
        return done.stdout

    return run


def entry_points():
    """Return the entry points of the example's pyproject.toml as a wheel has them."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    groups = project["entry-points"].items()
    return "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in each.items())
        for group, each in groups
    )


# 002-004
def test_the_provider_of_an_installed_package_is_listed_and_used(installed, tmp_path):
    (tmp_path / "agent.toml").write_text('name = "parrot"\nprovider = "echo"\n')

    rows = {each["name"]: each for each in json.loads(installed("providers", "--json"))}
    said = installed("run", "Polly wants a cracker", "--agent", "agent.toml", "--inline")

    assert ("parrot", False) == (rows["echo"]["model"], rows["echo"]["needs_key"])
    assert not rows["echo"]["capabilities"]["tools"]
    assert 2 == said.count("Polly wants a cracker")
