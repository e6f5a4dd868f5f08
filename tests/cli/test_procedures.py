"""`cueline run FILE -p` and `cueline send --name`: sessions with a plan at the command line."""

import json

import pytest

PROCEDURE = """
name = "count"
provider = "procedure"
command = ["python3", "-c", "import json, sys; print(json.dumps(json.load(sys.stdin)))"]

[parameters_schema]
type = "object"
required = ["path"]
properties.path.type = "string"
properties.width.type = "integer"
"""
FLOW = """
name = "gate"
provider = "workflow"

[[steps]]
name = "go"
wait = "go"
"""


@pytest.fixture
def files(shell):
    (shell.folder / "count.toml").write_text(PROCEDURE)
    (shell.folder / "flow.toml").write_text(FLOW)
    return shell


def test_a_file_is_run_with_parameters(files):
    done = files("run", "count.toml", "-p", "path=12", "-p", "width=3", "--id", "c1", "--inline")

    assert 0 == done.exit_code
    assert {"path": "12", "width": 3} == json.loads(files.json("show", "c1", "--json")["result"])
    assert "completed: {" in done.stdout + done.stderr


def test_a_session_is_listed_with_its_parameters(files):
    given = ("-p", "path=cat.png", "-p", "width=3")
    files("run", "count.toml", *given, "--id", "c1", "--detach")

    [_, row] = files("list").stdout.splitlines()
    [session] = files.json("list")

    assert row.endswith(' path="cat.png" width=3')
    assert (None, {"path": "cat.png", "width": 3}) == (session["goal"], session["parameters"])


def test_the_result_of_a_plan_is_a_value_for_programs(files):
    done = files.json("run", "count.toml", "-p", "path=12", "--inline")

    assert {"path": "12"} == done["value"]


def test_an_agent_that_needs_no_goal_is_named_by_option_too(files):
    done = files("run", "--agent", "count.toml", "-p", "path=12", "--id", "c1", "--inline")

    assert 0 == done.exit_code


def test_a_file_that_is_not_there_is_named(files):
    done = files("run", "coutn.toml", "-p", "path=12")

    assert (2, True) == (done.exit_code, "coutn.toml: there is no such agent file" in done.stderr)


@pytest.mark.parametrize("words", [("agent.toml",), ("--agent", "agent.toml")])
def test_an_agent_with_a_model_needs_a_goal(files, words):
    files.agent(files.hello)

    done = files("run", *words)

    assert (2, True) == (done.exit_code, "GOAL is missing" in done.stderr)
    assert [] == files.json("list")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("-p", "width=3"), "parameter_validation_failed"),
        (("-p", "width"), "'width' is not NAME=VALUE"),
        (("-p", "path=a", "-p", "width=x"), '"x" is not of type "integer"'),
        (("-p", "path=a", "--open"), "open: count follows a plan, so no model reads messages"),
    ],
)
def test_what_does_not_fit_is_named(files, given, why):
    done = files("run", "count.toml", *given, "--inline")

    assert (2, True) == (done.exit_code, why in done.stderr)


def test_a_step_gets_its_message(files):
    files("run", "flow.toml", "--id", "f1", "--detach")

    refused = files("send", "f1", "hello")
    sent = files("send", "f1", "--name", "go", '{"n": 1}')
    done = files("resume", "f1", "--inline")

    assert (2, True) == (refused.exit_code, "no model reads messages" in refused.stderr)
    assert "f1: sent as the message go" in sent.stdout
    assert 0 == done.exit_code
    assert '{"n": 1}' == files.json("show", "f1", "--json")["result"]


def test_of_a_plan_that_has_ended_no_fork_is_named(files):
    files("run", "count.toml", "-p", "path=12", "--id", "c1", "--inline")

    refused = [files("resume", "c1", "--inline"), files("pause", "c1")]

    hint = "hint: it follows a plan, which has no forks: start another session"
    assert [True, True] == [hint in each.stderr for each in refused]
