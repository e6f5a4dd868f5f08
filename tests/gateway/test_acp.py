"""`cueline acp` as a process, and the SDK's client as the editor."""

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from acp import RequestError, helpers, spawn_agent_process
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse

from cueline.client.client import open_client
from cueline.client.runtime import open_runtime
from cueline.deciders.session import SessionState
from cueline.gateway.acp_updates import preview_content
from cueline.testing.wait import await_until

ROOT = Path(__file__).parents[2]
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
        async with asyncio.timeout(90), started as (agent, process):
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

[[reply]]
text = "Welcome."
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
    assert {False} == {has.mcp_capabilities.http, has.mcp_capabilities.sse}


# D3
async def test_a_prompt_starts_the_session_of_that_id_and_a_second_one_goes_on(folder):
    async with folder.editor("--agent", folder.agent(TALKS)) as (shown, agent, _):
        name = (await agent.new_session(cwd=str(folder.work))).session_id
        first = await agent.prompt(session_id=name, prompt=says("Hello"))
        second = await agent.prompt(session_id=name, prompt=says("And?"))

    assert ("end_turn", "end_turn") == (first.stop_reason, second.stop_reason)
    assert "Good evening.Still here." == shown.text()
    assert [] == shown.of("user_message_chunk"), "the editor shows its own messages"
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


def shape(updates):
    """Return what an editor shows in the end, however the replies came in pieces."""
    texts, calls = [], {}
    for _, each in updates:
        kind = each.session_update
        if kind.endswith("_chunk"):
            if not texts or texts[-1][:2] != [kind, each.message_id]:
                texts.append([kind, each.message_id, ""])
            texts[-1][2] += each.content.text
        elif kind.startswith("tool_call"):
            known = calls.setdefault(each.tool_call_id, {})
            known |= each.model_dump(exclude_none=True, exclude={"session_update"})
    return [text for text in texts if text[0] != "user_message_chunk"], calls


# D38
async def test_a_loaded_session_is_shown_whole_from_the_log(folder):
    options = ("--agent", folder.writer())
    async with folder.editor(*options) as (first, agent, _):
        name = (await agent.new_session(cwd=str(folder.work))).session_id
        turn = asyncio.ensure_future(agent.prompt(session_id=name, prompt=says("Write")))
        await first.question()
        first.choose("allow")
        await turn
    async with folder.editor(*options) as (second, agent, _):
        await agent.load_session(session_id=name, cwd=str(folder.work))
        loaded = [*second.updates]
        await agent.prompt(session_id=name, prompt=says("Thanks"))

    assert shape(first.updates) == shape(loaded)
    assert "Write" == "".join(
        each.content.text for _, each in loaded if each.session_update == "user_message_chunk"
    )
    (diff,) = [each for each in second.of("tool_call_update")[-1].content if each.type == "diff"]
    assert "Ada\nGrace\n" == diff.new_text


async def test_a_resumed_session_goes_on_without_its_past(folder):
    options = ("--agent", folder.agent(TALKS))
    async with folder.editor(*options) as (_, agent, _process):
        name = (await agent.new_session(cwd=str(folder.work))).session_id
        await agent.prompt(session_id=name, prompt=says("Hello"))
    async with folder.editor(*options) as (shown, agent, _process):
        await agent.resume_session(session_id=name, cwd=str(folder.work))
        assert [] == shown.updates
        await agent.prompt(session_id=name, prompt=says("And?"))

    assert "Still here." == shown.text()


async def test_sessions_are_listed_by_folder_and_forked_and_closed(folder):
    async with folder.editor("--agent", folder.agent(TALKS)) as (shown, agent, _process):
        name = (await agent.new_session(cwd=str(folder.work))).session_id
        await agent.prompt(session_id=name, prompt=says("Hello"))
        (listed,) = (await agent.list_sessions(cwd=str(folder.work))).sessions
        elsewhere = (await agent.list_sessions(cwd=str(folder.path))).sessions
        fork = (await agent.fork_session(session_id=name, cwd=str(folder.work))).session_id
        await agent.close_session(session_id=name)
        shown.updates.clear()
        ended = await agent.prompt(session_id=fork, prompt=says("And?"))

    assert (name, "Hello", str(folder.work)) == (listed.session_id, listed.title, listed.cwd)
    assert [] == elsewhere
    assert "end_turn" == ended.stop_reason
    assert {fork} == {session for session, _ in shown.updates}
    assert "Still here." == shown.text()
    async with open_client(folder.log) as client:
        assert name == (await client.show(fork)).forked_from


