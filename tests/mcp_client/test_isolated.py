"""What an MCP server that is a command can reach."""

import shutil
import textwrap

import pytest
from pydantic import ValidationError

from cueline.agents.agent import Agent
from cueline.errors import ToolFailedError
from cueline.events.agent_parts import Isolation, McpServer
from cueline.isolation import ladder
from cueline.testing.wait import wait_until
from cueline.tools.mcp.listing import listed
from tests.mcp_client.conftest import HERE, PROBE


@pytest.fixture
def last_words(tmp_path):
    """Run a script of the shell as a server, and return why it is none."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    def run(script, *arguments, agent="auto", **more):
        command = ("sh", "-c", script, "sh", *map(str, arguments))
        isolation = Isolation.model_validate(agent)
        servers = {"a": McpServer(command=command, **more)}
        return str(listed(servers, workspace, isolation=isolation)["a"])

    return run


def test_a_server_changes_its_workspace_and_reaches_nothing_else(last_words, tmp_path):
    (tmp_path / "secret.txt").write_text("hidden")
    script = f"""
        touch made
        cat {tmp_path}/secret.txt
        touch {tmp_path}/made
        ls ~ | wc -l
        grep Seccomp: /proc/self/status
        ls -d /proc/[0-9]* | wc -l
        grep -c : /proc/net/dev
        ulimit -n
    """

    said = last_words(f"{{ {script} }} >&2", agent={"limits": {"open_files": 77}})

    assert (tmp_path / "workspace/made").exists()
    assert not (tmp_path / "made").exists()
    assert "hidden" not in said
    assert "Seccomp:\t2" in said
    assert "\n1\n77" in said, "only the loopback interface, and the limit"


def test_the_isolation_of_a_server_wins_over_that_of_the_agent(last_words, tmp_path):
    (tmp_path / "given").mkdir()
    (tmp_path / "given/secret.txt").write_text("given by a person")
    granted = Isolation(read=[str(tmp_path / "given")])
    script = f"cat {tmp_path}/given/secret.txt >&2; exit 1"

    assert "No such file" in last_words(script)
    assert "given by" in last_words(script, agent=granted)
    assert "given by" in last_words(script, agent="none")
    assert "given by" in last_words(script, isolation=granted)
    assert "No such file" in last_words(script, isolation="auto", agent=granted)


def test_a_server_reads_its_program_and_the_files_that_its_command_names(last_words, tmp_path):
    (tmp_path / "data.txt").write_text("named")
    (tmp_path / "beside.txt").write_text("not named")
    package = tmp_path / "app/node_modules/server"
    package.mkdir(parents=True)
    (package / "index.js").write_text("")
    (package.parent / "library.js").write_text("of node")
    script = 'cat "$1" "${2%/*}/../library.js" "${1%/*}/beside.txt" >&2'

    said = last_words(script, tmp_path / "data.txt", package / "index.js")

    assert "namedof node" in said
    assert "not named" not in said


def test_a_program_runs_from_a_virtual_environment_outside_of_the_workspace(tmp_path):
    folder = tmp_path / "venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "lib/said.txt").write_text("of the library")
    (folder / "pyvenv.cfg").write_text("home = /usr/bin")
    program = folder / "bin/server"
    program.write_text(
        '#!/bin/sh\ncat "${0%/bin/*}/lib/said.txt" >&2\ncat "${0%/bin/*}/pyvenv.cfg" >&2'
    )
    program.chmod(0o755)
    (tmp_path / "link").symlink_to(program)

    said = str(listed({"a": McpServer(command=(str(program),))})["a"])
    linked = str(listed({"a": McpServer(command=(str(tmp_path / "link"),))})["a"])

    assert "of the libraryhome = /usr/bin" in said
    assert "link: not found" not in linked


def test_a_file_in_the_workspace_that_the_command_names_can_still_be_changed(last_words, tmp_path):
    notes = tmp_path / "workspace/notes.txt"
    notes.write_text("")

    last_words('echo more >"$1"', notes)

    assert "more\n" == notes.read_text()


def test_a_server_gets_the_hint_to_end_though_it_is_isolated(last_words, tmp_path, monkeypatch):
    # As for another user than root, whose bwrap is not the first process of a namespace.
    monkeypatch.setattr("cueline.isolation.limits.counts_processes", lambda: False)
    script = "trap 'touch tidied; exit' TERM; while :; do read line <&- || sleep 0.05; done"

    last_words(script, start_seconds=0.5)

    wait_until((tmp_path / "workspace/tidied").exists)


def test_a_server_that_cannot_be_isolated_is_not_started(last_words, tmp_path, monkeypatch):
    monkeypatch.setattr(ladder.rung, "__defaults__", ((str(tmp_path / "empty"),),))
    monkeypatch.setattr(ladder, "_PACKAGE", "no_such_package")

    refused = last_words("touch ran; exit 1")

    assert "MCP server a: " in refused
    assert "install bubblewrap" in refused
    assert 'write `isolation = "none"`' in refused
    assert not (tmp_path / "workspace/ran").exists()
    last_words("touch ran; exit 1", agent="none")
    assert (tmp_path / "workspace/ran").exists()


async def test_calls_run_in_a_process_namespace_of_their_own(executor, probe):
    assert int((await executor.call(probe("pid"))).content) < 20


async def test_a_refused_isolation_fails_the_call_as_not_started(executor, probe, order):
    granted = PROBE.model_copy(update={"isolation": Isolation(read=["/nowhere"])})

    with pytest.raises(ToolFailedError, match="/nowhere is not there") as failed:
        await executor.call(order("", granted, tool=probe("add").tool))

    assert "not_started" == failed.value.kind


def test_the_log_in_the_workspace_is_hidden_from_a_server(last_words, tmp_path):
    (tmp_path / "workspace/.cueline").mkdir()
    (tmp_path / "workspace/.cueline/log.db").write_text("hidden")

    assert "hidden" not in last_words("cat .cueline/log.db >&2")


def test_the_file_of_an_agent_grants_paths_to_one_server(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    (tmp_path / "a.toml").write_text(
        textwrap.dedent("""
            name = "a"
            model = "m"
            [mcp.notes]
            command = ["notes"]
            isolation = { read = ["data", "~/notes"] }
            [mcp.other]
            command = ["other"]
            isolation = "none"
        """)
    )

    read = Agent.from_file(tmp_path / "a.toml").mcp

    assert (f"{tmp_path}/data", "/home/ada/notes") == read["notes"].isolation.read
    assert "none" == read["other"].isolation.kind


def test_a_record_without_isolation_is_isolated_as_the_agent_is():
    assert "isolation" not in PROBE.model_dump(mode="json")
    assert McpServer.model_validate(PROBE.model_dump(mode="json")).isolation is None


def test_the_isolation_of_an_address_is_refused():
    with pytest.raises(ValidationError, match="`isolation` is for a command"):
        Agent(
            name="a",
            provider="scripted",
            model="x.toml",
            mcp={"a": {"url": "http://x/mcp", "isolation": "none"}},
        )


NODE = HERE.parent / "gateway/conformance/node_modules"


@pytest.mark.skipif(
    not (NODE / "@modelcontextprotocol/server-everything").exists() or not shutil.which("node"),
    reason="needs `npm ci` in tests/gateway/conformance",
)
def test_a_server_of_node_works_isolated(tmp_path):
    everything = NODE / "@modelcontextprotocol/server-everything/dist/index.js"
    found = listed({"a": McpServer(command=("node", str(everything)))}, tmp_path)["a"]

    assert "a__echo" in {tool.name for tool in found}
