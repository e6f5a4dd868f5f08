"""A live session is told things, and watched, from another shell."""

import signal
from contextlib import suppress
from pathlib import Path

from cueline.testing.wait import PATIENCE_SECONDS, wait_until
from tests.cli.processes import BUSY, busy, inbox_types, let_go, running


def test_a_live_session_is_paused_from_another_shell(shell):
    process = busy(shell)

    told = shell("pause", "one")
    wait_until(lambda: "MessageReceived" in shell.types("one"))
    pausing = shell("pause", "one")
    let_go(shell)
    process.communicate(timeout=PATIENCE_SECONDS)
    paused = shell("pause", "one")

    assert "one: asked to pause\n" == told.stdout
    assert "one: it was asked to pause before; what is in flight finishes first\n" == pausing.stdout
    assert "one: it is paused already: on request" in paused.stdout
    assert process.returncode == 3


def test_a_pause_is_taken_back_from_another_shell(shell):
    """000-034: nothing is taken over; whoever drives it is told to go on."""
    process = busy(shell)
    shell("pause", "one")

    resuming = shell.start("resume", "one", "--inline")
    wait_until(lambda: "ResumeAsked" in inbox_types(shell))
    let_go(shell)
    resuming.communicate(timeout=PATIENCE_SECONDS)
    process.communicate(timeout=PATIENCE_SECONDS)

    assert (0, 0) == (process.returncode, resuming.returncode)
    assert "SessionTakenOver" not in shell.types("one")


def test_a_live_session_is_stopped_from_another_shell(shell):
    process = running(shell)

    told = shell("stop", "one", "--reason", "enough")
    said, _ = process.communicate(timeout=PATIENCE_SECONDS)

    assert "one: asked to stop\n" == told.stdout
    assert process.returncode == 1
    assert "stopped by user: enough" in said


def test_a_message_from_another_shell_reaches_a_live_session(shell):
    process = busy(shell, BUSY + '\n[[reply]]\ntext = "Understood."\n')

    told = shell("send", "one", "--followup", "One thing more")
    let_go(shell)
    said, _ = process.communicate(timeout=PATIENCE_SECONDS)

    assert "one: sent as a followup\n" == told.stdout
    assert process.returncode == 0
    assert said.index("you (followup): One thing more") < said.index("Understood.")


def test_a_session_is_watched_from_another_shell(shell):
    shell("run", "Hi", "--agent", shell.agent(shell.hello), "--detach", "--id", "one")
    watcher = shell.start("tail", "-f", "one")

    shell("resume", "one", "--inline")
    seen, _ = watcher.communicate(timeout=PATIENCE_SECONDS)

    assert watcher.returncode == 0
    assert "SessionStarted" in seen
    assert "SessionCompleted" in seen


def test_to_stop_looking_is_no_failure_of_anybody(shell):
    shell("run", "Hi", "--agent", shell.agent(shell.hello), "--detach", "--id", "one")
    watcher = shell.start("tail", "-f", "one")
    wait_until(lambda: waits_for_events(watcher.pid))

    watcher.send_signal(signal.SIGINT)
    seen, _ = watcher.communicate(timeout=PATIENCE_SECONDS)

    assert watcher.returncode == 130
    assert "Traceback" not in seen


def waits_for_events(pid):
    """Whether the process has the log open, and so its loop runs."""
    opened = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed just now
            opened.append(str(link.readlink()))
    return any(path.endswith("log.db") for path in opened)