CALLS_TWICE = """
[[reply]]
calls = [
    { name = "wait", arguments = {} },
    { name = "write_file", arguments = { path = "list.txt", content = "Ada" } },
]

[[reply]]
text = "As you like."
"""
WAIT = '''
from pathlib import Path
from time import sleep

from cueline import tool


@tool(read_only=True)
def wait() -> str:
    """Wait until the file `go` is there."""
    Path("began").write_text("")
    while not Path("go").exists():
        sleep(0.02)
    return "went"
'''


async def test_a_cancelled_turn_ends_so_and_the_next_prompt_replaces_its_rest(folder, monkeypatch):
    monkeypatch.setenv("CUELINE_GRACE_SECONDS", "1")
    (folder.path / "tools.py").write_text(WAIT)
    more = '[policy]\napproval = ["all_writes"]\n'
    tools = [str(folder.path / "tools.py") + ":wait", "write_file"]
    async with folder.editor("--agent", folder.agent(CALLS_TWICE, tools, more=more)) as (
        shown,
        agent,
        _,
    ):
        name = (await agent.new_session(cwd=str(folder.work))).session_id
        turn = asyncio.ensure_future(agent.prompt(session_id=name, prompt=says("Go")))
        await shown.question()
        await await_until((folder.path / "began").exists, within=30)
        await agent.cancel(session_id=name)
        shown.asked[0][2].set_result(CANCELLED)
        ended = await turn
        assert "in_progress" == shown.statuses("1.0")[-1], "a running call finishes"
        (folder.path / "go").write_text("")
        after = await agent.prompt(session_id=name, prompt=says("Leave the list alone"))

    assert ("cancelled", "end_turn") == (ended.stop_reason, after.stop_reason)
    assert "As you like." == shown.text()
    assert "failed" == shown.statuses("1.1")[-1]
    assert not (folder.work / "list.txt").exists()


async def test_a_prompt_at_once_after_a_cancel_is_not_cancelled_with_it(folder):
    async with folder.editor("--agent", folder.writer()) as (shown, agent, _):
        name = (await agent.new_session(cwd=str(folder.work))).session_id
        turn = asyncio.ensure_future(agent.prompt(session_id=name, prompt=says("Write")))
        await shown.question()
        await agent.cancel(session_id=name)
        after = asyncio.ensure_future(agent.prompt(session_id=name, prompt=says("Rather not")))
        shown.asked[0][2].set_result(CANCELLED)

        assert "cancelled" == (await turn).stop_reason
        assert "end_turn" == (await after).stop_reason
    assert "Written." in shown.text(), "the second reply of the script"
    assert not (folder.work / "list.txt").exists()


LEAD = """
[[reply]]
calls = [{ name = "clerk", arguments = { goal = "write the list" } }]

[[reply]]
text = "Thanks."
"""


# D36
async def test_the_question_of_a_child_is_asked_as_one_of_its_parent(folder):
    more = 'workspace = "work"\n[policy]\napproval = ["all_writes"]\n'
    child = folder.agent(WRITES, ["write_file"], more=more)
    lead = folder.agent(LEAD, [f"agent:{child}"], name="lead")
    async with folder.editor("--agent", lead) as (shown, agent, _):
        name = (await agent.new_session(cwd=str(folder.work))).session_id
        turn = asyncio.ensure_future(agent.prompt(session_id=name, prompt=says("Go")))
        call, _options, _answer = await shown.question()
        shown.choose("allow")
        ended = await turn

    assert f"{name}.1.0: write_file" in call.title
    assert any(each.type == "diff" for each in call.content)
    assert "Ada\nGrace\n" == (folder.work / "list.txt").read_text()
    assert ("end_turn", "Thanks.") == (ended.stop_reason, shown.text())
    assert {name} == {session for session, _ in shown.updates}
    assert ["pending", "completed"] == shown.statuses(call.tool_call_id)


