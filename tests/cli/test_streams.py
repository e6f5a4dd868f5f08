"""Real processes whose output is closed, full, cut off, or of few letters."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from cueline.testing.wait import PATIENCE_SECONDS
from tests.cli.conftest import CUELINE


def output_of(shell, line, **environ):
    """Return exit code and output of a *line* for the shell, in which `$CUELINE` is ours."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=shell.folder,
        env={**os.environ, "CUELINE": shlex.join(CUELINE), **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_run_whose_reader_leaves_goes_on(shell):
    agent = shell.agent(shell.slow.replace("120", "0.5"), tools=("list_files",))
    run = f"$CUELINE run Go --agent {agent} --inline --id one | head -n 1"

    assert (0, "session one · clerk · scripted script.toml\n", "") == output_of(shell, run)
    assert "SessionCompleted" == shell.types("one")[-1]


def test_a_list_that_is_cut_off_says_nothing_of_it(finished):
    process = finished.start("tail", "one", "-n", "100", "--json")
    process.stdout.close()

    assert process.wait(timeout=PATIENCE_SECONDS) == 0
    process.stdout = None


def test_a_command_needs_no_stream_that_is_closed(finished):
    """Else the event loop would get its number, and end the process for it."""
    code, listed, _ = output_of(finished, "$CUELINE list <&-")

    assert (0, True) == (code, "one " in listed)
    assert (0, "", "") == output_of(finished, "$CUELINE list <&- >&- 2>&-")


def test_a_locale_without_a_check_mark_is_no_error(finished):
    code, shown, _ = output_of(finished, "$CUELINE show one", PYTHONIOENCODING="ascii")

    assert (0, True) == (code, "? 1.0 list_files" in shown)


def test_what_is_piped_in_may_hold_what_is_no_text(shell):
    run = rf"printf 'Gr\xfc\xdfe' | $CUELINE run - --agent {shell.agent(shell.hello)} --inline"

    code, shown, told = output_of(shell, run, PYTHONIOENCODING="utf-8:strict")

    assert (0, True) == (code, "Gr\ufffd\ufffde" in shell("list").stdout), (shown, told)


def test_a_goal_without_an_end_is_refused(shell):
    run = f"$CUELINE run - --agent {shell.agent(shell.hello)} --inline < /dev/zero"

    assert (2, "", "error: the text: it is longer than 100 MB\n") == output_of(shell, run)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_output_that_cannot_be_written_is_no_bug(finished):
    code, _, told = output_of(finished, "$CUELINE list > /dev/full")

    assert (1, "error: the output cannot be written: No space left on device\n") == (code, told)
