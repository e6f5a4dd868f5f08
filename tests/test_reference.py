"""The reference: it has all that there is, with its types, defaults and variables."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperCommand, TyperGroup

import cueline
from cueline import errors
from cueline.agents.agent import Agent
from cueline.cli import app
from cueline.config.settings import leaves
from cueline.events.agent import Limits, Policy
from cueline.events.agent_parts import BreakerPolicy, IsolationLimits, RetryPolicy
from cueline.events.codec import FACTS
from cueline.projections.read_model import columns, columns_of
from cueline.projections.views import MODELS

DOCS = Path(__file__).parents[1] / "docs"


def commands(command: TyperCommand | TyperGroup, name: str = "cueline") -> Iterator[str]:
    if isinstance(command, TyperGroup):
        for child, each in command.commands.items():
            yield f"{name} {child}"
            yield from commands(getattr(each, "loaded", each), f"{name} {child}")


def sections(page: str, level: str) -> dict[str, str]:
    """Return the sections of a page by the code words in their headings."""
    parts = re.split(rf"(?m)^{level} (.+)$", (DOCS / page).read_text())
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return {name: body for heading, body in pairs for name in re.findall(r"`(\w+)`", heading)}


def first_column(text: str) -> set[str]:
    cells = re.findall(r"(?m)^\| (.+?) \|", text)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


@pytest.mark.parametrize("command", list(commands(typer.main.get_command(app))))
def test_the_reference_has_each_command(command):
    assert re.search(rf"`{command}\b", (DOCS / "reference/cli.md").read_text())


def test_the_reference_has_each_event_and_its_fields():
    told = {
        name: first_column(body) for name, body in sections("reference/events.md", "###").items()
    }

    assert {name: set(fact.model_fields) - {"type"} for name, fact in FACTS.items()} == told


def test_the_reference_has_each_error():
    defined = {name for name in vars(errors) if name.endswith("Error")}

    assert defined - {"CuelineError"} == first_column((DOCS / "reference/errors.md").read_text())


def test_the_reference_has_each_public_name():
    assert set(cueline.__all__) == set(sections("reference/api.md", "###"))


COLUMN_TYPES = {
    str: "text",
    str | None: "text or null",
    int: "integer",
    int | None: "integer or null",
    float: "real",
    bool: "0 or 1",
}


def test_the_reference_has_each_table_and_its_columns():
    told = {n: first_column(body) for n, body in sections("reference/read-models.md", "##").items()}

    there = {model.TABLE: set(columns(model)) for model in MODELS}

    assert {**there, "checkpoint": set(), "words": set()} == told


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.TABLE)
def test_the_reference_has_the_type_of_each_column(model):
    body = sections("reference/read-models.md", "##")[model.TABLE]
    told = dict(re.findall(r"(?m)^\| `(\w+)` \| ([^|]+) \| [^|]+ \|$", body))

    there = {c.name: COLUMN_TYPES[c.kind] for c in columns_of(model) if c.name}

    assert there == told


def written(value: object) -> str:
    """Return a default as an agent file would say it."""
    if isinstance(value, tuple):
        return json.dumps(value)
    return str(value).lower()


AGENT_PARTS = [Agent, Limits, RetryPolicy, BreakerPolicy, Policy, IsolationLimits]


@pytest.mark.parametrize("part", AGENT_PARTS)
def test_the_reference_has_each_key_of_an_agent_file_with_its_default(part):
    rows = (DOCS / "reference/agent-file.md").read_text().splitlines()
    for name, field in part.model_fields.items():
        row = next(r for r in rows if r.startswith("|") and f"`{name}`" in r.split("|")[1])
        if part is not Agent:
            assert written(field.default) in row.lower()


@pytest.mark.parametrize("leaf", leaves().values(), ids=lambda leaf: leaf.key)
def test_the_reference_has_each_setting_with_its_variable(leaf):
    """004-067."""
    page = (DOCS / "reference/settings.md").read_text()
    table, _, name = leaf.key.rpartition(".")
    if table and table in Agent.model_fields:
        # Its key and default are in the page on agent files, its variable follows a rule.
        (row,) = [row for row in page.splitlines() if row.startswith(f"| [`[{table}]`]")]
        usual = f"CUELINE_{'' if table == 'limits' else f'{table.upper()}_'}{name.upper()}"
        assert leaf.variable == usual or f"`{leaf.variable or leaf.key}`" in page
        return
    (row,) = [row for row in page.splitlines() if row.startswith(f"| `{name}` |")]
    assert (f"`{leaf.variable}`" if leaf.variable else "| |") in row
    assert (str(leaf.default) if leaf.default else "none") in row