async def test_a_cancel_stops_the_children(folder):
    more = 'workspace = "work"\n[policy]\napproval = ["all_writes"]\n'
    child = folder.agent(WRITES, ["write_file"], more=more)
    lead = folder.agent(LEAD, [f"agent:{child}"], name="lead")
    async with folder.editor("--agent", lead) as (shown, agent, _):
        name = (await agent.new_session(cwd=str(folder.work))).session_id
        turn = asyncio.ensure_future(agent.prompt(session_id=name, prompt=says("Go")))
        await shown.question()
        shown.asked[0][2].set_result(CANCELLED)  # without a cancel: nobody waits for ever
        ended = await turn
        after = await agent.prompt(session_id=name, prompt=says("Well?"))

    assert ("cancelled", "end_turn") == (ended.stop_reason, after.stop_reason)
    async with open_client(folder.log) as client:
        assert "stopped" == (await client.show(f"{name}.1.0")).status


SENDER = '''
import os
import signal
from pathlib import Path

from cueline import tool


@tool
def send(text: str) -> str:
    """Send a letter; the first time, the process dies under it."""
    with Path("sent.txt").open("a") as file:
        file.write(f"{text}\\n")
    if Path("sent.txt").read_text().count("\\n") == 1:
        os.kill(int(Path("host.pid").read_text()), signal.SIGKILL)
    return "sent"
'''
SENDS = """
[[reply]]
calls = [{ name = "send", arguments = { text = "Dear Ada" } }]

[[reply]]
text = "Done."
"""


@pytest.mark.parametrize(
    ("answer", "letters", "status"),
    [
        pytest.param("happened", 1, "completed", marks=pytest.mark.long),
        ("run_again", 2, "completed"),
        pytest.param("do_not_run", 1, "completed", marks=pytest.mark.long),
    ],
)
# I5
async def test_a_call_in_doubt_after_a_kill_is_asked_with_three_answers(
    folder, answer, letters, status
):
    (folder.path / "sender.py").write_text(SENDER)
    options = ("--agent", folder.agent(SENDS, [str(folder.path / "sender.py") + ":send"]))
    async with folder.editor(*options) as (_, agent, process):
        (folder.path / "host.pid").write_text(str(process.pid))
        name = (await agent.new_session(cwd=str(folder.work))).session_id
        turn = asyncio.ensure_future(agent.prompt(session_id=name, prompt=says("Go")))
        async with asyncio.timeout(60):
            assert -signal.SIGKILL == await process.wait()
        with pytest.raises((ConnectionError, RequestError)):
            await turn
    async with folder.editor(*options) as (shown, agent, _):
        await agent.load_session(session_id=name, cwd=str(folder.work))
        _, choices, _answer = await shown.question()
        shown.choose(answer)
        # The pieces of a reply may come before the events of the calls.
        await await_until(lambda: "Done." in shown.text(), within=30)
        await await_until(lambda: status == shown.statuses("1.0")[-1], within=30)

    assert ["happened", "run_again", "do_not_run"] == list(choices)
    assert all("run" in each.name for each in choices.values())
    assert letters == (folder.path / "sent.txt").read_text().count("Dear Ada")


# D38
async def test_a_kill_of_the_editor_side_loses_no_turn(folder):
    (folder.path / "tools.py").write_text(WAIT)
    script = '[[reply]]\ncalls = [{ name = "wait", arguments = {} }]\n[[reply]]\ntext = "Done."\n'
    options = ("--agent", folder.agent(script, [str(folder.path / "tools.py") + ":wait"]))
    async with folder.editor(*options) as (_, agent, process):
        name = (await agent.new_session(cwd=str(folder.work))).session_id
        turn = asyncio.ensure_future(agent.prompt(session_id=name, prompt=says("Go")))
        await await_until((folder.path / "began").exists, within=30)
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises((ConnectionError, RequestError)):
            await turn
    (folder.path / "go").write_text("")
    async with folder.editor(*options) as (shown, agent, _):
        await agent.load_session(session_id=name, cwd=str(folder.work))
        await await_until(lambda: "Done." in shown.text(), within=30)
        await await_until(lambda: "completed" == shown.statuses("1.0")[-1], within=30)


