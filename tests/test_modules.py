"""Every module can be imported (D35), its text refers to what exists, and the root is tidy."""

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
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
    *(".ci", ".github", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"),
    *("bench", "cueline", "deploy", "docs", "examples", "tests", "Makefile", "README.md"),
    *("mkdocs.yml", "pyproject.toml", "requirements-bench.lock", "requirements.lock", "uv.lock"),
}


# What is at the root is what a newcomer sees first: notes and scratch files are none of it.
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="it is no clone")
def test_nothing_else_is_at_the_root():
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    )

    assert AT_THE_ROOT == {each.partition("/")[0] for each in listed.stdout.split("\0") if each}


SEE = re.compile(r"\b[Ss]ee(?:\s|#)+`([A-Za-z_][\w.]*)`")


def test_what_a_docstring_tells_the_reader_to_see_exists():
    gone = [
        f"{path.relative_to(ROOT)}: {name}"
        for path, (text, tree) in package().items()
        for name in SEE.findall(text)
        if not exists(name, tree)
    ]

    assert gone == []


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("LogBackend", True),
        ("LogBackend.open", True),
        ("backend.LogBackend", True),
        ("stores.backend", True),
        ("Here.on", True),
        ("path.join", True),
        ("LogBackend.opened", False),
        ("wiring.LogBackend", False),
        ("Nowhere", False),
    ],
)
def test_a_reference_resolves_in_the_package_in_its_file_or_in_what_that_imports(name, there):
    tree = ast.parse("from os import path\nclass Here:\n    def on(self): ...")

    assert exists(name, tree) is there


def exists(name: str, tree: ast.Module) -> bool:
    parts = tuple(name.split("."))
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    from_elsewhere = {
        (alias.asname or alias.name).partition(".")[0]
        for node in imports
        if not (getattr(node, "module", None) or "").startswith("cueline")
        for alias in node.names
    }
    return parts in names_of_package() or parts in names_in(tree) or parts[0] in from_elsewhere


@cache
def package() -> dict[Path, tuple[str, ast.Module]]:
    texts = {path: path.read_text() for path in (ROOT / "cueline").rglob("*.py")}
    return {path: (text, ast.parse(text)) for path, text in texts.items()}


@cache
def names_of_package() -> set[tuple[str, ...]]:
    """Each module, what it defines, and each member of a class with its bases' members."""
    paths, bases, members = set(), defaultdict(set), defaultdict(set)
    for path, (_, tree) in package().items():
        module = path.relative_to(ROOT).with_suffix("").parts
        module = module[: -1 if module[-1] == "__init__" else None]
        paths |= {module} | {(*module, *name) for name in names_in(tree)}
        for scope in scopes(tree):
            if isinstance(scope, ast.ClassDef):
                bases[scope.name] |= {ast.unparse(base).partition("[")[0] for base in scope.bases}
                members[scope.name] |= set(defined_by(scope))

    def all_members(name: str) -> set[str]:
        return members[name].union(*map(all_members, bases[name] - {name}))

    inherited = {(name, member) for name in list(members) for member in all_members(name)}
    return inherited | {path[start:] for path in paths for start in range(len(path))}


def names_in(tree: ast.Module) -> set[tuple[str, ...]]:
    found = {(name,) for name in defined_by(tree)}
    for scope in scopes(tree):
        found.add((scope.name,))
        if isinstance(scope, ast.ClassDef):
            found |= {each for name in defined_by(scope) for each in ((name,), (scope.name, name))}
    return found


def scopes(
    scope: ast.Module | ast.stmt,
) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in getattr(scope, "body", ()):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        yield from scopes(node)


def defined_by(scope: ast.Module | ast.ClassDef) -> Iterator[str]:
    for node in scope.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (each.id for each in targets if isinstance(each, ast.Name))
