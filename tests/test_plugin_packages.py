"""Packages add a provider, a store and a tool: each example is installed, listed and used."""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

from tests.stores.quick import QUICK

EXAMPLES = Path(__file__).parents[1] / "examples"
CUELINE = ["-m", "cueline.cli"]


@pytest.fixture
def install(tmp_path):
    """Return what lays a package out as pip does, and returns what runs Python with it."""

    def installed(package, module):
        place = tmp_path / "site"
        about = place / f"{module}-0.1.0.dist-info"
        about.mkdir(parents=True)
        (place / f"{module}.py").write_text((package / f"{module}.py").read_text())
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 0.1.0\n")
        (about / "entry_points.txt").write_text(entry_points(package))
        environ = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(place), *filter(None, sys.path)]),
        }

        def run(*words, cwd=tmp_path, code=0):
            done = subprocess.run(
                [sys.executable, *words],
                cwd=cwd,
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            assert code == done.returncode, done.stdout + done.stderr
            return done.stdout + done.stderr

        return run

    return installed


def entry_points(package):
    """Return the entry points of a pyproject.toml as a wheel has them."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    groups = project["entry-points"].items()
    return "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in each.items())
        for group, each in groups
    )


# 002-004
def test_the_provider_of_an_installed_package_is_listed_and_used(install, tmp_path):
    run = install(EXAMPLES / "provider-package", "cueline_echo")
    (tmp_path / "agent.toml").write_text('name = "parrot"\nprovider = "echo"\n')

    rows = {each["name"]: each for each in json.loads(run(*CUELINE, "providers", "--json"))}
    said = run(*CUELINE, "run", "Polly wants a cracker", "--agent", "agent.toml", "--inline")

    assert ("parrot", False) == (rows["echo"]["model"], rows["echo"]["needs_key"])
    assert not rows["echo"]["capabilities"]["tools"]
    assert 2 == said.count("Polly wants a cracker")


def test_the_store_of_an_installed_package_has_a_log_that_commands_use(install, tmp_path):
    install(EXAMPLES / "provider-package", "cueline_echo")
    run = install(EXAMPLES / "store-package", "cueline_folder")
    (tmp_path / "agent.toml").write_text('name = "parrot"\nprovider = "echo"\n')
    log = ("--log", f"folder://{tmp_path}/logs/one")

    run(*CUELINE, "run", "Hello", "--agent", "agent.toml", "--inline", *log)

    (row,) = json.loads(run(*CUELINE, "list", "--json", *log))
    assert "completed" == row["status"]
    assert (tmp_path / "logs/one/log.db").exists()


def test_the_tool_of_an_installed_package_is_listed_and_called_by_its_name(install, tmp_path):
    run = install(EXAMPLES / "tool-package", "cueline_dice")
    (tmp_path / "agent.toml").write_text(
        'name = "player"\nprovider = "scripted"\nmodel = "none.toml"\ntools = ["roll_dice"]\n'
    )
    told = ("--agent", "agent.toml")

    (row,) = json.loads(run(*CUELINE, "tools", "--json", *told))
    said = run(*CUELINE, "tool", "call", "roll_dice", "count=3", *told, "--inline")
    (tmp_path / "agent.toml").write_text(
        'name = "player"\nprovider = "scripted"\nmodel = "none.toml"\ntools = ["roll_dies"]\n'
    )
    unknown = run(*CUELINE, "tools", *told, code=2)

    assert ("cueline_dice:roll_dice", "idempotent") == (row["target"], row["declared"])
    assert re.search(r"\[[1-6], ?[1-6], ?[1-6]\]", said), said
    assert "'roll_dies' is unknown: did you mean 'roll_dice'?" in unknown


def test_the_store_of_an_installed_package_passes_the_contracts(install):
    package = EXAMPLES / "store-package"
    run = install(package, "cueline_folder")
    with tempfile.TemporaryDirectory(dir=QUICK) as folder:
        words = ("-q", "-p", "no:cacheprovider", f"--basetemp={folder}/pytest")
        assert " passed" in run("-m", "pytest", *words, cwd=package)
