"""A file of rules in which every function raises, while a test wants it to."""

import importlib
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType

import cueline

RULES = Path(cueline.__file__).parent / "deciders"
RAISED = []
"""Grows by one with each call of a function that raises."""


def _raise(*_args, **_named):
    __import__("importlib").import_module("tests.actors.rule_fault").RAISED.append(1)
    raise TypeError("a rule is broken")


def rule_files():
    """Return the files on the disk that have rules."""
    names = [str(path.relative_to(RULES)) for path in sorted(RULES.rglob("*.py"))]
    return [name for name in names if not name.endswith("__init__.py") and functions_of(name)]


def functions_of(name):
    """Return all functions that are written in a file of rules, but for those with a closure."""
    dotted = name.removesuffix(".py").replace("/", ".")
    module = importlib.import_module(f"cueline.deciders.{dotted}")
    owners = [module, *(each for each in vars(module).values() if isinstance(each, type))]
    found = {}
    for each in [member for owner in owners for member in vars(owner).values()]:
        plain = getattr(each, "fget", None) or getattr(each, "__wrapped__", each)
        plain = getattr(plain, "__func__", plain)
        if isinstance(plain, FunctionType) and plain.__code__.co_filename == str(RULES / name):
            found[id(plain)] = plain
    # A closure takes no other code.
    return [each for each in found.values() if not each.__code__.co_freevars]


class Fault:
    """The functions of one file: they raise from `begin` to `end`, once."""

    def __init__(self, name, only=None):
        functions = [f for f in functions_of(name) if only in (None, f.__name__)]
        self._whole = [(each, each.__code__) for each in functions]
        self._over = False
        RAISED.clear()

    def begin(self):
        for each, _ in self._whole if not self._over else ():
            each.__code__ = _raise.__code__

    def end(self):
        self._over = True
        for each, code in self._whole:
            each.__code__ = code

    @property
    def was_met(self):
        """Whether a function raised."""
        return bool(RAISED)


@contextmanager
def fault_in(name, only=None):
    """Yield the fault of a file, which is mended at the end in any case."""
    fault = Fault(name, only)
    try:
        yield fault
    finally:
        fault.end()
