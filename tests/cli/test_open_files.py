"""Processes that may open few files."""

import shlex
import subprocess

from tests.cli.conftest import CUELINE

HOG = """
from cueline import tool

HELD = []

@tool(idempotent=True)
async def take_all() -> str:
    try:
        while True:
            HELD.append(open("/dev/null"))
    except OSError:
        return "all taken"

@tool(idempotent=True)
async def give_back() -> None:
    for file in HELD:
        file.close()

@tool(idempotent=True)
def use_a_process() -> str:
    return "it ran"
"""
CALLS = ("take_all", "use_a_process", "give_back", "use_a_process")
HOGS = "".join(f'[[reply]]\ncalls = [{{ name = "{name}", arguments = {{}} }}]\n' for name in CALLS)


def typed(shell, files, *words):
    command = f"ulimit -S -n {files}; exec {shlex.join([*CUELINE, *words])}"
    return subprocess.run(
        ["sh", "-c", command], cwd=shell.folder, check=False, capture_output=True, text=True
    )


def test_too_few_files_are_said_to_be_too_few(shell):
    agent = shell.agent(shell.hello)

    for files in (16, 23):
        done = typed(shell, files, "run", "Go", "--agent", agent, "--inline")

        assert done.returncode in {1, 2}
        assert f"no more files can be opened: this process may have {files}" in done.stderr
        assert "`ulimit -n 1024`" in done.stderr
        assert "Traceback" not in done.stderr
    assert shell.json("list") == []


def test_a_tool_for_which_no_file_is_left_waits_for_a_person(shell):
    (shell.folder / "hog.py").write_text(HOG)
    names = ("take_all", "give_back", "use_a_process")
    agent = shell.agent(
        f'{HOGS}[[reply]]\ntext = "Done."\n',
        tools=tuple(f"hog.py:{name}" for name in names),
        more="[tool_retry]\nmax_retries = 0\n",
    )

    paused = typed(shell, 64, "run", "Go", "--agent", agent, "--inline", "--id", "one")
    done = typed(shell, 1024, "resume", "one", "--inline")

    assert (3, 0) == (paused.returncode, done.returncode), paused.stderr + done.stderr
    assert "OSError: [Errno 24] Too many open files" in paused.stdout
    assert "it ran" in done.stdout
    assert ["ToolReturned", "ToolFailed", *["ToolReturned"] * 3] == [
        type_ for type_ in shell.types("one") if type_ in {"ToolReturned", "ToolFailed"}
    ]
