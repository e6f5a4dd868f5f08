"""Stores with one thing wrong, and the contract run against them."""

import asyncio
import importlib
import inspect
import itertools
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from cueline.testing.event_store_example import SetClock
from tests.stores.quick import QUICK

ROOT = Path(__file__).parents[2] / "cueline"


class Mutant(NamedTuple):
    """One small change to the source."""

    what: str
    part: type
    """The part of the contract that has to notice."""
    file: str
    old: str
    new: str


@contextmanager
def grown(mutant):
    """Make a copy of the stores with the change, and give what opens its log in a folder."""
    name = f"mutant_{abs(hash(mutant)):x}"
    with tempfile.TemporaryDirectory(dir=QUICK) as folder:
        copy = Path(folder, name)
        shutil.copytree(ROOT / "stores", copy, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "events" / "chain.py", copy)
        for path in copy.glob("*.py"):
            text = path.read_text()
            if path.name == mutant.file:
                assert text.count(mutant.old) == 1, f"{mutant.what}: {text.count(mutant.old)}"
                text = text.replace(mutant.old, mutant.new)
            text = text.replace("cueline.stores", name).replace(
                "cueline.events.chain", f"{name}.chain"
            )
            path.write_text(text)
        sys.path.insert(0, folder)
        try:
            store = importlib.import_module(f"{name}.sqlite").SqliteStore
            yield lambda folder, clock: store.open(Path(folder, "log.db"), clock)
        finally:
            sys.path.remove(folder)
            for module in [m for m in sys.modules if m.partition(".")[0] == name]:
                del sys.modules[module]


def cases(part):
    """Yield each test of a part of the contract with its parameters, as pytest would."""
    for name, test in inspect.getmembers(part, inspect.isfunction):
        if name.startswith("test_"):
            prompt_digests = [m for m in getattr(test, "pytestmark", ()) if m.name == "parametrize"]
            for values in itertools.product(*(mark.args[1] for mark in prompt_digests)):
                given = {}
                for mark, value in zip(prompt_digests, values, strict=True):
                    names = mark.args[0]
                    given |= (
                        {names: value}
                        if isinstance(names, str)
                        else dict(zip(names, value, strict=True))
                    )
                yield name, test, given


async def run_case(open_store, contract, test, given, within):
    with tempfile.TemporaryDirectory(dir=QUICK) as folder:
        clock = SetClock()
        store = open_store(folder, clock)
        wanted = inspect.signature(test).parameters
        fixtures = {"store": store, "clock": clock}
        given = given | {name: fixtures[name] for name in wanted if name in fixtures}
        try:
            await asyncio.wait_for(test(contract, **given), within)
        finally:
            await store.close()


async def first_failure_of(open_store, part, within):
    for name, test, given in cases(part):
        try:
            await run_case(open_store, part(), test, given, within)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - any of them notices
            return f"{name}: {type(error).__name__}"
    return None


def first_failure(open_store, part, within):
    """Return the first test of a part of the contract that the store does not pass in time."""
    return asyncio.run(first_failure_of(open_store, part, within))