async def test_a_question_of_a_killed_process_is_asked_again_by_the_next_one(folder):
    options = ("--agent", folder.writer())
    async with folder.editor(*options) as (shown, agent, process):
        name = (await agent.new_session(cwd=str(folder.work))).session_id
        turn = asyncio.ensure_future(agent.prompt(session_id=name, prompt=says("Write")))
        await shown.question()
        os.kill(process.pid, signal.SIGKILL)
        await asyncio.wait((turn,))
        assert turn.exception() is not None
    async with folder.editor(*options) as (shown, agent, _):
        await agent.load_session(session_id=name, cwd=str(folder.work))
        await shown.question()
        shown.choose("allow")
        await await_until(lambda: "Written." in shown.text(), within=30)

    assert (folder.work / "list.txt").exists()


async def test_a_question_that_is_answered_elsewhere_holds_nobody_up(folder):
    async with folder.editor("--agent", folder.writer()) as (shown, agent, _):
        name = (await agent.new_session(cwd=str(folder.work))).session_id
        turn = asyncio.ensure_future(agent.prompt(session_id=name, prompt=says("Write")))
        await shown.question()
        async with open_client(folder.log) as client:
            (waits,) = (await client.pending()).rows
            await client.approve(waits.id)
            await client.send(name, "I have allowed it.")
        ended = await turn

    assert "end_turn" == ended.stop_reason
    assert "I have allowed it." == shown.text("user_message_chunk")


PLAN = """
name = "plan"
provider = "workflow"

[[steps]]
name = "first"
tool = "tools.py:note"

[[steps]]
name = "second"
tool = "tools.py:note"
needs = ["first"]
"""
NOTE = '''
from cueline import tool


@tool(read_only=True)
async def note() -> str:
    """Say something, and return something else."""
    print("this is on stdout")
    return "noted"
'''


async def test_a_session_of_a_plan_shows_its_steps(folder):
    (folder.path / "tools.py").write_text(NOTE)
    (folder.path / "plan.toml").write_text(PLAN)
    async with open_runtime(folder.log, on="inline") as runtime:
        session = await runtime.start(str(folder.path / "plan.toml"))
        await session.result()
    async with folder.editor("--agent", str(folder.path / "plan.toml")) as (shown, agent, _):
        await agent.load_session(session_id=session.id, cwd=str(folder.work))
        with pytest.raises(RequestError, match="plan follows a plan, so no model reads messages"):
            await agent.new_session(cwd=str(folder.work))

    plans = [[(step.content, step.status) for step in each.entries] for each in shown.of("plan")]
    assert [("first", "pending"), ("second", "pending")] == plans[0]
    assert [("first", "completed"), ("second", "completed")] == plans[-1]


async def test_only_the_protocol_is_on_stdout(folder):
    (folder.path / "tools.py").write_text(NOTE)
    script = '[[reply]]\ncalls = [{ name = "note", arguments = {} }]\n[[reply]]\ntext = "Done."\n'
    file = folder.agent(script, [str(folder.path / "tools.py") + ":note"])
    words = (sys.executable, "-m", "cueline.cli", "acp", "--log", str(folder.log), "--agent", file)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *words, cwd=folder.path, stdin=pipe, stdout=pipe, stderr=pipe
    )

    async def ask(number, method, **params):
        told = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        process.stdin.write(f"{json.dumps(told)}\n".encode())
        while True:
            answer = json.loads(await process.stdout.readline())
            if answer.get("id") == number:
                return answer["result"]

    async with asyncio.timeout(60):
        await ask(1, "initialize", protocolVersion=1)
        name = (await ask(2, "session/new", cwd=str(folder.work), mcpServers=[]))["sessionId"]
        said = [{"type": "text", "text": "Go"}]
        ended = await ask(3, "session/prompt", sessionId=name, prompt=said)
        process.stdin.write(b"no JSON\n")
        process.stdin.close()
        rest, errors = await process.communicate()

    assert ({"stopReason": "end_turn"}, b"", 0) == (ended, rest, process.returncode)
    assert b"this is on stdout" in errors
    assert b"Error parsing JSON-RPC message" in errors


