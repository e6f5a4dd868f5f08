"""`cueline init`: write an agent, its tool and its test, to begin with."""

from importlib.resources import files
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from cueline.cli.failure import Exit
from cueline.cli.option import JsonOption
from cueline.console.text import json_of, visible
from cueline.errors import ConfigError
from cueline.suggestion import known_instead

_HELP = """Write an agent file, a tools file and a test, to begin with.

The agent needs no key: its model is a script. agent.toml says how to use a real
model. A file that exists is never overwritten.

With --chain it writes a chain of agents instead: full-pipeline (plan, implement,
review, bugfix) or implement-and-review.

\b
Examples:
  cueline init
  cueline init my-agent
  cueline init --chain full-pipeline
"""

_AGENT = '''\
# An agent: which model decides, what it is told, and what it may do.
# `cueline config show --agent agent.toml` shows each setting and its source.
name = "assistant"

# The scripted provider needs no key: it answers what script.toml says.
# For a real model set {variable}, and put these two lines in their place:
#   provider = "{provider}"
#   model = "{model}"
provider = "scripted"
model = "script.toml"

instructions = """
You answer questions about texts. Count words with the tool; do not guess.
"""

# "read_file" comes with cueline; "tools.py:count_words" is a function in tools.py.
tools = ["read_file", "tools.py:count_words"]

# The folder that file tools work in. They cannot leave it.
workspace = "."

# At a limit the session pauses, and asks you whether it may go on.
[limits]
max_turns = 20
# max_cost = "1.00"  # US dollars; for a real model

[policy]
approval = "sensitive"  # a person allows each call of a tool that is declared sensitive
'''

_SCRIPT = """\
# What the scripted model replies, one [[reply]] a turn.
[[reply]]
text = "I count the words."
calls = [{ name = "count_words", arguments = { text = "to be or not to be" } }]

[[reply]]
text = "It has 6 words."

[[reply]]
text = "My script ends here. Put a real model into agent.toml, and I can answer."
"""

_TOOLS = '''\
"""The agent's own tools: typed functions with a docstring, which the model reads."""

from cueline import tool


# read_only: a second run changes nothing, so cueline may repeat the call after a crash.
# Other declarations: idempotent=True, reconcile=function, sensitive=True.
@tool(read_only=True)
def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())
'''

_TEST = '''\
"""Tests of the agent and its tool. Run them with `python -m pytest`."""

import asyncio
from pathlib import Path

import cueline
from tools import count_words

AGENT = Path(__file__).with_name("agent.toml")


def test_the_tool_counts_words():
    assert 2 == count_words("hello world")


def test_the_agent_counts_the_words_and_answers(tmp_path):
    async def run():
        agent = cueline.Agent.from_file(AGENT)
        async with cueline.open_runtime(tmp_path / "log.db", on="inline") as runtime:
            session = await runtime.start(agent, "How many words has 'to be or not to be'?")
            return await session.result()

    result = asyncio.run(run())

    assert "completed" == result.status
    assert "6 words" in result.text
'''

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
"""The agents of each chain in `cueline/chains`."""
_FILES = {"script.toml": _SCRIPT, "tools.py": _TOOLS, "test_agent.py": _TEST}


def register(app: typer.Typer) -> None:
    app.command("init", help=_HELP, short_help="Write an agent, its tool and its test.")(init)


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
    """Write the files.

    Raises:
        ConfigError: there is no such chain, or one of them exists; nothing is written.
    """
    texts = {"agent.toml": _agent(), **_FILES} if chain is None else _chain_files(chain)
    paths = {folder / name: text for name, text in texts.items()}
    for path in paths:
        if path.exists():
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
    shipped = files("cueline") / "chains"
    names = [f"{each}.toml" for each in (chain, *_CHAINS[chain])]
    return {name: (shipped / name).read_text(encoding="utf-8") for name in names}


def _agent() -> str:
    """Return the agent's file, which names the provider and model for those that name none."""
    from cueline.providers.registry import DEFAULT, provider_named

    usual = provider_named(DEFAULT)
    assert usual.endpoint is not None, "it is a vendor"
    return _AGENT.format(
        provider=usual.name, model=usual.default_model, variable=usual.endpoint.key_variable
    )
