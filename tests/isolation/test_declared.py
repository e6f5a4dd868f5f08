"""The isolation in an agent's file, in the record, on the way to the tool, and before a start."""

import pytest
from pydantic import ValidationError

from cueline import Agent
from cueline.actors.runner_desk import RunnerRequest
from cueline.actors.runner_wire import json_of_request, request_of
from cueline.actors.tool_port import ToolOrder
from cueline.agents.agent_file import default_agent
from cueline.agents.preflight import agent_to_record
from cueline.errors import ConfigError, ToolFailedError
from cueline.events.agent import AgentSpec, Workspace
from cueline.events.agent_parts import DEFAULT_ISOLATION, Isolation
from cueline.isolation import ladder
from cueline.isolation.ladder import Rung
from cueline.isolation.landlock import OLDEST_ABI
from cueline.tools.executor import ProcessToolExecutor
from cueline.tools.shell import commands_problem, run_command, run_program

NETWORK = Isolation(network=True, read=["/data"])


@pytest.fixture
def unable(monkeypatch, tmp_path):
    monkeypatch.setattr(ladder.rung, "__defaults__", ((str(tmp_path / "empty"),),))
    monkeypatch.setattr(ladder, "_PACKAGE", "no_such_package")
    monkeypatch.setattr(ladder, "OLDEST_ABI", 99)


def agent(tmp_path, **fields):
    said = {"provider": "scripted", "model": "x.toml", "tools": ["run_command"]}
    return Agent(name="a", workspace=tmp_path, **said, **fields)


def test_a_kind_is_accepted_as_a_text(tmp_path):
    assert Isolation(kind="none") == agent(tmp_path, isolation="none").isolation


def test_the_default_is_not_recorded_and_an_older_record_has_it(tmp_path):
    spec = agent(tmp_path).spec()

    assert "isolation" not in spec.model_dump(mode="json")
    assert DEFAULT_ISOLATION == AgentSpec.model_validate(spec.model_dump(mode="json")).isolation


def test_another_isolation_is_recorded_whole(tmp_path):
    spec = agent(tmp_path, isolation=NETWORK).spec()

    assert NETWORK == AgentSpec.model_validate_json(spec.model_dump_json()).isolation


def test_paths_in_an_agent_file_are_relative_to_the_file_or_in_the_home_folder(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", "/home/ada")
    (tmp_path / "a.toml").write_text(
        'name = "a"\nmodel = "m"\n[isolation]\nread = ["../data", "~/tools"]\nlimits.processes = 50'
    )

    read = Agent.from_file(tmp_path / "a.toml").isolation

    assert (f"{tmp_path.parent}/data", "/home/ada/tools") == read.read
    assert 50 == read.limits.processes


def test_an_unknown_kind_is_refused(tmp_path):
    with pytest.raises(ValidationError, match="'auto', 'bwrap', 'landlock' or 'none'"):
        agent(tmp_path, isolation="docker")


def test_an_order_keeps_it_on_its_way_to_a_runner_outside_of_the_cluster(tmp_path):
    order = ToolOrder(
        session="session-default/1",
        effect="1.0",
        attempt=1,
        key="k",
        runner="r",
        epoch=1,
        tool=run_command.spec(),
        arguments={"command": "true"},
        workspace=Workspace(machine="here", path=str(tmp_path)),
        digest="",
        isolation=NETWORK,
    )

    sent = json_of_request(RunnerRequest(1, "execute", order))

    assert order == request_of(sent).about


@pytest.mark.usefixtures("unable")
def test_a_session_whose_commands_cannot_be_isolated_does_not_start(tmp_path, monkeypatch):
    (tmp_path / "x.toml").write_text('[[reply]]\ntext = "done"\n')
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ConfigError, match=r"cannot be isolated here: .* is not installed"):
        agent_to_record(agent(tmp_path))

    assert agent_to_record(agent(tmp_path, isolation="none")).isolation.kind == "none"
    assert agent_to_record(agent(tmp_path).model_copy(update={"tools": ("read_file",)}))


