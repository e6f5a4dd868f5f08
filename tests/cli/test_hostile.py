"""What a model and a tool say may hold anything; no command hands it to the terminal."""

import json

import pytest

from cueline.console.text import visible

HOSTILE = "a\x1b[2Jb\x1b]52;c;ZQ==\x07c\rd\x08e\u202ef\x9b31mg\u200bh\x7fi\U000e0041j\nk"
TOOL = f"""
from cueline import tool

@tool(read_only=True)
def say(text: str) -> str:
    "Say it."
    return {HOSTILE!r} * 2

@tool(read_only=True)
def fail(text: str) -> str:
    "Fail at it."
    raise ValueError({HOSTILE!r})

@tool(sensitive=True)
def ask(text: str) -> str:
    "Ask for it."
    return text
"""


def toml(text):
    return '"' + "".join(f"\\U{ord(character):08x}" for character in text) + '"'


def call(name):
    return f"{{ name = {name}, arguments = {{ text = {toml(HOSTILE)} }} }}"


SCRIPT = f"""
[[reply]]
text = {toml(HOSTILE)}
calls = [{call(toml(HOSTILE))}, {call('"say"')}, {call('"fail"')}]
[[reply]]
calls = [{call('"ask"')}]
[[reply]]
fail = {{ kind = "refused", message = {toml(HOSTILE)} }}
"""


@pytest.fixture
def told(shell):
    """What `run` and `resume` said."""
    (shell.folder / "tools.py").write_text(TOOL)
    tools = tuple(f"{shell.folder}/tools.py:{name}" for name in ("say", "fail", "ask"))
    shell.agent(SCRIPT, tools=tools, more=shell.reachable)
    ran = shell("run", HOSTILE, "--agent", "agent.toml", "--inline", "--id", "one")
    pending = shell("pending").output + shell("pending", "--json").output
    shell("approve", "one.2.0.1", "--note", HOSTILE)
    return ran.output + pending + shell("resume", "one", "--inline").output


COMMANDS = (
    "show one",
    "show one --full",
    "show one --json",
    "tail one -n 99",
    "tail one -n 99 --json",
    "list",
    "list --json",
    "export one",
    "export one --format events",
    "replay one",
    "replay one --json",
    "audit",
    "audit --json",
    "policy backtest agent.toml --calls",
)


def test_no_command_prints_what_a_terminal_would_obey(shell, told):
    """One run: it is the commands that differ."""
    assert told == visible(told)
    for command in COMMANDS:
        done = shell(*command.split())
        assert done.output == visible(done.output), command
        assert done.output, command


@pytest.mark.parametrize(
    "command",
    [
        "doctor",
        "config show",
        "list --agent nobody",
        "audit --type SessionFailed",
        "costs",
        "breakers",
        "show one",
        "run Hi --agent agent.toml --detach",
        "policy check agent.toml",
    ],
)
def test_the_name_of_a_log_or_of_a_file_moves_no_cursor(shell, command):
    name = HOSTILE.replace("\n", "")
    settings = ("--config", f"{name}.toml")
    (shell.folder / f"{name}.toml").write_text(f"log = {toml(name)}\n")
    (shell.folder / shell.agent(shell.hello)).rename(shell.folder / f"{name}agent.toml")
    shell(*settings, "run", "Hi", "--agent", f"{name}agent.toml", "--detach", "--id", "one")

    done = shell(*settings, *command.replace("agent.toml", f"{name}agent.toml").split(" "))

    assert done.output == visible(done.output)
    assert visible(name) in done.output


def test_what_is_escaped_for_a_terminal_means_the_same_to_a_program(shell, told):
    assert HOSTILE == shell.json("list")[0]["goal"]
    assert json.dumps(HOSTILE) in json.dumps(shell.json("export", "one"))
