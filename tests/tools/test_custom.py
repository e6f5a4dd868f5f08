"""Tools that an agent's file declares: what a command and a host get, and what neither gets."""

import json

import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from cueline.agents.agent import Agent
from cueline.agents.agent_tool import ToolSettings
from cueline.events.agent_parts import Isolation
from cueline.tools.custom import CustomTool
from cueline.tools.http_access import HttpAccess
from cueline.tools.schemes import SchemeExecutor
from cueline.tools.shell import run_argv
from tests.tools.http_server import serving

SHOW = ["python3", "-c", "import json, sys; print(json.dumps(sys.argv[1:]))"]
LOCAL = HttpAccess(private=("127.0.0.1",))
TOP = {"type": "object", "properties": {"text": {"default": "x"}, "top": {"type": "integer"}}}
JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def call(order):
    """Call a custom tool by the executor of a runner, and return what the model gets."""
    executor = SchemeExecutor(1)

    async def made(arguments=None, **declared):
        tool = CustomTool(description="Do it.", **declared)
        spec = tool.spec("it", LOCAL, in_workspace=True)
        secrets = ("SHOP_TOKEN",)
        asked = replace(order(run_argv), tool=spec, arguments=arguments or {}, secrets=secrets)
        output = await executor.call(asked)
        text = output.content.decode()
        return json.loads(text) if output.media_type else text

    yield made
    await executor.close()


@pytest.mark.parametrize(
    "text", ["two words", "$(touch x); `id` && *", "a\nb\"c'", "{text} {{text}} $HOME ~"]
)
async def test_each_placeholder_is_one_argument_and_no_shell_reads_it(call, workspace, text):
    command = [*SHOW, "{text}", "--to={text}", "{{text}} {print $1}"]
    said = await call({"text": text}, command=command)

    assert [text, f"--to={text}", "{text} {print $1}"] == said
    assert [] == list(workspace.iterdir())


async def test_a_part_without_its_argument_is_left_out_and_a_default_is_used(call):
    command = [*SHOW, "--top={top}", "{text}"]

    assert ["x"] == await call(command=command, parameters=TOP)
    assert ["--top=3", "y"] == await call({"text": "y", "top": 3}, command=command, parameters=TOP)


async def test_an_argument_is_no_option(call, failure):
    failed = await failure(call({"text": "--output=x"}, command=[*SHOW, "{text}"]))

    assert "invalid_arguments" == failed.kind
    assert "python3 would take it for an option" in failed.message
    command = [*SHOW, "--", "{text}"]
    assert ["--", "--output=x"] == await call({"text": "--output=x"}, command=command)


async def test_arguments_that_do_not_fit_are_told_to_the_model(call, failure):
    failed = await failure(call({"other": "x"}, command=["echo", "{text}"]))

    assert "invalid_arguments" == failed.kind
    assert "'other' was unexpected" in failed.message


async def test_a_command_is_isolated_in_the_workspace_and_has_no_input(call, workspace, outside):
    script = f"pwd; cat; cat {outside}/secret.txt || echo hidden; echo $SHOP_TOKEN"

    said = await call(command=["sh", "-c", script])

    assert f"{workspace}\nhidden\n\n" == said


async def test_a_command_that_fails_is_a_failure_with_all_that_it_wrote(call, failure):
    failed = await failure(call(command=["sh", "-c", "echo finding; echo warning >&2; exit 3"]))

    assert "exit status 3: finding\nwarning" == failed.message


async def test_arguments_stand_in_the_path_or_are_the_query(call):
    known = {"properties": {"id": {}, "page": {}, "tag": {}, "no": {}}, "required": ["id"]}
    asked = {"id": "a/b ?&#é", "page": 2, "tag": ["x y", "z"], "no": None}
    path = "items/a%2Fb%20%3F%26%23%C3%A9?all=1&page=2&tag=x%20y&tag=z"
    with serving(**{path: (200, {}, b"found")}) as server:
        said = await call(asked, url=server.url + "/items/{id}?all=1", parameters=known)

    assert "found" == said["body"]


@pytest.mark.parametrize("given", ["..", ".", "../admin", "a\\..\\admin", "x/.."])
async def test_an_argument_leads_to_no_other_path(call, failure, given):
    with serving() as server:
        failed = await failure(call({"id": given}, url=server.url + "/items/{id}/state"))

    assert "has . or .. in its path" in failed.message
    assert [] == server.asked


async def test_a_body_is_the_arguments_that_the_path_does_not_name(call):
    known = {"properties": {"id": {}, "count": {}}, "required": ["id"]}
    with serving(**{"items/7": (200, JSON, b"[1]")}) as server:
        url = server.url + "/items/{id}"
        asked = {"id": 7, "count": 2}
        said = await call(asked, url=url, method="PUT", parameters=known)

    assert [1] == said["body"]
    assert ("PUT", "/items/7") == server.asked[0][:2]
    assert {"count": 2} == json.loads(server.asked[0][3])


