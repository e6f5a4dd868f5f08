"""What every command has in common."""

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.main import get_command

import cueline
from cueline.cli import app, option
from cueline.runtime.open_log import DEFAULT_LOG

GROUP = get_command(app)


def commands(group, above=""):
    """Tell the commands that do something; a group may be one, too."""
    for name, command in group.commands.items():
        command = getattr(command, "loaded", command)  # noqa: PLW2901 - the same, imported
        children = getattr(command, "commands", None)
        if children is None or command.invoke_without_command:
            yield above + name
        if children:
            yield from commands(command, f"{above}{name} ")


COMMANDS = sorted(commands(GROUP))
NO_LOG = {
    "config show",
    "init",
    "log copy",
    "log schema",
    "policy check",
    "workflow check",
    "workflow show",
    "providers",
    "models",
    "keys set",
    "keys list",
    "keys remove",
    "trust",
    "runner start",  # its log is behind the server
}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_with_an_example(shell, command):
    done = shell(*command.split(), "--help")

    assert done.exit_code == 0
    assert f"  cueline {command}" in done.stdout
    assert "Example" in done.stdout


@pytest.mark.parametrize("command", [c for c in COMMANDS if c not in {"up", "down"}])
def test_every_command_speaks_json_and_takes_a_log(shell, command):
    help_ = shell(*command.split(), "--help").stdout

    assert "--json" in help_
    assert ("--log" in help_) != (command in NO_LOG)


def test_the_first_help_names_every_command_and_the_exit_codes(shell):
    told = shell("--help").stdout

    assert all(f"  {command} " in told for command in GROUP.commands)
    assert "Exit codes: 0 completed" in told


def test_the_first_help_groups_the_commands_by_what_one_wants_to_do(shell):
    told = shell("--help").stdout

    headings = re.findall(r"(?m)^(\w.*):\n  ", told)
    assert ["Options", "Run sessions", "Look at sessions"] == headings[:3]
    assert all(1 == len(re.findall(rf"(?m)^  {name} +[A-Z]", told)) for name in GROUP.commands)


TYPOS = {
    "a command": (["lst"], "No such command 'lst'. Did you mean 'list'?"),
    "a command of a group": (["audit", "verifi"], "Did you mean 'verify'?"),
    "an option": (["list", "--limti", "3"], "No such option: --limti (Possible options: --limit)"),
    "a choice": (["costs", "--by", "modl"], "'tree'. Did you mean 'model'?"),
    "a status": (["list", "--status", "wating"], "did you mean 'waiting'?"),
    "an event": (["audit", "--type", "sessionstart"], "did you mean 'SessionStarted'?"),
}


@pytest.mark.parametrize(("words", "said"), TYPOS.values(), ids=TYPOS)
def test_a_misspelt_word_gets_a_suggestion(shell, words, said):
    done = shell(*words)

    assert done.exit_code == 2
    assert said in done.stderr


def test_the_default_log_is_the_one_of_the_library():
    assert DEFAULT_LOG == option.DEFAULT_LOG


def loaded_by(shell, *words):
    """Return the modules that a command loads."""
    code = (
        "import sys; from cueline.cli import app; app(sys.argv[1:], standalone_mode=False); "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=shell.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


def test_help_loads_little(shell):
    loaded = loaded_by(shell, "--help")

    assert set() == loaded & {"ray", "pydantic", "rich", "anthropic", "sqlite_utils", "asyncio"}


@pytest.mark.parametrize("words", [("list",), ("list", "--json")])
def test_a_list_loads_neither_ray_nor_any_fact(finished, words, monkeypatch):
    monkeypatch.delenv("COLUMNS")  # nobody is at a terminal
    finished("list")

    loaded = loaded_by(finished, *words)

    assert set() == loaded & {
        "ray",
        "anthropic",
        "cueline.client.runtime",
        "cueline.events.codes",
        "cueline.events.fleet",
        "cueline.events.session",
        "httpx2",
        "rich.console",
    }


def test_what_shows_a_session_loads_nothing_that_runs_one(finished):
    loaded = loaded_by(finished, "show", "one")

    assert set() == loaded & {"ray", "httpx2", "cueline.agents.agent", "cueline.client.runtime"}


def test_a_scripted_run_loads_no_client_of_a_vendor(finished):
    loaded = loaded_by(finished, "run", "Again", "--agent", "agent.toml", "--inline")

    assert set() == loaded & {"ray", "anthropic", "httpx2"}


def test_a_decision_needs_no_ray(asking):
    assert "ray" not in loaded_by(asking, "approve", "one.1.0.1")


@pytest.mark.parametrize("module", ["cueline", "cueline.cli"])
def test_the_module_is_the_command(shell, module):
    done = subprocess.run(
        [sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True
    )

    assert f"cueline {version('cueline')}\n" == done.stdout


def test_what_is_no_command_is_usage(shell):
    done = shell("fly")

    assert done.exit_code == 2
    assert "No such command 'fly'" in done.stderr


def completed(shell, monkeypatch, words):
    """Return what the shell offers for the last of *words*."""
    monkeypatch.setenv("_CUELINE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", "2")
    main = [sys.executable, "-c", "from cueline.cli import main; main()"]
    done = subprocess.run(main, cwd=shell.folder, capture_output=True, text=True, check=False)
    return done.stdout.split()


@pytest.mark.parametrize("command", ["show", "erase"])
def test_ids_are_completed_by_the_shell(finished, monkeypatch, command):
    assert "one" in completed(finished, monkeypatch, f"cueline {command} o")


def test_types_of_events_are_completed():
    assert ["ToolReconciled", "ToolReturned"] == option.complete_type("ToolR")


def test_approvals_are_completed_from_the_log_that_is_set(asking, monkeypatch):
    moved = asking.log.parent.rename(asking.folder / "elsewhere")
    monkeypatch.setenv("CUELINE_LOG", str(moved / "log.db"))

    assert "one.1.0.1" in completed(asking, monkeypatch, "cueline approve o")


def test_this_machine_is_examined(shell, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-not-a-real-key")

    found = {each["subject"]: each for each in shell.json("doctor")}

    assert f"{version('cueline')} ({Path(cueline.__file__).parent})" == found["cueline"]["found"]
    assert {"postgres", "serve"} <= set(found["extras"]["found"].split("; ")[0].split(", "))
    assert found["SQLite"]["found"].endswith("with FTS5")
    assert {"Python", "SQLite", "disk", "fsync", "log", "isolation", "Ray", "keys"} <= found.keys()
    assert found["keys"]["found"].startswith("anthropic: ANTHROPIC_API_KEY")
    assert "sk-ant" not in shell("doctor").stdout


def test_a_disk_that_takes_nothing_is_told_by_the_doctor(shell):
    (shell.folder / "doctor.sh").write_text('ulimit -f 0 && exec "$@"')
    words = ["sh", "doctor.sh", sys.executable, "-m", "cueline.cli", "doctor"]

    said = subprocess.run(words, cwd=shell.folder, capture_output=True, text=True, check=False)

    assert "✗ fsync: nothing can be written: " in said.stdout
    assert "✗ tmp: no folder takes a file\n    make room" in said.stdout
    assert "" == said.stderr


def test_what_has_to_be_mended_is_told(finished):
    finished.change("UPDATE meta SET format = 99")

    done = finished("doctor")

    assert done.exit_code == 1
    assert "✗ log: " in done.stdout
