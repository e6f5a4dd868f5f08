"""A workflow, from its file or from Python, as it is recorded."""

import re

import pytest
from pydantic import ValidationError

from cueline import Agent, Step, Workflow
from cueline.agents.agent_file import read_agent
from cueline.config.config_source import SourcedValue
from cueline.console.plan_graph import levels, plan_lines, plan_svg
from cueline.errors import ConfigError
from tests.tools.examples import double

FLOW = """
name = "release"
provider = "workflow"
max_parallel = 4
output = "steps.publish.value"

[parameters_schema]
type = "object"
properties = { goal = { type = "string" } }

[limits]
max_descendants = 10

[[steps]]
name = "plan"
agent = "agents/planner.toml"
arguments = { goal = "{{ input.goal }}" }
auto_approve = false

[[steps]]
name = "list"
tool = "list_files"
needs = "plan"
critical = false
timeout_seconds = "20s"
retry = { max_retries = 1 }

[[steps]]
name = "approved"
wait = "go"
timeout_seconds = 60

[[steps]]
name = "publish"
tool = "write_file"
when = "input.goal"
needs = "approved"
condition = "always"
arguments = { path = "out.txt", content = "{{ steps.list.text }} of it" }
"""
PLANNER = 'name = "planner"\nprovider = "scripted"\nmodel = "script.toml"\n'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents/planner.toml").write_text(PLANNER)
    (tmp_path / "agents/script.toml").write_text('[[reply]]\ntext = "Plan."\n')
    return tmp_path


def flow_in(folder, text=FLOW):
    (folder / "flow.toml").write_text(text)
    return Agent.from_file(folder / "flow.toml")


# 004-036, 003-048, 003-059: the steps are data, recorded with the session.
def test_the_file_of_a_workflow_is_recorded_as_a_plan(folder):
    spec = flow_in(folder).spec()

    assert ("workflow", "", "", None) == (spec.provider, spec.model, spec.instructions, spec.output)
    assert spec.plan is not None
    assert ("steps.publish.value", 4) == (spec.plan.output, spec.plan.max_parallel)
    assert ["plan", "list", "approved", "publish"] == [step.name for step in spec.plan.steps]
    assert ("approved", "list") == spec.plan.steps[3].needs
    assert ["planner"] == list(spec.agents)
    assert {"type": "object", "properties": {"goal": {"type": "string"}}} == spec.parameters_schema


def test_each_step_is_a_tool_with_its_own_settings(folder):
    plan, files, publish = flow_in(folder).spec().tools

    assert ("plan", "agent:planner", "planner") == (plan.name, plan.target, plan.own_name)
    assert ("list", "list_files") == (files.name, files.own_name)
    assert (False, 20.0, 1) == (files.critical, files.timeout_seconds, files.retry.max_retries)
    assert ("publish", True, None) == (publish.name, publish.critical, publish.retry)


def test_python_builds_the_same_plan():
    flow = Workflow(
        name="words",
        steps=[
            Step(name="double", tool=double, arguments={"number": 1}),
            Step(
                name="think",
                agent=Agent(name="thinker", provider="anthropic"),
                needs="double",
                arguments={"goal": "{{ steps.double.text }}"},
            ),
        ],
    )

    spec = flow.spec()

    assert ["double", "think"] == [tool.name for tool in spec.tools]
    assert "" == spec.tools[0].own_name
    assert ("double",) == spec.plan.steps[1].needs
    assert ["thinker"] == list(spec.agents)


def test_a_workflow_can_be_a_step_of_another(folder):
    flow_in(folder)
    outer = Workflow(
        name="outer",
        steps=[Step(name="go", agent=str(folder / "flow.toml"), arguments={"goal": "x"})],
    )

    spec = outer.spec()

    assert ["planner", "release"] == sorted(spec.agents)
    assert {"goal": {"type": "string"}} == spec.tools[0].parameters["properties"]
    assert spec.agents["release"].plan is not None


