"""Commands whose file changes wait for a yes."""

import asyncio
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from cueline.actors.tool_port import GivenInput, ToolOrder, ToolQuestion
from cueline.errors import ToolFailedError
from cueline.events.agent import Workspace
from cueline.events.agent_parts import Isolation
from cueline.events.input_request import digest_of
from cueline.isolation.ladder import overlays
from cueline.tools.held import HeldCalls
from cueline.tools.schemes import SchemeExecutor
from cueline.tools.shell import run_command

pytestmark = pytest.mark.skipif(not overlays().program, reason=overlays().cause)


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """The folder for what is held."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state/cueline/held"


@pytest.fixture(params=["same disk", "other disk"])
def disk(request, monkeypatch, state):
    """Hold changes on the disk of the workspace, or on another one."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        if request.param == "other disk":
            monkeypatch.setenv("XDG_STATE_HOME", folder)
        yield


@pytest.fixture
async def executor():
    executor = SchemeExecutor(1)
    yield executor
    await executor.close()


@pytest.fixture
def order(workspace):
    def make(command, **more):
        return ToolOrder(
            session="session-default/1",
            effect="1.0",
            attempt=1,
            key="session-default/1/1.0",
            runner="runner-1",
            epoch=1,
            tool=run_command.spec().model_copy(update={"changes": "held"}),
            arguments={"command": command},
            workspace=Workspace(machine="here", path=str(workspace)),
            digest="",
            **more,
        )

    return make


def allowed(order, question):
    """Return the order of a call whose changes are allowed."""
    given = GivenInput(digest_of(question.requests), {"changes": "yes"}, question.state)
    return replace(order, attempt=2, given=given)


