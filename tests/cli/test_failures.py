"""Failures as a user sees them: retries, another model, a result that lacks something."""

import pytest

SECOND = """
[[reply]]
turn = 1
text = "The second answers."
"""
DOWN = """
[[reply]]
turn = 1
fail = { kind = "overloaded", message = "busy" }
"""
NO_FILE = """
[[reply]]
calls = [{ name = "read_file", arguments = { path = "missing.txt" } }]

[[reply]]
text = "There is no such file."
"""
FALLBACK = """
[retry]
max_retries = 1
base_seconds = 0.01

[[fallback]]
provider = "scripted"
model = "second.toml"
"""


def run(shell, agent, *more):
    return shell("run", "Go", "--agent", agent, "--inline", "--id", "one", *more)


def test_another_model_answers_where_the_first_cannot(shell):
    (shell.folder / "second.toml").write_text(SECOND)

    done = run(shell, shell.agent(DOWN, more=FALLBACK))

    assert done.exit_code == 0
    assert "! the model did not answer (overloaded): busy; retry 1/1 in " in done.stdout
    assert "second.toml is asked instead of scripted " in done.stdout
    assert "The second answers." in done.stdout


def test_after_the_last_model_a_person_is_told_how_it_goes_on(shell):
    (shell.folder / "second.toml").write_text(DOWN)

    done = run(shell, shell.agent(DOWN, more=FALLBACK))

    assert done.exit_code == 3
    assert "paused: error: overloaded: busy" in done.stdout
    assert "cueline resume one" in done.stdout


# C5, 004-006: seen in the summary, the lists and the export.
@pytest.mark.parametrize("critical", ["true", "false"])
def test_a_result_that_lacks_something_says_so_everywhere(shell, critical):
    settings = f"[tool_settings.read_file]\ncritical = {critical}\n"
    agent = shell.agent(NO_FILE, tools=("read_file",), more=settings)

    done = run(shell, agent)

    partial = critical == "false"
    assert done.exit_code == 0
    assert partial == ("one: completed, partial · " in done.stdout)
    assert partial == ("failed (tool_error); the work goes on without it" in done.stdout)
    assert partial == ("completed, partial" in shell("list").stdout)
    (listed,) = shell.json("list")
    assert partial is listed["partial"] is shell.json("export", "one")["partial"]
    (call,) = shell.json("export", "one")["tool_calls"]
    assert partial is call.get("degraded", False)


def test_a_fallback_that_cannot_be_asked_is_named_before_anything_is_recorded(shell):
    done = run(shell, shell.agent(DOWN, more=FALLBACK))

    assert done.exit_code == 2
    assert "second.toml" in done.stderr
    assert not (shell.folder / ".cueline").exists()
