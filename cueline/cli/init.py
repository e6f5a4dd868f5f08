"""`cueline init`: write a first agent, its tool and its test."""

from importlib.resources import files
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from cueline.cli.failure import Exit
from cueline.cli.option import JsonOption
from cueline.console.text import json_of, visible
from cueline.errors import ConfigError
from cueline.errors.suggestion import known_instead
from cueline.providers.registry import DEFAULT, provider_named

_NEXT = """\
  cueline run "How many words has 'to be or not to be'?" --agent agent.toml
  python -m pytest"""
_NEXT_OF_CHAIN = """\
  cueline workflow show {chain}.toml
  cueline run {chain}.toml -p goal="…\""""
_CHAINS = {
    "full-pipeline": ("plan", "implement", "review", "bugfix"),
    "implement-and-review": ("implement", "review"),
}
"""The agents of each chain in `cueline/agents/chains`."""
_FILES = ("agent.toml", "script.toml", "tools.py", "test_agent.py")
"""The files in `cueline/agents/starter`; the suffix `.txt` keeps a file from being a module."""


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="The folder; it is made.", show_default=False)
    ] = Path(),
    *,
    chain: Annotated[
        str | None, typer.Option("--chain", metavar="NAME", help="Write this chain and its agents.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a first agent file, a tools file and a test.

    The agent needs no key: its model is a script. Comments in agent.toml show how to
    use a real model. An existing file is never overwritten.

    With --chain it writes a chain of agents instead: full-pipeline (plan, implement,
    review, bugfix) or implement-and-review.

    \b
    Examples:
      cueline init
      cueline init my-agent
      cueline init --chain full-pipeline
    """
    texts = _starter_files() if chain is None else _chain_files(chain)
    paths = {folder / name: text for name, text in texts.items()}
    for path in paths:
        if path.exists() or path.is_symlink():
            raise ConfigError(str(path), "it exists already; name another folder, or move it away")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in paths.items():
        path.write_text(text)
    if as_json:
        typer.echo(json_of({"files": [str(path) for path in paths]}, indent=2))
    else:
        typer.echo(visible("wrote " + ", ".join(map(str, paths))))
        typer.echo("next:")
        if folder != Path():
            typer.echo(visible(f"  cd {quote(str(folder))}"))
        typer.echo(_NEXT if chain is None else _NEXT_OF_CHAIN.format(chain=chain))
    raise typer.Exit(Exit.DONE)


def _chain_files(chain: str) -> dict[str, str]:
    """Return the files of the shipped *chain* by name.

    Raises:
        ConfigError: there is no such chain.
    """
    if chain not in _CHAINS:
        raise ConfigError("--chain", f"{chain!r} is unknown{known_instead(chain, _CHAINS)}")
    shipped = files("cueline") / "agents" / "chains"
    names = [f"{each}.toml" for each in (chain, *_CHAINS[chain])]
    return {name: (shipped / name).read_text(encoding="utf-8") for name in names}


def _starter_files() -> dict[str, str]:
    """Return the first files; agent.toml names the usual provider and model."""
    usual = provider_named(DEFAULT)
    assert usual.endpoint is not None, "it is a vendor"
    shipped = files("cueline") / "agents" / "starter"
    places = {name: shipped / (f"{name}.txt" if name.endswith(".py") else name) for name in _FILES}
    texts = {name: place.read_text(encoding="utf-8") for name, place in places.items()}
    names = {"provider": usual.name, "model": usual.default_model}
    return {
        **texts,
        "agent.toml": texts["agent.toml"].format(**names, variable=usual.endpoint.key_variable),
    }
