"""Real processes: interrupted, killed and resumed."""

import os
import re
import shlex
import signal

from cueline.actors.presence import presence_of
from cueline.runtime.open_log import open_log
from cueline.testing.wait import PATIENCE_SECONDS, wait_until
from tests.cli.conftest import CUELINE
from tests.cli.processes import busy, inbox_types, let_go, running
from tests.damage import change

THREE_CALLS = """
[[reply]]
text = "First."
calls = [{ name = "busy" }, { name = "busy" }, { name = "busy" }]

[[reply]]
text = "Here I am."
"""


def test_calls_take_turns_where_a_setting_says_so(shell, monkeypatch):
    monkeypatch.setenv("CUELINE_RUNNER_WORKERS", "1")
    process = busy(shell, THREE_CALLS)

    let_go(shell)

    assert 0 == process.wait(PATIENCE_SECONDS)
    calls = [each for each in shell.types("one") if each in {"ToolStarted", "ToolReturned"}]
    assert ["ToolStarted", "ToolReturned"] * 3 == calls


def test_an_agent_file_is_read_as_utf_8_whatever_the_locale(shell, monkeypatch):
    for variable, value in {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}.items():
        monkeypatch.setenv(variable, value)
    agent = shell.agent(shell.hello, more='instructions = "Grüße die Gäste."\n')

    process = shell.start("run", "Go", "--agent", agent, "--inline", "--id", "one")

    assert 0 == process.wait()


def test_one_ctrl_c_pauses_and_says_how_to_go_on(shell, monkeypatch):
    """D5, 000-011: a session that is interrupted is paused, not failed."""
    monkeypatch.setenv("CUELINE_GRACE_SECONDS", "1")
    process = running(shell)

    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=PATIENCE_SECONDS)

    assert process.returncode == 3
    assert "pausing; what is in flight may finish" in said
    assert "session one: paused" in said
    assert "  cueline resume one\n" in said
    assert "SessionWaiting" == shell.types("one")[-1]
    assert "signal" == shell.json("export", "one")["waiting"]["cause"]["code"]
    assert 0 == shell("resume", "one", "--inline").exit_code


def test_sigterm_pauses_likewise_and_lets_the_model_finish(shell):
    """000-011."""
    process = running(shell, script=shell.brisk)

    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE_SECONDS)

    assert process.returncode == 3
    assert "paused" == shell.json("list")[0]["status"]
    assert ["ModelReplied", "SessionWaiting"] == shell.types("one")[-2:]


def in_a_terminal(shell, popen, *words, before="exec"):
    """Start a command in a terminal of its own; return both, the terminal to be closed."""
    ours, theirs = os.openpty()
    # A leader without a terminal gets the first that it opens.
    line = f"exec <>{os.ttyname(theirs)} >&0 2>&0; {before} {shlex.join([*CUELINE, *words])}"
    process = popen(["sh", "-c", line], cwd=shell.folder, start_new_session=True)
    return process, ours, theirs


def running_in_a_terminal(shell, popen, *, before="exec"):
    agent = shell.agent(shell.brisk, tools=("list_files",))
    words = ("run", "Go", "--agent", agent, "--inline", "--id", "one")
    process, ours, theirs = in_a_terminal(shell, popen, *words, before=before)
    shell.wait_for("one", "ModelStarted", 2)
    os.close(theirs)
    return process, ours


def test_who_closes_the_terminal_pauses_likewise(shell, popen):
    """000-011: the terminal that is gone keeps nothing from being recorded."""
    process, terminal = running_in_a_terminal(shell, popen)

    os.close(terminal)

    assert 3 == process.wait(PATIENCE_SECONDS)
    assert ["ModelReplied", "SessionWaiting"] == shell.types("one")[-2:]


def test_with_nohup_a_run_outlives_its_terminal(shell, popen):
    process, terminal = running_in_a_terminal(shell, popen, before="exec nohup >said 2>&1")

    os.close(terminal)

    assert 0 == process.wait(PATIENCE_SECONDS)
    assert "SessionCompleted" == shell.types("one")[-1]


def test_what_outlasts_the_grace_is_cancelled_and_recorded(shell, monkeypatch):
    """000-011, 000-068: the grace is a setting."""
    monkeypatch.setenv("CUELINE_GRACE_SECONDS", "0.1")
    process = running(shell)

    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE_SECONDS)

    assert process.returncode == 3
    assert ["ModelFailed", "SessionWaiting"] == shell.types("one")[-2:]
    assert 0 == shell("resume", "one", "--inline").exit_code


