"""The address of a tool: `module:name`, or `path.py:name`.

A tool that other processes cannot import raises `ToolImportError`; the message says what to do.
"""

import ast
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from cueline.errors import CuelineError, ToolImportError
from cueline.events.agent import SCHEMES

FILE_MODULE = "cueline_file_"
LOADING: set[str] = set()
"""Files whose top level is running, because one of their tools was requested."""


def locate(tool: object, module_name: str) -> str:
    """Return the target by which another process finds *tool*."""
    module = sys.modules.get(module_name)
    names = vars(module).items() if module else ()
    name = next((name for name, value in names if value is tool), None)
    if module is None or name is None:
        where = f"not at the top level of {module_name}, the module of its function"
        reason = f"{where}: put it there, under a name, or call that from a function of your own"
        raise ToolImportError(str(getattr(tool, "name", tool)), reason)
    target = f"{address(module, name)}:{name}"
    if target.startswith(SCHEMES):
        reason = f"the module {module.__name__} has the name of a scheme: rename the module"
        raise ToolImportError(target, reason)
    return target


def address(module: ModuleType, name: str) -> str:
    """Return the address of *module* for other processes."""
    if module.__name__.startswith(FILE_MODULE):
        return str(module.__file__)
    if module.__name__ != "__main__":
        return module.__name__
    if module.__spec__ is not None:  # started by `python -m`
        return module.__spec__.name
    file = Path(getattr(module, "__file__", None) or "<prompt>")
    if not file.is_file():
        reason = "defined at a prompt or in a notebook, which no other process can import"
        raise ToolImportError(name, f"{reason}: put it in a module")
    return str(file.resolve())


def fetch(target: str) -> object:
    """Return the object at *target*; a file is run once in a process."""
    address, _, name = target.rpartition(":")
    if not address or not name:
        raise ToolImportError(target, "not of the form `module:name` or `path.py:name`")
    if address.endswith(".py") and not Path(address).is_file():
        raise ToolImportError(target, "there is no such file")
    try:
        module = from_file(address) if address.endswith(".py") else importlib.import_module(address)
    except CuelineError as error:  # an error of cueline about a tool in the module
        raise ToolImportError(target, str(error)) from error
    except ModuleNotFoundError as error:  # the module was in the folder of the first program
        raise ToolImportError(
            target, f"{error}; install it, or name its folder in PYTHONPATH"
        ) from error
    except (Exception, SystemExit) as error:  # the module is foreign code
        raise ToolImportError(target, f"{type(error).__name__}: {error}") from error
    if not hasattr(module, name):
        raise ToolImportError(target, f"{address} has no `{name}`")
    found: object = getattr(module, name)
    return found


def from_file(address: str) -> ModuleType:
    """Return the module of a file; a running script is not run again."""
    path = Path(address).resolve(strict=True)
    main = sys.modules["__main__"]
    if main.__spec__ is None and Path(getattr(main, "__file__", None) or "/").resolve() == path:
        return main
    name = FILE_MODULE + hashlib.sha256(str(path).encode()).hexdigest()[:16]
    return sys.modules.get(name) or run_file(name, path)


def run_file(name: str, path: Path) -> ModuleType:
    """Run *path* as the module *name*."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    LOADING.add(str(path))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        LOADING.discard(str(path))
    return module


def name_in_source(target: str) -> str | None:
    """Return the name of the tool at *target* from its source; None if the source does not show it.

    No code runs, not even the code of the module's package.
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
            if keyword.arg in {"name", None}:  # None: all keywords of a mapping
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
