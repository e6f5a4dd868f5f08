"""`cueline workflow`: whether a workflow can run, and what its steps are."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from cueline.testing.wait import wait_until

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


TOOLS = '''
from pathlib import Path
from time import sleep

import cueline


@cueline.tool(idempotent=True)
def note(text: str) -> str:
    """Add a line to the journal, and wait while the file `hold` says so."""
    with Path("journal").open("a") as journal:
        journal.write(f"{text}\\n")
    while Path("hold").exists() and Path("hold").read_text() == text:
        sleep(0.05)
    return text


@cueline.tool
async def refuse(text: str) -> str:
    """Fail."""
    raise cueline.ToolFailedError("tool_error", f"no {text}")
'''
STEPS = """
name = "steps"
provider = "workflow"
output = "steps.last.value"

[parameters_schema]
type = "object"
required = ["text"]
properties = { text = { type = "string" } }

[[steps]]
name = "first"
tool = "tools.py:note"
arguments = { text = "{{ input.text }} 1" }

[[steps]]
name = "second"
tool = "tools.py:note"
needs = "first"
arguments = { text = "{{ input.text }} 2" }

[[steps]]
name = "last"
tool = "tools.py:note"
when = "input.text != 'skip'"
arguments = { text = "{{ steps.second.value }} and 3" }
"""


@pytest.fixture
def steps(shell):
    (shell.folder / "tools.py").write_text(TOOLS)
    (shell.folder / "steps.toml").write_text(STEPS)
    return shell


# 004-036, 004-037, 004-039, 004-054, 004-055: the state of a workflow is a view of its log.
def test_the_state_of_a_workflow_is_exported(steps):
    done = steps("run", "steps.toml", "-p", "text=a", "--inline", "--id", "one")
    steps("workflow", "state", "one", "-o", "state.json")
    told = json.loads((steps.folder / "state.json").read_text())

    assert 0 == done.exit_code, done.output
    assert ["first", "second", "last"] == told["completed_steps"]
    assert {"first": "a 1", "second": "a 2", "last": "a 2 and 3"} == told["step_results"]
    assert ("one", "steps", "completed") == tuple(
        told[key] for key in ("workflow_id", "workflow", "status")
    )
    assert (None, 0, {"text": "a"}) == (
        told["current_step"],
        told["error_count"],
        told["parameters"],
    )
    assert datetime.fromisoformat(told["created_at"]) < datetime.fromisoformat(told["updated_at"])
    assert (steps.folder / "state.json").read_text().startswith('{\n  "workflow_id"')


def test_a_file_with_another_name_than_its_workflow_is_not_guessed(steps):
    wrong = STEPS.replace('tool = "tools.py:note"\nneeds', 'tool = "tools.py:refuse"\nneeds')
    (steps.folder / "steps.toml").rename(steps.folder / "other.toml")
    (steps.folder / "other.toml").write_text(wrong)
    steps("run", "other.toml", "-p", "text=it", "--inline", "--id", "one")

    assert "\n  cueline run FILE -p text=it" in steps("show", "one").stdout


def test_show_lists_the_steps_of_a_workflow(steps):
    steps("run", "steps.toml", "-p", "text=skip", "--inline", "--id", "one")

    told = steps("show", "one").stdout

    assert 'with text="skip"' in told
    assert "▸ 1.0 first text=" in told
    assert "\n✓ first   completed · " in told
    assert "\n- last    skipped · its `when` does not hold\n" in told


# 004-056: a failed workflow says which step failed, and what to do.
def test_a_failed_workflow_says_what_to_do_next(steps):
    file = steps.folder / "steps.toml"
    second = STEPS.replace('tool = "tools.py:note"\nneeds', 'tool = "tools.py:refuse"\nneeds')
    file.write_text(second)
    done = steps("run", "steps.toml", "-p", "text=it", "--inline", "--id", "one")

    told = steps("show", "one").stdout
    state = steps.json("workflow", "state", "one")

    assert 1 == done.exit_code
    assert "✗ second  failed · 0.0 s · tool_error: no it 2" in told
    assert "- last    skipped · the workflow ended before it began" in told
    assert (
        "start it again, with the same parameters, by\n  cueline run steps.toml -p text=it" in told
    )
    assert ("failed", 1, ["first"]) == (
        state["status"],
        state["error_count"],
        state["completed_steps"],
    )


def test_a_failed_agent_step_names_its_child(steps):
    steps.agent(steps.hello, more="[output]\ntype = 'integer'\n")
    file = steps.folder / "steps.toml"
    second = 'agent = "agent.toml"\narguments = { goal = "Hi" }\nneeds'
    file.write_text(
        STEPS.replace('tool = "tools.py:note"\nneeds', second).replace(
            'arguments = { text = "{{ input.text }} 2" }\n', ""
        )
    )
    steps("run", "steps.toml", "-p", "text=it", "--inline", "--id", "one")

    told = steps("show", "one").stdout

    assert "✗ second  failed · " in told
    assert "· child one.1.1 · invalid_output: " in told
    assert "see what the agent of the step second did with\n  cueline show one.1.1\n" in told


# 004-041, D20: a resume runs only what is unfinished.
def test_a_killed_workflow_goes_on_with_the_unfinished_step(steps):
    journal, hold = steps.folder / "journal", steps.folder / "hold"
    hold.write_text("a 2")
    first = steps.start("run", "steps.toml", "-p", "text=a", "--inline", "--id", "one")
    wait_until(lambda: journal.exists() and journal.read_text() == "a 1\na 2\n")

    first.kill()
    first.wait()
    running = steps.json("workflow", "state", "one")
    hold.unlink()
    done = steps("resume", "one", "--inline")

    assert ("running", "second", ["first"]) == (
        running["status"],
        running["current_step"],
        running["completed_steps"],
    )
    assert 0 == done.exit_code, done.output
    assert ["a 1", "a 2", "a 2", "a 2 and 3"] == journal.read_text().splitlines()


# 004-040
def test_a_session_without_steps_has_no_such_state(steps):
    agent = steps.agent(steps.hello)
    steps("run", "Hi", "--agent", agent, "--inline", "--id", "one")

    done = steps("workflow", "state", "one")

    assert (2, True) == (done.exit_code, "it follows no plan" in done.stderr)
    assert 2 == steps("workflow", "state", "none").exit_code


# 003-049, 003-050, 003-060
@pytest.mark.parametrize(
    ("chain", "agents"),
    [
        ("full-pipeline", ["plan", "implement", "review", "bugfix"]),
        ("implement-and-review", ["implement", "review"]),
    ],
)
def test_a_shipped_chain_is_copied_and_can_run(shell, chain, agents):
    written = shell.json("init", "mine", "--chain", chain)["files"]
    text = shell("workflow", "show", f"mine/{chain}.toml").stdout

    assert [f"mine/{name}.toml" for name in (chain, *agents)] == written
    assert [f"{n} ─ {each}" for n, each in enumerate(agents, 1)] == [
        line.split("  ")[1].strip() for line in text.splitlines()[1:-1]
    ]
    assert "review" in text
    assert "needs implement · always" in text


def test_an_unknown_chain_is_refused_with_the_known_ones(shell):
    done = shell("init", "mine", "--chain", "full-pipelin")

    assert 2 == done.exit_code
    assert "did you mean 'full-pipeline'?" in done.stderr


def test_the_picture_in_the_guide_is_that_of_the_shipped_chain(shell):
    shell("init", "mine", "--chain", "full-pipeline")
    shell("workflow", "show", "mine/full-pipeline.toml", "--svg", "now.svg")

    pictures = Path(__file__).parents[2] / "docs/pictures"

    assert (shell.folder / "now.svg").read_text() == (pictures / "full-pipeline.svg").read_text()