async def test_errors_name_the_fix(folder):
    async with folder.editor("--agent", folder.agent(HELLO)) as (_, agent, _process):
        with pytest.raises(RequestError, match="no such session") as unknown:
            await agent.load_session(session_id="nothing", cwd=str(folder.work))
        with pytest.raises(RequestError, match="cwd: 'work' is no absolute path") as relative:
            await agent.new_session(cwd="work")
        with pytest.raises(RequestError) as missing:
            await agent.authenticate(method_id="key")
        name = (await agent.new_session(cwd=str(folder.work))).session_id
        with pytest.raises(RequestError, match="a block of kind 'audio' is not taken"):
            await agent.prompt(session_id=name, prompt=[helpers.audio_block("", "audio/wav")])
        await agent.prompt(session_id=name, prompt=says("Hello"))
        with pytest.raises(RequestError, match="has no reply for turn 2"):
            await agent.prompt(session_id=name, prompt=says("And?"))
        with pytest.raises(RequestError, match=name):
            await agent.prompt(session_id=name, prompt=says("And now?"))

    assert [-32002, -32602, -32601] == [each.value.code for each in (unknown, relative, missing)]


async def test_files_of_a_prompt_reach_the_model(folder):
    content = base64.b64encode(b"\x89PNG\r\n\x1a\n and what follows").decode()
    file = helpers.embedded_text_resource("file:///notes.txt", "Ada was here.")
    prompt = [
        helpers.text_block("Look: "),
        helpers.image_block(content, "image/png"),
        helpers.resource_block(file),
        helpers.resource_link_block("list.txt", "file:///list.txt"),
    ]
    async with folder.editor("--agent", folder.agent(HELLO)) as (_, agent, _process):
        name = (await agent.new_session(cwd=str(folder.work))).session_id
        await agent.prompt(session_id=name, prompt=prompt)

    async with open_client(folder.log) as client:
        asked = await client.start_request(name)
    assert "Look: " in asked.goal
    assert "Ada was here." in asked.goal
    assert "[list.txt](file:///list.txt)" in asked.goal
    assert ["image/png"] == [each.media_type for each in asked.attachments]


async def test_a_limit_of_turns_ends_the_turn_with_its_reason(folder):
    script = WRITES.replace("write_file", "note").replace(
        'path = "list.txt", content = "Ada\\nGrace\\n"', ""
    )
    (folder.path / "tools.py").write_text(NOTE)
    file = folder.agent(script, [str(folder.path / "tools.py") + ":note"])
    async with folder.editor("--agent", file, "--max-turns", "1") as (_, agent, _process):
        name = (await agent.new_session(cwd=str(folder.work))).session_id
        ended = await agent.prompt(session_id=name, prompt=says("Go"))

    assert "max_turn_requests" == ended.stop_reason


def test_without_the_extra_the_error_names_it(tmp_path):
    hides = tmp_path / "sitecustomize.py"
    hides.write_text("import sys\nsys.modules['acp'] = None\n")
    words = (sys.executable, "-m", "cueline.cli", "acp", "--log", str(tmp_path / "log.db"))
    env = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)

    assert 2 == done.returncode
    assert "acp: acp is missing: `pip install 'cueline[acp]'` installs it" in done.stderr


def test_a_patch_is_shown_as_a_diff_for_each_hunk_of_each_file():
    first = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n--- a/x\n+2"
    second = "--- a/b.txt\n+++ b/b.txt\n@@ -0,0 +1 @@\n+new"
    note = "a/c.txt: only the ends of lines change"

    shown = preview_content(f"{first}\n{note}\n{second}", SessionState())

    assert [
        ("/a.txt", "-- a/x\n", "2\n"),
        ("/b.txt", None, "new\n"),
    ] == [(each.path, each.old_text, each.new_text) for each in shown]
