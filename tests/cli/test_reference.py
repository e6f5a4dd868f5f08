"""The page on commands names each option."""

from pathlib import Path

import pytest
from typer.main import get_command

from cueline.cli import app

PAGE = (Path(__file__).parents[2] / "docs/reference/cli.md").read_text()
EVERYWHERE = {"--log", "--json", "--plain", "--help", "-h"}


def commands():
    for name, lazy in get_command(app).commands.items():
        command = lazy.loaded
        children = getattr(command, "commands", {})
        if not children or command.invoke_without_command:
            yield name, command
        for child, each in children.items():
            yield f"{name} {child}", each


@pytest.mark.parametrize(("name", "command"), list(commands()), ids=str)
def test_the_page_names_each_option(name, command):
    section = PAGE.partition(f"### `cueline {name}`\n")[2].partition("\n### ")[0]
    shown = (each for each in command.params if not getattr(each, "hidden", False))
    options = {option for parameter in shown for option in parameter.opts}
    told = {option for option in options if f"`{option}" in section or f" {option} " in section}

    assert f"$ cueline {name}" in section
    assert set() == {each for each in options - told - EVERYWHERE if each.startswith("-")}
