"""Writes the tables of `docs/reference/providers.md`: `python -m tests.providers.table`."""

import importlib
import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from cueline.providers.provider import Capabilities, Provider
from cueline.providers.registry import providers
from cueline.testing.model_contract import ModelContract

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs/reference/providers.md"
SERVER, YES, NO = "server", "yes", ""
Tests = list[Callable[..., object]]


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join([row(*head), row(*["---"] * len(head)), *(row(*cells) for cells in rows)])


def capability_table() -> str:
    """Return what each provider can do."""
    ours = [each for each in providers() if each.make.__module__.startswith("cueline.")]
    listed = [provider for provider in ours if provider.name != "replay"]
    named = [field.name for field in fields(Capabilities)]
    rows = [
        [name.replace("_", " "), *(YES if able(provider, name) else NO for provider in listed)]
        for name in named
    ]
    rows += [
        ["default model", *(code(provider.default_model) for provider in listed)],
        ["variable of the key", *(code(p.endpoint and p.endpoint.key_variable) for p in listed)],
        ["variable of the URL", *(code(p.endpoint and p.endpoint.url_variable) for p in listed)],
        ["variable of the model", *(code(provider.model_variable) for provider in listed)],
    ]
    return table(["", *(code(provider.name) for provider in listed)], rows)


def able(provider: Provider, name: str) -> bool:
    return getattr(provider.capabilities, name)


def code(text: str | None) -> str:
    return f"`{text}`" if text else ""


def contracts() -> dict[str, list[type[ModelContract]]]:
    """Return the classes that hold providers to the contract, by the columns that they are of."""
    found: dict[str, list[type[ModelContract]]] = {}
    for path in sorted(HERE.glob("test_*_contract.py")):
        module = importlib.import_module(f"tests.providers.{path.stem}")
        for each in vars(module).values():
            if (
                isinstance(each, type)
                and issubclass(each, ModelContract)
                and each is not ModelContract
            ):
                found.setdefault(each.title or each.provider.name, []).append(each)
    return found


def cases() -> dict[str, Tests]:
    """Return the tests of the contract by the rows that they are about."""
    found: dict[str, Tests] = {}
    for name, test in inspect.getmembers(ModelContract, inspect.isfunction):
        if name.startswith("test_"):
            found.setdefault(vars(test)["case"].title, []).append(test)
    return found


def result(contracts: list[type[ModelContract]], tests: Tests) -> str:
    """Return how a provider is held to some tests."""
    held = [t for t in tests if any(not c.missing(vars(t)["case"]) for c in contracts)]
    if not held:
        return NO
    return SERVER if any("server" in inspect.signature(test).parameters for test in held) else YES


def contract_table() -> str:
    """Return which cases each provider is held to."""
    held = contracts()
    rows = [
        [title, *(result(each, tests) for each in held.values())]
        for title, tests in sorted(cases().items())
    ]
    return table(["", *held], rows)


def updated(page: str) -> str:
    """Return *page* with its tables made anew."""
    for name, made in (("capabilities", capability_table()), ("contract", contract_table())):
        between = rf"(<!-- {name} -->\n\n).*?(\n\n<!-- end -->)"
        page = re.sub(between, lambda m, made=made: m[1] + made + m[2], page, flags=re.DOTALL)
    return page


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text()))
