"""Sessions with a sandbox of their own, as a program drives them."""

import subprocess
import time
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

import cueline
from cueline.client.runtime import Runtime, open_runtime
from cueline.errors import ConfigError, RejectedError
from cueline.events.session import SandboxAttached, SessionWaiting, ToolFailed, ToolReturned
from cueline.runtime.inline import inline
from cueline.runtime.open_log import open_log
from cueline.sandboxes.local import LocalBackend
from cueline.testing.wait import await_until
from cueline.tools.sandbox import sandbox_backend
from tests.scripted import scripted

BOTH = """
[[reply]]
calls = [{ name = "run_command", arguments = { command = "echo one > made; cat there" } }]
[[reply]]
calls = [{ name = "write_file", arguments = { path = "made", content = "two\\n" } }]
[[reply]]
calls = [{ name = "read_file", arguments = { path = "made" } }]
[[reply]]
text = "Done."
"""
HOLDS = """
[[reply]]
calls = [{ name = "run_command", arguments = { command = "sleep 100" } }]
"""
ALLOWED = cueline.Policy(approval=("off",))
WRITES = {"name": "writes", "answer": "ask", "tools": ["write_file"]}
TOOLS = ("run_command", "write_file", "read_file")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    sandbox_backend.cache_clear()
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "there").write_text("of the workspace")
    return folder


def agent(folder, script=BOTH, **more):
    return scripted(script, *TOOLS, **{"workspace": folder, "sandbox": "local", **more})


@asynccontextmanager
async def runtime_with(folder, **limits):
    """Open a runtime in this process, whose log has these limits."""
    async with open_log(folder / "log.db") as log:
        limited = replace(log, **limits)
        async with inline(limited, scope=set()) as here:
            yield Runtime(limited, here)


async def events_until(session, kind):
    """Yield the events of a session up to the first of this kind."""
    async for each in session.events():
        yield each.event
        if isinstance(each.event, kind):
            return


def left():
    return [each.state for each in LocalBackend().find({})]


async def test_commands_and_file_tools_work_in_the_sandbox(folder, tmp_path):
    async with open_runtime(str(tmp_path / "log.db"), on="inline") as runtime:
        session = await runtime.start(agent(folder, policy=ALLOWED), "Go.")
        result = await session.result()
        facts = [each.event async for each in session.events()]
        await await_until(lambda: not left())

    assert "Done." == result.text
    outputs = [fact.output for fact in facts if isinstance(fact, ToolReturned)]
    assert "of the workspace" in outputs[0]
    assert "two" in outputs[2]
    assert 1 == sum(isinstance(fact, SandboxAttached) for fact in facts)
    assert ["there"] == [each.name for each in folder.iterdir()]
    assert [] == left()


TELLS = """
[[reply]]
calls = [
    { name = "tell", arguments = { code = "0" } },
    { name = "tell", arguments = { code = "3" } },
]
[[reply]]
text = "Done."
"""


async def test_what_a_declared_command_complains_of_is_told_if_it_fails(folder, tmp_path):
    script = """cat; echo careful >&2; echo '{"a": 1}'; exit $0"""
    tell = cueline.CustomTool(description="Tell.", command=("sh", "-c", script, "{code}"))
    own = agent(folder, TELLS, policy=ALLOWED, custom_tools={"tell": tell})
    async with open_runtime(str(tmp_path / "log.db"), on="inline") as runtime:
        session = await runtime.start(own, "Go.")
        await session.result()
        facts = [each.event async for each in session.events()]

    (returned,) = [fact for fact in facts if isinstance(fact, ToolReturned)]
    (failed,) = [fact for fact in facts if isinstance(fact, ToolFailed)]
    assert '{"a": 1}\n' == returned.output
    assert 'exit status 3: {"a": 1}\ncareful' == failed.message


async def test_a_session_that_waits_for_a_person_has_no_started_sandbox(folder, tmp_path):
    """003-002, 003-073, 003-074, I12."""
    ask = cueline.Policy(approval=("off",), rules=[WRITES])
    async with open_runtime(str(tmp_path / "log.db"), on="inline") as runtime:
        session = await runtime.start(agent(folder, policy=ask), "Go.")
        await await_until(lambda: ["stopped"] == left())
        (pending,) = (await runtime.pending()).rows
        assert "" == pending.preview  # the file is in the sandbox, not in the workspace
        await session.approve(pending.id)
        result = await session.result()

        facts = [each.event async for each in session.events()]

    assert "Done." == result.text
    attached = [fact for fact in facts if isinstance(fact, SandboxAttached)]
    assert [1, 1] == [fact.number for fact in attached]
    assert "two" in [fact for fact in facts if isinstance(fact, ToolReturned)][-1].output


