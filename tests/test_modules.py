"""Every module of the package can be imported (D35)."""

from importlib import import_module
from pkgutil import walk_packages

import pytest

import cueline

MODULES = sorted(module.name for module in walk_packages(cueline.__path__, "cueline."))


@pytest.mark.parametrize("module", [name for name in MODULES if not name.endswith("__main__")])
def test_a_module_can_be_imported(module):
    assert module == import_module(module).__name__
