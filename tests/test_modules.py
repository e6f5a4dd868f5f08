"""Every module of the package can be imported (D35), and the root has nothing else in it."""

import subprocess
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import cueline

MODULES = sorted(module.name for module in walk_packages(cueline.__path__, "cueline."))


@pytest.mark.parametrize("module", [name for name in MODULES if not name.endswith("__main__")])
def test_a_module_can_be_imported(module):
    assert module == import_module(module).__name__


ROOT = Path(__file__).parents[1]
AT_THE_ROOT = {
    *(".ci", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md"),
    *("bench", "cueline", "deploy", "docs", "examples", "pyproject.toml", "tests"),
    *("requirements-bench.lock", "requirements.lock", "uv.lock"),
}


# What is at the root is what a newcomer sees first: notes and scratch files are none of it.
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="it is no clone")
def test_nothing_else_is_at_the_root():
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    )

    assert AT_THE_ROOT == {each.partition("/")[0] for each in listed.stdout.split("\0") if each}
