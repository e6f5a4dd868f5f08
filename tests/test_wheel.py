"""The release: built twice it is the same; its wheel runs with the declared dependencies only."""

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from shutil import copy
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parent.parent
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
MAY_MISS |= {"opentelemetry"}  # likewise, who exports traces

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
            if error.name.partition(".")[0] not in MAY_MISS:
                raise
"""
AGENT = """
name = "greeter"
provider = "scripted"
model = "script.toml"
"""


PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
"""The locked uv and pipx, before those of the machine."""
ENVIRON = os.environ | {"PATH": PATH, "PYTHONPATH": "", "UV_PYTHON_DOWNLOADS": "never"}


def ended(*command, folder, **environ):
    return subprocess.run(
        command,
        cwd=folder,
        env=ENVIRON | environ,
        capture_output=True,
        text=True,
        check=False,
    )


def done(*command, folder, **environ):
    told = ended(*command, folder=folder, **environ)
    assert 0 == told.returncode, told.stdout + told.stderr
    return told.stdout


def built(folder, source=ROOT):
    """Build the sdist, and the wheel from it, as `make dist` does."""
    build = ("uv", "build", "--quiet", "--no-build-isolation", "--python", sys.executable)
    done(*build, "--out-dir", folder, folder=source, SOURCE_DATE_EPOCH="1700000000")
    return folder


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return built(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="module")
def wheel(release):
    (found,) = release.glob("cueline-*.whl")
    return found


@pytest.fixture(scope="module")
def pins(release):
    """Write the locked versions, as constraints."""
    file = release / "pins.txt"
    file.write_text("\n".join(PINNED.findall((ROOT / "requirements.lock").read_text())))
    return file


@pytest.fixture(scope="module")
def binaries(tmp_path_factory, wheel, pins):
    """Install the wheel into an empty environment; return the folder of its commands."""
    folder = tmp_path_factory.mktemp("installed")
    done("uv", "venv", "--quiet", "--python", sys.executable, "venv", folder=folder)
    install = ("uv", "pip", "install", "--quiet", "--python", "venv", "--constraints", pins)
    told = ended(*install, wheel, folder=folder)
    if "error sending request" in told.stderr:
        pytest.skip("no package index is reachable")
    assert 0 == told.returncode, told.stderr
    return folder / "venv/bin"


@pytest.fixture(scope="module")
def sources():
    """The files of the working tree that git does not ignore."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    listed = done("git", "ls-files", "--cached", "--others", "--exclude-standard", folder=ROOT)
    return {name for name in listed.splitlines() if (ROOT / name).exists()}


def test_the_sdist_has_the_files_of_its_commit(release, sources):
    (sdist,) = release.glob("*.tar.gz")
    with tarfile.open(sdist) as packed:
        held = {name.partition("/")[2] for name in packed.getnames()}

    assert sources | {"PKG-INFO"} == held  # else: name it in pyproject.toml, or in .gitignore


# Hatchling leaves .gitignore unread where a line of it matches the folder, as `/tmp*/` does here.
def test_two_builds_of_one_commit_are_the_same_to_the_byte(release, sources, tmp_path):
    clone = tmp_path / "clone"
    for name in sources:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, clone / name)
    for left in ("tests/made/node_modules/left.js", ".venv/left.py", ".coverage", "dist/left.py"):
        (clone / left).parent.mkdir(parents=True, exist_ok=True)
        (clone / left).touch()
    again = built(tmp_path / "again", clone)

    names = sorted(each.name for each in release.iterdir() if each.suffix in {".gz", ".whl"})
    assert 2 == len(names)
    assert all((release / name).read_bytes() == (again / name).read_bytes() for name in names)


def test_the_wheel_lists_what_it_is_made_of(wheel):
    with ZipFile(wheel) as packed:
        sbom = json.loads(packed.read("cueline-0.1.0.dist-info/sboms/cueline.cdx.json"))
        held = {Path(name).name for name in packed.namelist()}

    listed = {each["name"]: each for each in sbom["components"]}
    locked = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    (own,) = [each for each in locked if each["name"] == "cueline"]
    declared = {each["name"] for each in own["dependencies"]}
    extras = {each["name"] for part in own["optional-dependencies"].values() for each in part}
    assert declared | extras <= set(listed)  # else: make lock
    assert declared <= {name for name, each in listed.items() if each.get("scope") == "required"}
    versions = {each["name"]: each["version"] for each in locked}
    for each in sbom["components"]:
        if each["type"] == "file":
            assert each["name"] in held
        else:
            assert versions[each["name"]] == each["version"]  # else: make lock


@pytest.mark.parametrize(
    "command",
    [("uv", "tool", "run", "--from"), ("pipx", "run", "--backend", "uv", "--spec")],
    ids=["uvx", "pipx"],
)
def test_it_runs_without_being_installed(command, binaries, wheel, pins, tmp_path):
    environ = {"UV_CONSTRAINT": f"{pins}", "UV_OFFLINE": "1", "PIPX_HOME": f"{tmp_path}"}
    wanted = (*command, wheel, "cueline", "--version")

    told = done(*wanted, folder=tmp_path, **environ)

    assert "cueline 0.1.0" == told.strip()


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


def test_the_doctor_names_the_packages_that_the_extras_need(binaries, tmp_path):
    found = done(binaries / "cueline", "doctor", "--json", folder=tmp_path)

    (extras,) = [each["found"] for each in json.loads(found) if each["subject"] == "extras"]
    assert "without acp (needs agent-client-protocol), " in extras
    assert "postgres (needs psycopg)" in extras
