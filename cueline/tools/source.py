"""Reads a tool's name from its source without running it."""

import ast
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path


def name_in_source(target: str) -> str | None:
    """Return the name of the tool at *target* by its source; None if that does not tell.

    No code runs, not even that of the module's package.
    """
    address, _, name = target.rpartition(":")
    file = Path(address) if address.endswith(".py") else _file_of(address)
    try:
        tree = ast.parse(file.read_bytes()) if file is not None else ast.Module([], [])
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return _declared_name(node)
    return None


def _declared_name(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    for decorator in function.decorator_list:
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
            if keyword.arg in {"name", None}:  # None: the whole of a mapping
                said = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                return said if isinstance(said, str) else None
    return function.name


def _file_of(module: str) -> Path | None:
    """Return the file of an installed module without importing it."""
    places: Sequence[str] | None = None
    pieces = module.split(".")
    for number in range(len(pieces)):
        spec = PathFinder.find_spec(".".join(pieces[: number + 1]), places)
        if spec is None:
            return None
        places = spec.submodule_search_locations
    return Path(spec.origin) if spec is not None and spec.origin else None
