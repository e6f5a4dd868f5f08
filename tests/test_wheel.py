"""The wheel runs in an empty environment that has the declared dependencies only."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input")
PINNED = re.compile(r"^\w\S*==[^\\\n]+", re.MULTILINE)
# Imports inside functions too: a missing one of those shows only when it is needed.
IMPORT_ALL = """
import ast
from importlib import import_module
from pathlib import Path
import cueline

MAY_MISS = {"hypothesis", "pytest"}  # who tests with `cueline.testing` has them
MAY_MISS |= {"pysqlite3"}  # there are platforms without a wheel
MAY_MISS |= {"psycopg"}  # who has a log in PostgreSQL installs the extra
MAY_MISS |= {"pydantic_ai"}  # who runs an agent of it installs the extra
MAY_MISS |= {"langchain_core", "langgraph"}  # likewise, who has graphs of LangGraph
# likewise, who serves HTTP
MAY_MISS |= {"ag_ui", "fastapi", "jinja2", "markdown_it", "markupsafe", "mcp", "mcp_types"}
MAY_MISS |= {"sse_starlette", "starlette", "uvicorn"}
MAY_MISS |= {"acp"}  # likewise, who has an editor start it
MAY_MISS |= {"docker"}  # likewise, who has sandboxes in containers

def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module

folder = Path(cueline.__file__).parent
assert "site-packages" in folder.parts, folder
for file in folder.rglob("*.py"):
    own = ".".join(file.relative_to(folder.parent).with_suffix("").parts)
    for name in {own.removesuffix(".__init__"), *imported(ast.parse(file.read_text()))}:
        try:
            if not name.endswith("__main__"):
                import_module(name)
        except ModuleNotFoundError as error:
            if error.name not in MAY_MISS:
                raise
"""
AGENT = """
name = "greeter"
provider = "scripted"
model = "script.toml"
"""


def ended(*command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def done(*command, folder):
    process = ended(*command, folder=folder)
    assert 0 == process.returncode, process.stdout + process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def binaries(tmp_path_factory):
    """Return the folder with the programs of an environment in which the wheel was installed."""
    pytest.importorskip("ensurepip")
    folder = tmp_path_factory.mktemp("wheel")
    done(sys.executable, "-m", "venv", "venv", folder=folder)
    python = folder / "venv/bin/python"
    at_once = ("--retries", "1", "--timeout", "15")
    if ended(
        python, *PIP, *at_once, "download", "--no-deps", "hatchling", folder=folder
    ).returncode:
        pytest.skip("no package index is reachable")
    done(python, *PIP, "wheel", "--no-deps", "--wheel-dir", "built", ROOT, folder=folder)
    (wheel,) = (folder / "built").glob("cueline-*.whl")
    pins = "\n".join(PINNED.findall((ROOT / "requirements.lock").read_text()))
    (folder / "pins.txt").write_text(pins)
    install = ("install", "--no-compile", "--constraint", "pins.txt")
    done(python, *PIP, *install, wheel, folder=folder)
    return python.parent


def test_every_import_of_the_package_is_met_by_a_declared_dependency(binaries, tmp_path):
    done(binaries / "python", "-c", IMPORT_ALL, folder=tmp_path)


def test_a_session_runs_with_the_declared_dependencies_alone(binaries, tmp_path):
    (tmp_path / "agent.toml").write_text(AGENT)
    (tmp_path / "script.toml").write_text('[[reply]]\ntext = "Good morning."\n')

    told = done(
        binaries / "cueline", "run", "Greet me.", "--agent", "agent.toml", "--inline",
        folder=tmp_path,
    )  # fmt: skip

    assert "Good morning." in told