async def test_a_session_without_a_slot_waits_for_its_turn(folder, tmp_path):
    """003-004, 003-031, 003-077: it goes on when another one rests."""
    async with runtime_with(tmp_path, sandbox_slots=1) as runtime:
        first = await runtime.start(agent(folder, script=HOLDS, policy=ALLOWED), "Go.", id="first")
        await await_until(lambda: ["started"] == left())
        second = await runtime.start(agent(folder, policy=ALLOWED), "Go.", id="second")
        (waits,) = [e async for e in events_until(second, SessionWaiting)][-1:]
        assert ("sandbox", "no_slot", 1) == (waits.kind, waits.cause.code, int(waits.cause.of))
        await first.stop()

        assert "Done." == (await second.result()).text


@pytest.mark.parametrize("number", [25, pytest.param(1000, marks=pytest.mark.long)])
async def test_many_waiting_sessions_hold_no_started_sandbox(folder, tmp_path, figures, number):
    """003-002, 003-073: all sandboxes are stopped, and all slots are free."""
    ask = cueline.Policy(approval=("off",), rules=[WRITES])
    asking, log = agent(folder, policy=ask), str(tmp_path / "log.db")
    begun, marks = time.monotonic(), tmp_path / "state/cueline/sandboxes"
    async with open_runtime(log, on="inline") as runtime:
        for _ in range(number):
            await runtime.start(asking, "Go.")
        await await_until(lambda: len([*marks.glob("*/stopped")]) == number, within=number)
        assert ["stopped"] * number == left()
        figures(f"{number} sessions wait after {time.monotonic() - begun:.0f} s; 0 started")
    async with open_runtime(log, on="inline") as reader:
        listed = await reader.sandboxes()

    assert (0, number) == (listed.used, len(listed.sandboxes))
    assert {"stopped"} == {each.state for each in listed.sandboxes}


async def test_a_back_end_that_fails_pauses_the_session_until_a_person_has_mended_it(
    folder, tmp_path
):
    box = {"backend": "local", "image": "debian"}
    async with runtime_with(tmp_path) as runtime:
        session = await runtime.start(agent(folder, sandbox=box, policy=ALLOWED), "Go.")
        waits = [e async for e in events_until(session, SessionWaiting)][-1]

    assert ("operator", "sandbox_failed") == (waits.kind, waits.cause.code)
    assert "leave `image` out" in waits.cause.message


async def test_a_variable_that_is_missing_is_named(folder, tmp_path):
    """003-043: the value is not recorded, so it has to be there at each start."""
    box = {"backend": "local", "environment": {"TOKEN": "$MISSING_TOKEN"}}
    async with runtime_with(tmp_path) as runtime:
        session = await runtime.start(agent(folder, sandbox=box, policy=ALLOWED), "Go.")
        waits = [e async for e in events_until(session, SessionWaiting)][-1]

    assert "$MISSING_TOKEN is not set here" in waits.cause.message


FILLS = """
[[reply]]
calls = [{ name = "run_command", arguments = { command = "echo kept > first" } }]
[[reply]]
calls = [{ name = "run_command", arguments = { command = "yes > filler; true" } }]
[[reply]]
calls = [{ name = "run_command", arguments = { command = "rm filler; cat first" } }]
[[reply]]
text = "Done."
"""


@pytest.fixture
def small_disk(folder, tmp_path):
    """A disk of 2 MB that has the sandboxes."""
    place = tmp_path / "state"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", place], check=True)


async def test_a_snapshot_on_a_full_disk_says_so_and_loses_nothing(small_disk, tmp_path):
    async with open_runtime(str(tmp_path / "log.db"), on="inline") as runtime:
        session = await runtime.start(agent(small_disk, script=FILLS, policy=ALLOWED), "Go.")
        result = await session.result()
        facts = [each.event async for each in session.events()]
        await await_until(lambda: not left())

    outputs = [fact.output for fact in facts if isinstance(fact, ToolReturned)]
    assert "[no fork can have the files of this call: [Errno 28] No space left" in outputs[1]
    assert ("completed", "Done.") == (result.status, result.text)
    assert "kept" in outputs[2]
    assert "no fork" not in outputs[2]


