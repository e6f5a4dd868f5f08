"""`cueline workflow`: whether a workflow can run, and what its steps are."""

import json

import pytest

FLOW = """
name = "release"
provider = "workflow"

[[steps]]
name = "list"
tool = "list_files"

[[steps]]
name = "write"
tool = "write_file"
arguments = { path = "out.txt", content = "{{ steps.list.text }}" }
"""


@pytest.fixture
def flow(shell):
    (shell.folder / "notes").mkdir(exist_ok=True)
    (shell.folder / "flow.toml").write_text('workspace = "notes"\n' + FLOW)
    return shell


def test_a_workflow_that_can_run_is_said_to(flow):
    done = flow("workflow", "check", "flow.toml")

    assert (0, "flow.toml: nothing is wrong with its 2 steps\n") == (done.exit_code, done.stdout)


# 004-044
@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("steps.list", "steps.lst", "key 'steps.write.arguments': 'steps.lst.text': there is no"),
        ("arguments =", "argument =", "key 'steps.1.argument': it is unknown: did you mean"),
        ('"list_files"', '"list_fils"', "'list_fils' is unknown"),
        ('provider = "workflow"', "", "key 'steps': it is unknown"),
        ('"list_files"', '"tools.py:none"', "tools.py"),
    ],
)
def test_a_mistake_is_named_with_its_key(flow, before, after, told):
    file = flow.folder / "flow.toml"
    file.write_text(file.read_text().replace(before, after))

    done = flow("workflow", "check", "flow.toml")

    assert (2, "") == (done.exit_code, done.stdout)
    assert told in done.stderr


def test_mistakes_have_a_form_for_programs(flow):
    file = flow.folder / "flow.toml"
    file.write_text(file.read_text().replace("path =", "pth ="))

    done = flow("workflow", "check", "flow.toml", "--json")

    assert 2 == done.exit_code
    assert ["steps.write.arguments"] * 2 == [each["key"] for each in json.loads(done.stdout)]


def test_an_agent_with_a_model_is_no_workflow(flow):
    done = flow("workflow", "check", flow.agent(flow.hello))

    assert (2, True) == (done.exit_code, "it is no workflow" in done.stderr)


def test_the_steps_are_shown_as_text_json_and_picture(flow):
    text = flow("workflow", "show", "flow.toml")
    as_json = flow("workflow", "show", "flow.toml", "--json")
    picture = flow("workflow", "show", "flow.toml", "--svg", "flow.svg")

    assert "  2 ─ write  tool write_file · needs list" in text.stdout
    assert ["list", "write"] == [each["name"] for each in json.loads(as_json.stdout)["steps"]]
    assert (0, "wrote flow.svg\n") == (picture.exit_code, picture.stderr)
    assert (flow.folder / "flow.svg").read_text().startswith("<svg")
