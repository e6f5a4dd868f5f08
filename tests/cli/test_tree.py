"""Commands about a session and all sessions below it."""

import json

import pytest

LEAD = """
[[reply]]
calls = [{ name = "clerk", arguments = { goal = "delete the list" } }]

[[reply]]
text = "Thanks."
"""


def ask(shell):
    child = shell.agent(shell.deletes, tools=("delete_file",), more=shell.reachable)
    (shell.folder / "work" / "list.txt").touch()
    (shell.folder / "lead.script.toml").write_text(LEAD)
    (shell.folder / "lead.toml").write_text(
        'name = "lead"\nprovider = "scripted"\nmodel = "lead.script.toml"\n'
        f'tools = ["agent:{child}"]\n{shell.reachable}'
    )
    done = shell("run", "Go", "--agent", "lead.toml", "--inline", "--id", "lead")
    assert 3 == done.exit_code, done.output


@pytest.fixture
def tree(begin):
    """Return a shell with a session `lead` whose child waits for a person."""
    return begin(ask)


def lines(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_tree_is_paused_and_goes_on(tree):
    paused = lines(tree("pause", "lead", "--tree", "--json"))
    tree("approve", "lead.1.0.1.0.1", "--log", str(tree.log))
    assert ["lead", "lead.1.0"] == [each["session"] for each in paused]

    done = tree("resume", "lead", "--tree", "--inline")

    assert 0 == done.exit_code, done.output
    assert {"completed"} == {each["status"] for each in tree.json("list")}


def test_a_tree_is_stopped(tree):
    done = tree("stop", "lead", "--tree")

    assert ["lead: stopped", "lead.1.0: it has ended already: stopped"] == done.stdout.splitlines()
    assert {"stopped"} == {each["status"] for each in tree.json("list")}


def test_without_tree_only_the_session_is_paused(tree):
    paused = lines(tree("pause", "lead", "--json"))

    assert ["lead"] == [each["session"] for each in paused]


def test_the_beginning_of_the_id_of_a_tree_is_its_topmost_session(tree):
    assert "lead" == tree.json("show", "le")["id"]
    assert "lead.1.0" == tree.json("show", "lead.1")["id"]