# 004-044: a mistake is an error before anything is recorded.
@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("needs = ", "neds = ", "key 'steps.1.neds': it is unknown: did you mean 'needs'?"),
        ("max_parallel = 4", "max_paralel = 4", "did you mean 'max_parallel'?"),
        ('tool = "list_files"', "", "a step has either `tool`, `agent` or `wait`: list has none"),
        ('wait = "go"', 'wait = "go"\ntool = "list_files"', "approved has tool and wait"),
        ('condition = "always"', 'condition = "never"', "key 'steps.3.condition'"),
        ('provider = "workflow"', 'provider = "workflow"\nmodel = "x"', "and so no `model`"),
    ],
)
def test_an_invalid_key_is_an_error_when_the_file_is_read(folder, before, after, reason):
    with pytest.raises(ConfigError) as raised:
        flow_in(folder, FLOW.replace(before, after))

    assert reason in str(raised.value)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("input.goal", "input.gol", "key 'steps.plan.arguments': 'input.gol': there is no"),
        ("steps.list.text", "steps.lst.text", "there is no step 'lst': did you mean 'list'?"),
        ("path = ", "pth = ", "key 'steps.publish.arguments': it takes no 'pth': did you mean"),
        ('path = "out.txt", ', "", "key 'steps.publish.arguments': 'path' is missing"),
        ('"list_files"', '"list_file"', "'list_file' is unknown"),
    ],
)
def test_a_plan_that_cannot_run_is_not_recorded(folder, before, after, reason):
    flow = flow_in(folder, FLOW.replace(before, after))

    with pytest.raises(ConfigError) as raised:
        flow.spec()

    assert reason in str(raised.value)


def test_a_model_that_the_settings_name_does_not_touch_a_workflow(folder):
    flow_in(folder)
    under = ({"model": SourcedValue("other", "file")},)

    read = read_agent(folder / "flow.toml", under=under)

    assert "workflow" == read.agent.provider


def test_a_step_has_a_name():
    with pytest.raises(ValidationError):
        Step(name="", wait="x")


def test_steps_are_drawn_by_level(folder):
    spec = flow_in(folder).spec()

    assert [["plan", "approved"], ["list"], ["publish"]] == [
        [step.name for step in level] for level in levels(spec.plan.steps)
    ]
    assert [
        "release: 4 steps, at most 4 calls at a time",
        "  1 ─ plan      agent planner · what needs it is asked about",
        "    │ approved  message go",
        "  2 ─ list      tool list_files · needs plan · not critical",
        "  3 ─ publish   tool write_file · needs approved, list · always · when input.goal",
        "result: steps.publish.value",
    ] == [line.text for line in plan_lines(spec)]


def test_a_picture_has_each_step_and_an_arrow_for_each_need(folder):
    picture = plan_svg(flow_in(folder, FLOW.replace('wait = "go"', 'wait = "<go>"')).spec())

    assert 4 == picture.count('rx="6"')
    assert 3 == picture.count("marker-end")
    assert "message &lt;go&gt;" in picture


BRANCHES = """
name = "branches"
provider = "workflow"
steps = [
  { name = "a", wait = "a" },
  { name = "long", wait = "long" },
  { name = "b", wait = "b", needs = ["a"] },
  { name = "c", wait = "c", needs = ["b", "a"] },
  { name = "end", wait = "end", needs = ["c", "long"] },
  { name = "last", wait = "last", needs = ["end", "b"] },
]
"""


def test_an_arrow_crosses_no_box_and_none_is_drawn_twice(folder):
    picture = plan_svg(flow_in(folder, BRANCHES).spec())

    boxes = [
        (float(x), float(y)) for x, y in re.findall(r'<rect x="([\d.]+)" y="([\d.]+)"', picture)
    ]
    lines = [
        (float(y), float(x))
        for y, x in re.findall(r"([\d.]+)H([\d.]+)", picture)  # the end of a line over a column
    ]
    assert 5 == picture.count("marker-end")  # a → b → c → end → last, and long → end
    assert 2 == len(lines)
    for y, end in lines:
        assert not [
            box for box in boxes if box[0] < end <= box[0] + 180 and box[1] <= y <= box[1] + 54
        ]