def files(folder):
    """Return what is in *folder*: texts of files, targets of links, permissions."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_dir():
            found[name] = "folder"
        else:
            found[name] = (path.read_text(), stat.S_IMODE(path.stat().st_mode))
    return found


MIXED = """
echo new > new; echo more >> kept; rm gone; chmod +x script
rm -r folder/inner; mkdir folder/inner; echo z > folder/inner/z
mv renamed other; rm link; ln -s kept link; mkdir -p a/b; echo c > a/b/c
rm -r became-file; echo text > became-file; rm became-folder; mkdir became-folder
echo x > became-folder/x; mkdir empty
"""


def filled(folder):
    for name in ("kept", "gone", "script", "folder/inner/y", "renamed", "became-file/q/r"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name}\n")
    (folder / "became-folder").write_text("file\n")
    (folder / "link").symlink_to("gone")


def applied(folder):
    """Return what the commands leave in a folder without an overlay."""
    folder.mkdir()
    filled(folder)
    subprocess.run(["/bin/sh", "-ec", MIXED], cwd=folder, check=True)
    return files(folder)


@pytest.mark.usefixtures("disk")
async def test_what_a_command_changes_waits_and_comes_in_whole(
    executor, order, workspace, tmp_path
):
    filled(workspace)
    before = files(workspace)
    expected = await asyncio.to_thread(applied, tmp_path / "direct")
    asked = order(MIXED)

    question = await executor.call(asked)

    assert isinstance(question, ToolQuestion)
    assert before == files(workspace)
    output = await executor.call(allowed(asked, question))
    assert expected == files(workspace)
    assert b"[exit status 0]" == output.content


async def test_a_command_that_changes_nothing_returns_at_once(executor, order, workspace, state):
    (workspace / "a").write_text("1")

    output = await executor.call(order("cat a; touch a; echo 2 > /tmp/x"))

    assert b"1\n[exit status 0]" == output.content
    assert [] == list(state.iterdir())


async def test_a_person_sees_each_path_with_digests_the_diff_and_how_the_command_ended(
    executor, order, workspace
):
    (workspace / "a").write_text("one\n")

    question = await executor.call(order("echo two > a; cp a b; exit 3"))

    (request,) = question.requests
    first, *lines = request.message.splitlines()
    digest = question.state.rpartition(":")[2]
    assert f"[2 changed, sha256 {digest}]" == first
    assert [
        "[exit status 3]",
        "edited a: 2c8b08da5ce6 (644) -> 27dd8ed44a83 (644)",
        "new b: 27dd8ed44a83 (644)",
        "--- a/a",
        "+++ b/a",
        "@@ -1 +1 @@",
        "-one",
        "+two",
    ] == lines[:8]
    assert ("a", "b") == question.paths


async def test_a_long_diff_is_cut_and_its_digest_is_whole(executor, order):
    question = await executor.call(order("for n in $(seq 200); do seq 100 > file-$n; done"))

    (request,) = question.requests
    assert request.message.endswith("[the rest is left out]")
    assert "[150 more]" in request.message
    assert 200 == len(question.paths)


async def test_the_files_before_are_returned_for_undo(executor, order, workspace):
    (workspace / "a").write_text("one")
    (workspace / "b").write_text("two")
    (workspace / "b").chmod(0o600)
    asked = order("echo new > a; rm b; echo c > c; ln -s a l")

    output = await executor.call(allowed(asked, await executor.call(asked)))

    assert [("a", b"one", 0o644), ("b", b"two", 0o600), ("c", None, None)] == [
        (each.path, each.before, each.mode) for each in output.changes
    ]
    assert ["", ""] == [output.changes[1].after_digest, output.changes[2].before_digest]


async def test_what_has_changed_since_is_refused_and_nothing_is_written(executor, order, workspace):
    (workspace / "a").write_text("one")
    asked = order("echo new > first; echo two > a")
    question = await executor.call(asked)
    (workspace / "a").write_text("somebody else's")
    before = files(workspace)

    with pytest.raises(ToolFailedError, match="a has changed since the command ran; nothing was"):
        await executor.call(allowed(asked, question))

    assert before == files(workspace)


async def test_a_link_that_leads_out_of_the_workspace_is_a_link_only(
    executor, order, workspace, tmp_path
):
    outside = tmp_path / "outside"
    outside.mkdir()
    (workspace / "folder").mkdir()
    asked = order(f"rm -r folder; ln -s {outside} folder; mkdir inner; echo x > inner/x")
    question = await executor.call(asked)
    await executor.call(allowed(asked, question))
    assert outside == (workspace / "folder").readlink()

    asked = order("echo x > inner/y")
    question = await executor.call(asked)
    shutil.rmtree(workspace / "inner")
    (workspace / "inner").symlink_to(outside)
    with pytest.raises(ToolFailedError, match="nothing was changed"):
        await executor.call(allowed(asked, question))
    assert [] == list(outside.iterdir())


async def test_what_is_no_file_is_left_out_and_said(executor, order, workspace):
    asked = order("mkfifo pipe; echo a > a; mkdir .cueline; echo x > .cueline/x")

    output = await executor.call(allowed(asked, await executor.call(asked)))

    assert ["a"] == [each.name for each in workspace.iterdir()]
    assert b"[not kept: .cueline, pipe]" in output.content


async def test_folders_that_are_too_deep_fail_their_call_alone(executor, order, workspace, state):
    deep = "mkdir -p $(printf 'd/%.0s' $(seq 1500))"

    with pytest.raises(ToolFailedError, match="too deep to hold; nothing was changed"):
        await executor.call(order(deep))

    assert [] == [*workspace.iterdir(), *state.iterdir()]
    assert isinstance(await executor.call(order("echo a > a")), ToolQuestion)


async def test_a_command_that_is_killed_at_its_time_out_has_changed_nothing(
    executor, order, workspace, state
):
    asked = order("echo a > a; sleep 100")
    asked.arguments["timeout_seconds"] = 0.3

    with pytest.raises(ToolFailedError, match="nothing was changed") as failed:
        await executor.call(asked)

    assert "tool_error" == failed.value.kind
    assert [] == [*workspace.iterdir(), *state.iterdir()]


async def test_changes_that_are_gone_from_this_machine_are_said_to_be_gone(
    executor, order, workspace, state
):
    asked = order("echo a > a")
    question = await executor.call(asked)
    shutil.rmtree(state)

    with pytest.raises(ToolFailedError, match="not on this machine any more; nothing was changed"):
        await executor.call(allowed(asked, question))


async def test_changes_that_are_written_are_not_written_again(executor, order, workspace):
    asked = order("echo a >> a")
    question = await executor.call(asked)
    first = await executor.call(allowed(asked, question))
    (workspace / "a").write_text("edited later")

    again = await executor.call(allowed(asked, question))

    assert first == again
    assert "edited later" == (workspace / "a").read_text()


async def test_a_later_turn_of_a_session_drops_what_nobody_allowed(executor, order, state):
    await executor.call(order("echo a > a"))
    await executor.call(replace(order("echo b > b"), session="session-default/2"))
    await executor.call(replace(order("echo c > c"), effect="12.0"))

    assert 2 == len(list(state.iterdir()))


async def test_calls_of_one_turn_leave_each_other_alone(executor, order, workspace):
    """As steps of a plan, of which several run at a time."""
    orders = [replace(order(f"echo {n} > {n}"), effect=f"1.{n}") for n in (1, 12)]
    questions = [await executor.call(each) for each in orders]

    for asked, question in zip(orders, questions, strict=True):
        await executor.call(allowed(asked, question))

    assert {"1", "12"} == {each.name for each in workspace.iterdir()}


async def test_a_cancelled_call_writes_whole(executor, order, workspace):
    asked = order("for n in $(seq 500); do echo $n > $n; done")
    question = await executor.call(asked)

    writing = asyncio.create_task(executor.call(allowed(asked, question)))
    asyncio.get_running_loop().call_soon(writing.cancel)
    await writing

    assert 500 == len(list(workspace.iterdir()))


@pytest.mark.parametrize(
    "isolation",
    [{"kind": "none"}, {"kind": "landlock"}, {"network": True}, {"write": ["/opt"]}],
    ids=str,
)
async def test_a_command_with_other_effects_is_not_held(executor, order, workspace, isolation):
    asked = order("echo a > a", isolation=Isolation.model_validate(isolation))

    with pytest.raises(
        ToolFailedError, match="take `none`, `landlock`, `network` and `write` out of"
    ):
        await executor.call(asked)

    assert [] == list(workspace.iterdir())


_CALLS = ("rename", "mkdir", "rmdir", "unlink", "removexattr", "fsync", "open")


def killed_at(number, write):
    """Run *write* in a process that dies by SIGKILL before its call *number*; whether it died."""
    child = os.fork()
    if child == 0:
        left = number

        def counted(call):
            def run(*arguments, **more):
                nonlocal left
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1
                return call(*arguments, **more)

            return run

        for name in _CALLS:
            setattr(os, name, counted(getattr(os, name)))
        write()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def copied(source, target):
    """Copy a folder with its devices and attributes."""
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["cp", "-a", source, target], check=True)


def kill_everywhere(asked, question, workspace, copies):
    """Kill the write of an allowed call at each of its calls; return the deaths, by what was left.

    Each is followed by another attempt, after which all is written.
    """
    held = Path(os.environ["XDG_STATE_HOME"]) / "cueline/held"
    before = files(workspace)
    copied(workspace, copies / "workspace")
    copied(held, copies / "held")
    left = []
    for number in range(10_000):
        copied(copies / "workspace", workspace)
        copied(copies / "held", held)

        def write():
            return HeldCalls(None)._write(allowed(asked, question), question.state)

        died = killed_at(number, write)
        found = {name: each for name, each in files(workspace).items() if ".cueline" not in name}
        if not any(held.glob("*/writing")):
            assert before == found, "it changes something before it is decided"
        write()
        after = files(workspace)
        assert before != after
        if not died:
            return after, left
        left.append("nothing" if found == before else "all" if found == after else "a part")
    return None


@pytest.mark.parametrize(
    "disk", ["same disk", pytest.param("other disk", marks=pytest.mark.long)], indirect=True
)
@pytest.mark.usefixtures("disk")
async def test_a_write_that_is_killed_anywhere_is_whole_or_not_at_all(
    executor, order, workspace, tmp_path, figures
):
    filled(workspace)
    asked = order(MIXED)
    question = await executor.call(asked)
    expected = await asyncio.to_thread(applied, tmp_path / "direct")
    (tmp_path / "copies").mkdir()

    after, left = await asyncio.to_thread(
        kill_everywhere, asked, question, workspace, tmp_path / "copies"
    )

    figures(f"{len(left)} kills, of which {left.count('a part')} left a part")
    assert expected == after
    assert len(left) > 90
    assert {"nothing", "a part", "all"} == {*left}