def test_a_second_ctrl_c_leaves_at_once_and_loses_nothing(shell, monkeypatch):
    """D1: resume really goes on, whether or not the session had read that it was to pause."""
    monkeypatch.setenv("CUELINE_GRACE_SECONDS", "300")
    process = running(shell)

    process.send_signal(signal.SIGINT)
    wait_until(lambda: "PauseAsked" in inbox_types(shell))
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=PATIENCE_SECONDS)
    done = shell("resume", "one", "--inline")

    assert process.returncode == 130
    assert "left at once" in said
    assert said.endswith("  cueline resume one\n")
    assert "Traceback" not in said
    assert done.exit_code == 0
    assert 0 == shell("audit", "verify").exit_code


def test_the_status_says_who_drives_what(shell):
    process = running(shell)

    up, head, row, driven = shell("status").stdout.splitlines()

    assert "no `cueline up` is running for this log" == up
    assert ["PROCESS", "PID", "MACHINE", "BEAT", "RUNNING"] == head.split()
    assert ("inline-", str(process.pid), "1") == (row[:7], row.split()[1], row.split()[-1])
    assert "1 running session" == driven


def test_a_run_that_was_killed_is_gone_on_with(shell):
    """000-010, 000-016, D1: nothing that was recorded is done again."""
    process = running(shell)
    process.kill()
    process.wait()

    listed = shell.json("list")[0]
    assert ["one", "interrupted"] == shell("list").stdout.splitlines()[1].split()[:2]
    done = shell("resume", "one", "--inline")

    assert (listed["status"], listed["driven"]) == ("running", False)
    assert done.exit_code == 0
    assert "taken over by a new owner" in done.stdout
    assert "Here I am." in done.stdout
    assert 1 == shell.types("one").count("ToolReturned")
    assert 0 == shell("replay", "one", "--check").exit_code
    assert 0 == shell("audit", "verify").exit_code


def test_a_session_with_a_living_owner_is_not_taken_over(shell):
    """000-034: the message names machine and process."""
    process = running(shell)

    refused = shell("resume", "one", "--inline")

    assert refused.exit_code == 2
    assert f"one: driven by process {process.pid} on " in refused.stderr
    assert "cueline tail -f one" in refused.stderr


async def test_who_was_taken_over_from_in_a_call_ends_and_the_call_with_it(shell):
    """I5: whoever has the session now cannot ask after the call, and need not wait for it."""
    process = busy(shell)
    async with open_log(shell.log) as log:
        other = presence_of("inline")
        await log.board.beat(other)
        await log.store.acquire("session-default/one", other.incarnation, seen_epoch=1)

    said, _ = process.communicate(timeout=PATIENCE_SECONDS)

    assert process.returncode == 3
    assert said.endswith("another process drives it now; watch it with\n  cueline tail -f one\n")


def test_a_process_that_runs_and_cannot_say_so_is_not_called_nobody(shell):
    """A full disk, for example, keeps it from saying that it lives."""
    shell.agent(shell.slow, tools=("list_files",))
    process = shell.start("run", "Go", "--agent", "agent.toml", "--inline", "--id", "one")
    shell.wait_for("one", "ModelStarted", times=2)
    process.send_signal(signal.SIGSTOP)
    board = shell.log.with_name("log.db.presence")
    change(board, "UPDATE process SET beat_us = beat_us - 60000000 WHERE pid = ?", process.pid)

    listed, shown = shell("list").stdout, shell("show", "one").stdout

    silent = rf"process {process.pid} on \S+ runs, but is silent for 6\d s"
    assert re.search(f"running, its {silent}", listed)
    assert re.search(f"driven by {silent}; go on with", shown)


def test_a_link_to_the_log_shows_who_drives_its_sessions(shell):
    """000-034: and what to type names the log as it was named."""
    process = running(shell)
    (shell.folder / "link.db").symlink_to(shell.log)

    refused = shell("resume", "one", "--inline", "--log", "link.db")

    assert f"one: driven by process {process.pid} on " in refused.stderr
    assert "`cueline tail -f one --log link.db`" in refused.stderr
    assert "`cueline pause one --log link.db`" in refused.stderr


def test_a_crashed_session_is_left_alone_by_another_run(shell):
    process = running(shell)
    process.kill()
    process.wait()
    before = shell.types("one")

    shell("run", "Hi", "--agent", shell.agent(shell.hello), "--inline")

    assert before == shell.types("one")