async def test_a_secret_of_the_file_reaches_the_host_and_never_the_model(call, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", "sk-0123456789abcdef")
    headers = {"Authorization": "Bearer $SHOP_TOKEN"}
    with serving(echo=(200, JSON, "the headers")) as server:
        said = await call(url=f"{server.url}/echo", headers=headers)

    assert "Bearer sk-0123456789abcdef" == server.asked[0][2]["Authorization"]
    assert "sk-0123456789abcdef" not in json.dumps(said)


async def test_a_redirect_leads_to_no_host_that_the_file_does_not_name(call, failure):
    with serving(there=(200, {}, b"")) as other:
        headers = {"Location": f"{other.url}/there"}
        with serving(here=(302, headers, b"")) as server:
            failed = await failure(call(url=f"{server.url}/here"))

    assert f"allowed is {server.url}" in failed.message
    assert [] == other.asked


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({}, "either a `command`, a list, or a `url`"),
        ({"command": ["ls"], "url": "https://a.example"}, "either a `command`, a list, or a `url`"),
        ({"command": ["ls"], "headers": {"A": "b"}}, "and has no `method` and no `headers`"),
        ({"command": ["ls"], "method": "PUT"}, "and has no `method` and no `headers`"),
        ({"command": ["{program}"]}, "a `command` begins with its program"),
        ({"command": ["ls", "{a}"], "parameters": TOP}, "`parameters` needs ['a']"),
        ({"command": ["ls", "{text}"], "parameters": TOP}, "alone for a command"),
        ({"url": "https://{host}/x"}, "no http address with a fixed host"),
        ({"url": "https://u:p@a.example/"}, "without a password"),
        ({"url": "https://a.example/{text}", "parameters": TOP}, "`required` for a `url`"),
        ({"url": "https://a.example", "headers": {"X-Api-Key": "abc"}}, "would be recorded"),
        ({"command": ["ls"], "declared": "reconcile"}, "should be 'nothing', 'read_only' or"),
        ({"command": ["ls"], "parameters": {"properties": 5}}, "is no JSON schema: 5 is not"),
    ],
)
def test_a_tool_that_cannot_be_meant_is_refused(declared, told):
    with pytest.raises(ValidationError) as refused:
        CustomTool(description="Do it.", **declared)

    assert told in str(refused.value)


def test_what_is_recorded_has_its_target_effect_and_schema():
    lint = CustomTool(
        description="Lint.", command=("ruff", "check", "{path}"), declared="read_only"
    )
    pay = CustomTool(
        description="Pay.", url="https://a.example/{id}", method="POST", sensitive=True
    )
    agent = Agent(
        name="a",
        provider="scripted",
        model="m",
        custom_tools={"lint": lint, "pay": pay},
        tool_settings={"pay": {"timeout_seconds": 5}},
    )

    first, second = agent.spec().tools

    assert ("command:ruff check '{path}'", "read_only", False) == (
        first.target,
        first.declared,
        first.sensitive,
    )
    assert ("http:POST https://a.example/{id}", "nothing", True, 5) == (
        second.target,
        second.declared,
        second.sensitive,
        second.timeout_seconds,
    )
    assert ["id"] == second.parameters["required"]
    assert first.digest != lint.spec("lint", LOCAL, in_workspace=True).digest


async def test_what_a_command_changes_can_wait_for_a_yes(
    order, workspace, failure, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    executor = SchemeExecutor(1)
    command = ("sh", "-c", 'echo new > "$0"; exit "$1"', "{file}", "{code}")
    spec = CustomTool(description="Write.", command=command).spec("it", LOCAL, in_workspace=True)
    spec = ToolSettings(changes="held").applied_to(spec)

    def asked(code):
        given = {"file": "a.txt", "code": code}
        return replace(order(run_argv), tool=spec, arguments=given)

    question = await executor.call(asked("0"))
    failed = await failure(executor.call(asked("3")))
    await executor.close()

    assert ("a.txt",) == question.paths
    assert failed.message.endswith("[nothing was changed]")
    assert [] == list(workspace.iterdir())


async def test_without_isolation_a_command_reaches_what_its_user_does(call, order, outside):
    executor = SchemeExecutor(1)
    tool = CustomTool(description="Read.", command=("cat", str(outside / "secret.txt")))
    spec = tool.spec("it", LOCAL, in_workspace=True)
    asked = replace(order(run_argv), tool=spec, arguments={}, isolation=Isolation(kind="none"))

    assert b"hidden" == (await executor.call(asked)).content
    await executor.close()
