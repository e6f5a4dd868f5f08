"""`cueline acp` as a process, and the SDK's client as the editor."""

import asyncio
import json
import os
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from acp import RequestError, helpers, spawn_agent_process
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse

from cueline.client.client import open_client
from cueline.testing.wait import await_until

CANCELLED = RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


class Editor:
    """An editor that shows what it gets, and answers questions when the test says so."""

    def __init__(self):
        self.updates = []
        self.asked = []
        """The questions: the call, the options, and the future of the answer."""

    def on_connect(self, conn):
        self.agent = conn

    async def session_update(self, session_id, update, **_):
        self.updates.append((session_id, update))

    async def request_permission(self, session_id, tool_call, options, **_):
        answer = asyncio.get_running_loop().create_future()
        self.asked.append((tool_call, {each.option_id: each for each in options}, answer))
        return await answer

    async def question(self, number=0):
        await await_until(lambda: len(self.asked) > number, within=30)
        return self.asked[number]

    def choose(self, option, number=-1):
        outcome = AllowedOutcome(outcome="selected", option_id=option)
        self.asked[number][2].set_result(RequestPermissionResponse(outcome=outcome))

    def of(self, kind):
        return [each for _, each in self.updates if each.session_update == kind]

    def text(self, kind="agent_message_chunk"):
        return "".join(each.content.text for each in self.of(kind))

    def statuses(self, call):
        return [
            each.status
            for each in [*self.of("tool_call"), *self.of("tool_call_update")]
            if each.tool_call_id == call and each.status is not None
        ]


class Folder:
    """A project with agents that follow a script, and its log."""

    def __init__(self, path):
        self.path = path
        self.log = path / "log.db"
        (path / "work").mkdir()

    def agent(self, script, tools=(), name="clerk", more=""):
        (self.path / f"{name}.script.toml").write_text(script)
        (self.path / f"{name}.toml").write_text(
            f'name = "{name}"\nprovider = "scripted"\nmodel = "{name}.script.toml"\n'
            f"tools = {json.dumps(tools)}\ncontext_window = 1000\n{more}"
        )
        return str(self.path / f"{name}.toml")

    def writer(self):
        """Return an agent that asks before it writes a file."""
        return self.agent(WRITES, ["write_file"], more='[policy]\napproval = ["all_writes"]\n')

    @property
    def work(self):
        return self.path / "work"

    @asynccontextmanager
    async def editor(self, *options):
        """Start `cueline acp`; yield the editor, its connection and the process."""
        words = ("-m", "cueline.cli", "acp", "--log", str(self.log), *options)
        shown, env = Editor(), {**os.environ}
        started = spawn_agent_process(
            shown, sys.executable, *words, cwd=self.path, env=env, use_unstable_protocol=True
        )
        async with started as (agent, process):
            await agent.initialize(protocol_version=1)
            yield shown, agent, process


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def says(text):
    return [helpers.text_block(text)]


HELLO = '[[reply]]\ntext = "Good evening."\nusage = { input = 100, output = 20 }\n'
TALKS = HELLO + '[[reply]]\ntext = "Still here."\n'
WRITES = """
[[reply]]
text = "I will write."
calls = [{ name = "write_file", arguments = { path = "list.txt", content = "Ada\\nGrace\\n" } }]

[[reply]]
text = "Written."
"""


async def test_it_says_only_what_it_can(folder):
    async with folder.editor() as (_, agent, _process):
        told = await agent.initialize(protocol_version=1)

    has = told.agent_capabilities
    sessions = has.session_capabilities.model_dump(exclude_none=True)
    assert (1, "cueline") == (told.protocol_version, told.agent_info.name)
    assert has.load_session
    assert {"list", "resume", "fork", "close"} == sessions.keys()
    assert (True, False, True) == (
        has.prompt_capabilities.image,
        has.prompt_capabilities.audio,
        has.prompt_capabilities.embedded_context,
    )
    assert not (has.mcp_capabilities.http or has.mcp_capabilities.sse)


async def test_a_prompt_starts_the_session_of_that_id_and_a_second_one_goes_on(folder):
    async with folder.editor("--agent", folder.agent(TALKS)) as (shown, agent, _):
        name = (await agent.new_session(cwd=str(folder.work))).session_id
        first = await agent.prompt(session_id=name, prompt=says("Hello"))
        second = await agent.prompt(session_id=name, prompt=says("And?"))

    assert ("end_turn", "end_turn") == (first.stop_reason, second.stop_reason)
    assert "Good evening.Still here." == shown.text()
    assert [] == shown.of("user_message_chunk"), "the editor shows its own messages"
    assert (100, 20) == (first.usage.input_tokens, first.usage.output_tokens)
    usage = shown.of("usage_update")[0]
    assert (120, 1000, "USD") == (usage.used, usage.size, usage.cost.currency)
    async with open_client(folder.log) as client:
        row = await client.show(name)
        place = (await client.start_request(name)).agent.workspace
    assert ("idle", "Hello") == (row.status, row.goal)
    assert str(folder.work) == place.path


async def test_a_session_that_nobody_prompted_is_not_recorded(folder):
    async with folder.editor("--agent", folder.agent(HELLO)) as (_, agent, _process):
        await agent.new_session(cwd=str(folder.work))

        assert [] == (await agent.list_sessions()).sessions


async def test_a_write_is_asked_with_its_diff_and_runs_once_it_is_allowed(folder):
    (folder.work / "list.txt").write_text("Ada\n")
    async with folder.editor("--agent", folder.writer()) as (shown, agent, _):
        name = (await agent.new_session(cwd=str(folder.work))).session_id
        turn = asyncio.ensure_future(agent.prompt(session_id=name, prompt=says("Write")))
        call, options, _answer = await shown.question()
        before = (folder.work / "list.txt").read_text()
        shown.choose("allow")
        ended = await turn

    (diff,) = [each for each in call.content if each.type == "diff"]
    path = str(folder.work / "list.txt")
    assert (path, "Ada\n", "Ada\nGrace\n") == (diff.path, diff.old_text, diff.new_text)
    assert ("edit", path) == (call.kind, call.locations[0].path)
    assert {"allow", "always", "deny"} == options.keys()
    assert "Ada\n" == before
    assert "Ada\nGrace\n" == (folder.work / "list.txt").read_text()
    assert "end_turn" == ended.stop_reason
    assert ["pending", "in_progress", "completed"] == shown.statuses("1.0")
    async with open_client(folder.log) as client:
        audit = await client.audit(session=name, type="ApprovalResolved")
    assert 1 == len(audit.rows)


async def test_a_denied_write_does_not_run_and_its_call_fails(folder):
    async with folder.editor("--agent", folder.writer()) as (shown, agent, _):
        name = (await agent.new_session(cwd=str(folder.work))).session_id
        turn = asyncio.ensure_future(agent.prompt(session_id=name, prompt=says("Write")))
        await shown.question()
        shown.choose("deny")
        await turn

    assert not (folder.work / "list.txt").exists()
    assert "failed" == shown.statuses("1.0")[-1]