@pytest.mark.usefixtures("unable")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (run_command, {"command": "touch ran"}),
        (run_program, {"command": ["touch", "ran"], "parameters": {}}),
    ],
    ids=["command", "program"],
)
def test_a_call_that_cannot_be_isolated_fails_for_good_and_runs_nothing(
    tmp_path, context, tool, arguments
):
    with pytest.raises(ToolFailedError, match=r"did not run: .*is not installed") as failed:
        tool.run(arguments, context(DEFAULT_ISOLATION))

    assert "tool_error" == failed.value.kind
    assert not (tmp_path / "ran").exists()


def test_a_program_of_a_procedure_is_isolated_and_gets_its_input(tmp_path, context):
    command = ["sh", "-c", "cat; test $$ -lt 20 || echo outside; touch ran"]

    output = run_program.run({"command": command, "parameters": {"a": 1}}, context(Isolation()))

    assert b'{"a": 1}' == output.content
    assert (tmp_path / "ran").exists()


def test_a_program_that_a_signal_ends_or_that_is_not_there_fails_with_a_reason(context):
    for command, told in ((["sh", "-c", "kill -9 $$"], "exit status -9"), (["no-such"], "no-such")):
        with pytest.raises(ToolFailedError, match=told):
            run_program.run({"command": command, "parameters": {}}, context(Isolation()))


def test_a_missing_grant_is_named_and_nothing_runs(tmp_path, context):
    with pytest.raises(ToolFailedError, match="did not run: /nowhere is not there"):
        run_command.run({"command": "touch ran"}, context(Isolation(read=["/nowhere"])))

    assert not (tmp_path / "ran").exists()


def test_granted_folders_can_be_read_or_written(tmp_path_factory, context):
    inputs, outputs = (tmp_path_factory.mktemp(name) for name in ("inputs", "outputs"))
    (inputs / "a").write_text("given")
    granted = Isolation(read=[str(inputs)], write=[str(outputs)])
    command = f"cat {inputs}/a; cp {inputs}/a {outputs}/b; touch {inputs}/c || echo refused"

    said = run_command.run({"command": command}, context(granted)).content.decode()

    assert "given" in said
    assert "refused" in said
    assert "given" == (outputs / "b").read_text()


async def test_a_worker_gets_the_isolation_of_each_call(tmp_path, context):
    executor = ProcessToolExecutor(workers=1)
    order = ToolOrder(
        session="session-default/1",
        effect="1.0",
        attempt=1,
        key="k",
        runner="r",
        epoch=1,
        tool=run_command.spec(),
        arguments={"command": "echo $$ >/tmp/cueline-isolated; test $$ -lt 20 && echo isolated"},
        workspace=Workspace(machine="here", path=str(tmp_path)),
        digest="",
    )
    try:
        said = (await executor.call(order)).content.decode()
    finally:
        await executor.close()

    assert "isolated\n[exit status 0]" == said


def test_the_built_in_agent_has_no_commands_where_they_cannot_be_isolated(monkeypatch):
    assert "run_command" in default_agent()["tools"]
    monkeypatch.setattr("cueline.tools.shell.rung", lambda: Rung(cause="none", fix="some"))
    assert "run_command" not in default_agent()["tools"]
    assert "none; some" == commands_problem()


@pytest.mark.usefixtures("unable")
def test_a_log_in_the_workspace_is_a_problem_for_landlock_only(monkeypatch, tmp_path):
    monkeypatch.setattr(ladder, "OLDEST_ABI", OLDEST_ABI)
    if not ladder.rung().kind:
        pytest.skip("Landlock isolates nothing here")
    log = [tmp_path / ".cueline/log.db"]

    assert "log.db is in a granted folder" in commands_problem(tmp_path, log)
    assert "" == commands_problem(tmp_path, [tmp_path.parent / "log.db"])
    monkeypatch.undo()
    if ladder.rung().kind == "bwrap":
        assert "" == commands_problem(tmp_path, log)