LOGS_IN = '''
[[reply]]
calls = [{ name = "run_command", arguments = { command = """
echo url=https://a.org | git credential fill | rev""" } }]
[[reply]]
calls = [{ name = "run_command", arguments = { command = "env | grep -i git_; set | grep TOKEN" } }]
[[reply]]
text = "Done."
'''


@pytest.mark.parametrize("given", [True, False])
async def test_git_gets_its_token_in_each_command_and_nothing_keeps_it(
    folder, tmp_path, monkeypatch, given
):
    """003-034, C43: at the call, not at the creation, and never recorded."""
    if given:
        monkeypatch.setenv("EXAMPLE_GIT_TOKEN", "planted-in-the-variable")
    box = {"backend": "local", "git_token": "$EXAMPLE_GIT_TOKEN"}
    async with open_runtime(str(tmp_path / "log.db"), on="inline") as runtime:
        session = await runtime.start(
            agent(folder, script=LOGS_IN, sandbox=box, policy=ALLOWED), "Go.", open=True
        )
        await session.result()
        facts = [each.event async for each in session.events()]

        kept = files_with(tmp_path, b"planted-in")

    if not given:
        told = [fact.message for fact in facts if isinstance(fact, ToolFailed)]
        assert "$EXAMPLE_GIT_TOKEN is not set at the runner" in told[0]
        return
    outputs = [fact.output for fact in facts if isinstance(fact, ToolReturned)]
    assert "username=x-access-token" in outputs[0][::-1]
    assert "password=planted-in-the-variable" in outputs[0][::-1]
    assert "planted-in-the-variable" not in outputs[1]
    assert [] == kept


def files_with(folder, text):
    return [each for each in folder.rglob("*") if each.is_file() and text in each.read_bytes()]


STEPS = """
[[reply]]
calls = [{ name = "run_command", arguments = { command = "echo one > made" } }]
[[reply]]
calls = [{ name = "run_command", arguments = { command = "cat made; echo two > made" } }]
[[reply]]
calls = [{ name = "run_command", arguments = { command = "cat made" } }]
[[reply]]
text = "Done."
"""


async def test_an_agent_without_a_workspace_has_that_of_its_sandbox(folder, tmp_path):
    script = BOTH.replace("; cat there", "")
    async with open_runtime(str(tmp_path / "log.db"), on="inline") as runtime:
        homeless = agent(folder, script=script, workspace=None, policy=ALLOWED)
        result = await (await runtime.start(homeless, "Go.")).result()

    assert ("completed", "Done.") == (result.status, result.text)
    assert ["there"] == [each.name for each in folder.iterdir()]


@pytest.mark.parametrize(("with_files", "first"), [(True, "one"), (False, "No such file")])
async def test_a_fork_can_have_the_files_of_its_turn(folder, tmp_path, with_files, first):
    log = tmp_path / "log.db"
    async with open_runtime(str(log), on="inline") as runtime:
        steps = agent(folder, script=STEPS, policy=ALLOWED)
        session = await runtime.start(steps, "Go.", id="first", open=True)
        await session.result()
        returned = [e async for e in session.events() if isinstance(e.event, ToolReturned)]

        fork = await runtime.fork("first", at=returned[0].version, with_files=with_files)
        await fork.result()
        outputs = [e.event.output async for e in fork.events() if is_later(e, returned[0])]

    assert first in outputs[0]
    assert "two" in outputs[1]
    assert [] == [each.name for each in tmp_path.glob("work-*")]


def is_later(event, than):
    return isinstance(event.event, ToolReturned) and event.version > than.version


async def test_a_fork_with_files_needs_files(folder, tmp_path):
    async with open_runtime(str(tmp_path / "log.db"), on="inline") as runtime:
        session = await runtime.start(agent(folder, policy=ALLOWED), "Go.", id="first", open=True)
        await session.result()

        with pytest.raises(RejectedError, match="fork it without files"):
            await runtime.fork("first", at=2, with_files=True)


@pytest.mark.parametrize(
    ("tool", "settings", "why"),
    [
        ("list_files", {}, "needs the whole workspace"),
        ("run_command", {"run_command": {"changes": "held"}}, "is in the sandbox only"),
    ],
)
def test_what_cannot_work_in_a_sandbox_is_refused(folder, tool, settings, why):
    made = scripted(BOTH, tool, tool_settings=settings, workspace=folder, sandbox="local")

    with pytest.raises(ConfigError, match=why):
        made.spec()


def test_an_unknown_back_end_is_named():
    with pytest.raises(ConfigError, match="'locale' is unknown"):
        sandbox_backend("locale")
